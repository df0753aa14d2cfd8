/* A Pulsar broker that only says its lines: so that what is measured is the client.

   usage: pulsar_server BODY BATCH   BATCH 0: entries that are not batch-framed
   Answers the handshake, lookups and openings; streams one entry again and again against permits, with the entry id
   counted up; checks and acknowledges every SEND. Prints "port N". Then, for each line on stdin, `total N` (messages to
   stream at most, to all consumers together) or `report`: the counts since the last one, as JSON on one line.
   Counted: messages acknowledged (once each, batch indexes included), entries acknowledged twice, permits, messages
   sent whose checksum is right, gaps in sequence ids, PINGs. One thread, epoll. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../../_native/common/crc.h"

#define CONNECTIONS 64
#define HANDLERS 64
#define WORDS 16
#define ROOM (2 << 20)

typedef struct { const uint8_t *at, *end; } cursor;
typedef struct { uint64_t id; int conn; int64_t permits; uint64_t next_entry, first_flow; uint64_t *left; size_t known; } consumer;
typedef struct { uint64_t id; int conn; uint64_t next_sequence, next_entry; } producer;
typedef struct { int fd; uint8_t *in, *out; size_t in_size, in_room, out_size, out_room; } connection;

static struct { uint64_t streamed, acked, twice, granted, flows, sent, entries, bad_crc, gaps, pings, redeliver; } count;
static connection conns[CONNECTIONS];
static consumer consumers[HANDLERS];
static producer producers[HANDLERS];
static int n_consumers, n_producers, batch, poller, port;
static int64_t total;
static uint8_t *payload; /* from the magic number to the end of the entry */
static size_t payload_size;

static uint64_t varint(cursor *c) {
    uint64_t value = 0;
    for (int shift = 0; shift < 70 && c->at < c->end; shift += 7) {
        uint8_t byte = *c->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
    return value;
}

/* The number of the next field, its value or its bytes; 0 at the end. */
static int field(cursor *c, uint64_t *value, cursor *bytes) {
    if (c->at >= c->end) return 0;
    uint64_t tag = varint(c);
    if ((tag & 7) == 2) {
        uint64_t size = varint(c);
        if (size > (uint64_t)(c->end - c->at)) size = (uint64_t)(c->end - c->at);
        *bytes = (cursor){c->at, c->at + size};
        c->at += size;
    } else *value = varint(c);
    return (int)(tag >> 3);
}

static uint64_t number(cursor c, int wanted, uint64_t otherwise) {
    uint64_t value = 0;
    cursor bytes;
    for (int found; (found = field(&c, &value, &bytes));) if (found == wanted) return value;
    return otherwise;
}

static uint8_t *put_varint(uint8_t *p, uint64_t v) { for (; v > 127; v >>= 7) *p++ = (uint8_t)(v | 128); *p++ = (uint8_t)v; return p; }
static uint8_t *put(uint8_t *p, int number, uint64_t v) { p = put_varint(p, (uint64_t)number << 3); return put_varint(p, v); }
static uint8_t *put_bytes(uint8_t *p, int number, const void *at, size_t size) {
    p = put_varint(p, (uint64_t)number << 3 | 2);
    p = put_varint(p, size);
    memcpy(p, at, size);
    return p + size;
}
static void put32(uint8_t *p, uint32_t v) { v = __builtin_bswap32(v); memcpy(p, &v, 4); }
static uint32_t be32(const uint8_t *p) { uint32_t n; memcpy(&n, p, 4); return __builtin_bswap32(n); }

static void append(connection *c, const void *at, size_t size) {
    if (c->out_size + size > c->out_room) c->out = realloc(c->out, c->out_room = (c->out_size + size) * 2);
    memcpy(c->out + c->out_size, at, size);
    c->out_size += size;
}

static void say(connection *c, int type, const uint8_t *body, size_t size) {
    uint8_t frame[600], *p = put(frame + 8, 1, (uint64_t)type);
    p = put_bytes(p, type, body, size);
    put32(frame, (uint32_t)(p - frame - 4));
    put32(frame + 4, (uint32_t)(p - frame - 8));
    append(c, frame, (size_t)(p - frame));
}

static void flush(connection *c) {
    size_t done = 0;
    while (done < c->out_size) {
        ssize_t sent = send(c->fd, c->out + done, c->out_size - done, MSG_NOSIGNAL);
        if (sent <= 0) break;
        done += (size_t)sent;
    }
    if (done) memmove(c->out, c->out + done, c->out_size - done);
    c->out_size -= done;
    struct epoll_event e = {.events = EPOLLIN | (c->out_size ? EPOLLOUT : 0), .data.u32 = (uint32_t)(c - conns)};
    epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &e);
}

static int size_of_entry(void) { return batch ? batch : 1; }

static void deliver(consumer *to) {
    connection *c = &conns[to->conn];
    uint8_t id[32], body[64], *p;
    while (to->permits > 0 && total > 0 && c->out_size < ROOM) {
        uint8_t *end = put(put(id, 1, 1), 2, to->next_entry++);
        p = put(body, 1, to->id);
        p = put_bytes(p, 2, id, (size_t)(end - id));
        uint8_t frame[128], *q = put(frame + 8, 1, 9);
        q = put_bytes(q, 9, body, (size_t)(p - body));
        put32(frame, (uint32_t)((size_t)(q - frame - 4) + payload_size));
        put32(frame + 4, (uint32_t)(q - frame - 8));
        append(c, frame, (size_t)(q - frame));
        append(c, payload, payload_size);
        to->permits -= size_of_entry();
        total -= size_of_entry();
        count.streamed += (uint64_t)size_of_entry();
    }
}

static consumer *consumer_of(int conn, uint64_t id) {
    for (int i = 0; i < n_consumers; i++) if (consumers[i].conn == conn && consumers[i].id == id) return &consumers[i];
    return NULL;
}

static producer *producer_of(int conn, uint64_t id) {
    for (int i = 0; i < n_producers; i++) if (producers[i].conn == conn && producers[i].id == id) return &producers[i];
    return NULL;
}

/* The words of what is not acknowledged of an entry. */
static uint64_t *left_of(consumer *c, uint64_t entry) {
    if (entry >= c->known) {
        size_t known = (entry + 1) * 2;
        c->left = realloc(c->left, known * WORDS * 8);
        for (size_t i = c->known; i < known; i++)
            for (int w = 0; w < WORDS; w++) {
                int bits = size_of_entry() - 64 * w;
                c->left[i * WORDS + (size_t)w] = bits >= 64 ? ~0ull : bits > 0 ? (1ull << bits) - 1 : 0;
            }
        c->known = known;
    }
    return c->left + entry * WORDS;
}

static void ack_entry(consumer *c, uint64_t entry, const uint64_t *keep) {
    uint64_t *left = left_of(c, entry), news = 0;
    for (int w = 0; w < WORDS; w++) {
        news += (uint64_t)__builtin_popcountll(left[w] & ~(keep ? keep[w] : 0));
        left[w] &= keep ? keep[w] : 0;
    }
    count.acked += news;
    if (!news) count.twice++;
}

static void on_ack(int conn, cursor body) {
    consumer *c = consumer_of(conn, number(body, 1, 0));
    uint64_t value = 0, request = number(body, 8, ~0ull);
    int cumulative = (int)number(body, 2, 0);
    cursor at = body, id;
    for (int found; c && (found = field(&at, &value, &id));) {
        if (found != 3) continue;
        uint64_t entry = number(id, 2, 0), keep[WORDS] = {0};
        int words = 0;
        cursor inside = id, part;
        for (int inner; (inner = field(&inside, &value, &part));)
            if (inner == 4 + 1) {
                if (words < WORDS) keep[words++] = value;
            }
        if (entry >= c->next_entry) continue;
        ack_entry(c, entry, words ? keep : NULL);
        while (cumulative && entry-- > 0) {
            uint64_t *left = left_of(c, entry), any = 0;
            for (int w = 0; w < WORDS; w++) any |= left[w];
            if (!any) break;
            ack_entry(c, entry, NULL);
        }
    }
    if (request != ~0ull && c) {
        uint8_t out[64];
        say(&conns[conn], 38, out, (size_t)(put(put(out, 1, c->id), 6, request) - out));
    }
}

static void on_send(int conn, cursor body, cursor rest) {
    uint64_t id = number(body, 1, 0), sequence = number(body, 2, 0), many = number(body, 3, 1);
    producer *p = producer_of(conn, id);
    if (!p) return;
    if (rest.end - rest.at > 6 && rest.at[0] == 0x0e && rest.at[1] == 1) {
        if (mq_crc32c(0, rest.at + 6, (size_t)(rest.end - rest.at - 6)) != be32(rest.at + 2)) count.bad_crc++;
    } else count.bad_crc++;
    if (sequence != p->next_sequence) count.gaps++;
    p->next_sequence = sequence + many;
    count.sent += many;
    count.entries++;
    uint8_t out[64], place[32], *end = put(put(place, 1, 1), 2, p->next_entry++);
    uint8_t *q = put_bytes(put(put(out, 1, id), 2, sequence), 3, place, (size_t)(end - place));
    say(&conns[conn], 7, out, (size_t)(q - out));
}

static void opened(connection *c, int conn, int type, cursor body) {
    uint8_t out[256], *p = out;
    char name[64];
    if (type == 5) {
        producers[n_producers % HANDLERS] = (producer){.id = number(body, 2, 0), .conn = conn};
        int size = snprintf(name, sizeof name, "canned-%d", n_producers);
        if (n_producers < HANDLERS - 1) n_producers++;
        p = put_bytes(put(p, 1, number(body, 3, 0)), 2, name, (size_t)size);
        p = put(p, 3, ~0ull);
        say(c, 17, out, (size_t)(p - out));
    } else {
        free(consumers[n_consumers].left);
        consumers[n_consumers] = (consumer){.id = number(body, 4, 0), .conn = conn};
        if (n_consumers < HANDLERS - 1) n_consumers++;
        say(c, 13, out, (size_t)(put(p, 1, number(body, 5, 0)) - out));
    }
}

static void on_frame(int conn, cursor frame) {
    connection *c = &conns[conn];
    uint32_t size = be32(frame.at);
    cursor command = {frame.at + 4, frame.at + 4 + size}, rest = {frame.at + 4 + size, frame.end}, body = {0};
    uint64_t type = 0;
    cursor bytes;
    for (int found; (found = field(&command, &type, &bytes));) if (found != 1) body = bytes;
    type = 0;
    cursor again = {frame.at + 4, frame.at + 4 + size};
    type = number(again, 1, 0);
    uint8_t out[256], *p = out;
    char url[64];
    consumer *to;
    switch (type) {
    case 2:
        p = put(put(put_bytes(p, 1, "canned", 6), 2, 21), 3, 5 << 20);
        say(c, 3, out, (size_t)(p - out));
        break;
    case 4: case 5: opened(c, conn, (int)type, body); break;
    case 6: on_send(conn, body, rest); break;
    case 10: on_ack(conn, body); break;
    case 11:
        to = consumer_of(conn, number(body, 1, 0));
        if (!to) break;
        if (!to->first_flow) to->first_flow = number(body, 2, 0);
        count.granted += number(body, 2, 0);
        count.flows++;
        to->permits += (int64_t)number(body, 2, 0);
        deliver(to);
        break;
    case 12: case 15: case 16: say(c, 13, out, (size_t)(put(p, 1, number(body, 2, 0)) - out)); break;
    case 18: count.pings++; say(c, 19, out, 0); break;
    case 20: count.redeliver++; break;
    case 21: say(c, 22, out, (size_t)(put(put(put(p, 1, 0), 2, number(body, 2, 0)), 3, 0) - out)); break;
    case 23:
        p = put_bytes(p, 1, url, (size_t)snprintf(url, sizeof url, "pulsar://127.0.0.1:%d", port));
        p = put(put(put(p, 3, 1), 4, number(body, 2, 0)), 5, 1);
        say(c, 24, out, (size_t)(p - out));
        break;
    default: break;
    }
}

static void drop(int conn) {
    epoll_ctl(poller, EPOLL_CTL_DEL, conns[conn].fd, NULL);
    close(conns[conn].fd);
    conns[conn].fd = -1;
    for (int i = 0; i < n_consumers; i++) if (consumers[i].conn == conn) consumers[i].conn = -1;
    for (int i = 0; i < n_producers; i++) if (producers[i].conn == conn) producers[i].conn = -1;
}

static void on_readable(int conn) {
    connection *c = &conns[conn];
    if (c->in_room - c->in_size < (1 << 20)) c->in = realloc(c->in, c->in_room = c->in_room * 2 + (2 << 20));
    ssize_t got = recv(c->fd, c->in + c->in_size, c->in_room - c->in_size, 0);
    if (got <= 0) { if (!(got < 0 && errno == EAGAIN)) drop(conn); return; }
    c->in_size += (size_t)got;
    size_t at = 0;
    while (c->in_size - at >= 4) {
        size_t size = be32(c->in + at);
        if (c->in_size - at - 4 < size) break;
        on_frame(conn, (cursor){c->in + at + 4, c->in + at + 4 + size});
        at += 4 + size;
    }
    if (at) memmove(c->in, c->in + at, c->in_size - at);
    c->in_size -= at;
    flush(c);
}

static void build(size_t body) {
    size_t room = (size_t)size_of_entry() * (body + 64) + 256;
    payload = calloc(1, room);
    uint8_t meta[128], *m = put_bytes(meta, 1, "canned", 6), *p;
    m = put(put(m, 2, 0), 3, 1700000000000ull);
    if (batch) m = put(m, 11, (uint64_t)batch);
    payload[0] = 0x0e; payload[1] = 1;
    put32(payload + 6, (uint32_t)(m - meta));
    memcpy(payload + 10, meta, (size_t)(m - meta));
    p = payload + 10 + (m - meta);
    for (int i = 0; i < size_of_entry(); i++) {
        if (batch) {
            uint8_t *end = put(put(p + 4, 3, body), 8, (uint64_t)i);
            put32(p, (uint32_t)(end - p - 4));
            p = end;
        }
        memset(p, 'x', body);
        p += body;
    }
    payload_size = (size_t)(p - payload);
    put32(payload + 2, mq_crc32c(0, payload + 6, payload_size - 6));
}

static void told(const char *line) {
    if (!strncmp(line, "total ", 6)) {
        total = atoll(line + 6);
        for (int i = 0; i < n_consumers; i++) if (consumers[i].conn >= 0) { deliver(&consumers[i]); flush(&conns[consumers[i].conn]); }
        printf("ok\n");
    } else {
        uint64_t first = 0;
        for (int i = 0; i < n_consumers; i++) if (consumers[i].conn >= 0) first = consumers[i].first_flow;
        printf("{\"streamed\": %lu, \"acked\": %lu, \"twice\": %lu, \"granted\": %lu, \"flows\": %lu, \"first_flow\": %lu, "
               "\"sent\": %lu, \"entries\": %lu, \"bad_crc\": %lu, \"gaps\": %lu, \"pings\": %lu, \"redeliver\": %lu}\n",
               count.streamed, count.acked, count.twice, count.granted, count.flows, first, count.sent, count.entries,
               count.bad_crc, count.gaps, count.pings, count.redeliver);
        memset(&count, 0, sizeof count);
    }
    fflush(stdout);
}

static void admit(int listener) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK), one = 1, place = 0;
    if (fd < 0) return;
    while (place < CONNECTIONS && conns[place].fd >= 0) place++;
    if (place == CONNECTIONS) { close(fd); return; }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    conns[place] = (connection){.fd = fd, .in = conns[place].in, .in_room = conns[place].in_room,
                                .out = conns[place].out, .out_room = conns[place].out_room};
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = (uint32_t)place};
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    batch = atoi(argv[2]);
    build((size_t)atol(argv[1]));
    for (int i = 0; i < CONNECTIONS; i++) conns[i].fd = -1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 64)) return 1;
    getsockname(listener, (struct sockaddr *)&address, &size);
    port = ntohs(address.sin_port);
    poller = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = 1000};
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &e);
    e.data.u32 = 1001;
    epoll_ctl(poller, EPOLL_CTL_ADD, 0, &e);
    printf("port %d\n", port);
    fflush(stdout);
    char line[256];
    for (;;) {
        struct epoll_event events[64];
        int ready = epoll_wait(poller, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            uint32_t place = events[i].data.u32;
            if (place == 1000) admit(listener);
            else if (place == 1001) { if (!fgets(line, sizeof line, stdin)) return 0; told(line); }
            else if (conns[place].fd >= 0) {
                if (events[i].events & EPOLLOUT) {
                    flush(&conns[place]);
                    for (int k = 0; k < n_consumers; k++) if (consumers[k].conn == (int)place) deliver(&consumers[k]);
                    flush(&conns[place]);
                }
                if (conns[place].fd >= 0 && (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))) on_readable((int)place);
            }
        }
    }
}
