/* A RocketMQ name server and broker in one that only says its lines: so that what is measured is the client.

   usage: rocketmq_server           prints "port N" and serves until it is killed
          rocketmq_server loop PORT FILE COUNT
                                    the floor: send the frame in FILE and wait for its answer, COUNT times, one blocking
                                    socket; prints the median nanoseconds of a round trip and the mean of its CPU time
   Every topic has four queues at one broker, itself. Sends are answered with a place in their queue, everything else
   with success; one-way requests with nothing. Headers in JSON, as all clients send them by default. One thread, poll. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 256, ROOM = 1 << 22, ROUTE = 105 };

typedef struct { uint8_t *in, *out; size_t in_size, out_size; } connection;

static struct pollfd polled[CONNECTIONS + 1];
static connection conns[CONNECTIONS + 1];
static int n_polled = 1, port;
static uint64_t stored;

static uint32_t be32(const uint8_t *p) { uint32_t n; memcpy(&n, p, 4); return __builtin_bswap32(n); }
static void put32(uint8_t *p, uint32_t v) { v = __builtin_bswap32(v); memcpy(p, &v, 4); }

/* The number behind a name of the header, which stands in quotes and is no member of a field's value. */
static long number(const char *head, const char *name) {
    const char *found = strstr(head, name);
    return found == NULL ? 0 : strtol(found + strlen(name), NULL, 10);
}

static void answer(connection *c, const char *head) {
    long code = number(head, "\"code\":"), opaque = number(head, "\"opaque\":");
    char *header = (char *)c->out + c->out_size + 8, body[600] = "";
    int head_size, body_size = 0;
    if (number(head, "\"flag\":") & 2) return;
    if (code == ROUTE)
        body_size = sprintf(body, "{\"brokerDatas\":[{\"brokerAddrs\":{\"0\":\"127.0.0.1:%d\"},\"brokerName\":\"floor\","
            "\"cluster\":\"floor\"}],\"filterServerTable\":{},\"queueDatas\":[{\"brokerName\":\"floor\",\"perm\":6,"
            "\"readQueueNums\":4,\"topicSysFlag\":0,\"writeQueueNums\":4}]}", port);
    stored++;
    head_size = sprintf(header, "{\"code\":0,\"extFields\":{\"queueId\":\"%ld\",\"msgId\":\"7F00000100002A9F%016llX\","
        "\"queueOffset\":\"%llu\",\"MSG_REGION\":\"DefaultRegion\",\"TRACE_ON\":\"true\"},\"flag\":1,\"language\":\"JAVA\","
        "\"opaque\":%ld,\"serializeTypeCurrentRPC\":\"JSON\",\"version\":479}",
        number(head, "\"e\":\""), (unsigned long long)stored, (unsigned long long)stored, opaque);
    memcpy(header + head_size, body, (size_t)body_size);
    put32((uint8_t *)header - 8, (uint32_t)(4 + head_size + body_size));
    put32((uint8_t *)header - 4, (uint32_t)head_size);
    c->out_size += (size_t)(8 + head_size + body_size);
}

/* Cut what was read into frames; 0 if it is none of ours. */
static int cut(connection *c) {
    size_t at = 0;
    while (c->in_size - at >= 8) {
        size_t size = be32(c->in + at), head = be32(c->in + at + 4) & 0xFFFFFF;
        if (size > ROOM - 4 || head + 4 > size || be32(c->in + at + 4) >> 24) return 0;
        if (c->in_size - at < 4 + size) break;
        char text[8192];
        size_t most = head < sizeof text - 1 ? head : sizeof text - 1;
        memcpy(text, c->in + at + 8, most);
        text[most] = 0;
        answer(c, text);
        at += 4 + size;
    }
    memmove(c->in, c->in + at, c->in_size - at);
    c->in_size -= at;
    return 1;
}

static int serve(int place) {
    connection *c = &conns[place];
    ssize_t got = recv(polled[place].fd, c->in + c->in_size, ROOM - c->in_size, 0);
    if (got <= 0) return 0;
    c->in_size += (size_t)got;
    if (!cut(c)) return 0;
    for (size_t done = 0; done < c->out_size;) {
        ssize_t sent = send(polled[place].fd, c->out + done, c->out_size - done, MSG_NOSIGNAL);
        if (sent <= 0) return 0;
        done += (size_t)sent;
    }
    c->out_size = 0;
    return 1;
}

static void no_delay(int fd) { int one = 1; setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); }

static int serve_all(void) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof here;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&here, size) || listen(listener, 64)) return 1;
    getsockname(listener, (struct sockaddr *)&here, &size);
    printf("port %d\n", port = ntohs(here.sin_port));
    fflush(stdout);
    polled[0] = (struct pollfd){.fd = listener, .events = POLLIN};
    for (;;) {
        if (poll(polled, (nfds_t)n_polled, -1) < 0) return 1;
        for (int place = n_polled - 1; place > 0; place--) {
            if (!polled[place].revents || serve(place)) continue;
            close(polled[place].fd);
            connection freed = conns[place];
            n_polled--;
            polled[place] = polled[n_polled];
            conns[place] = conns[n_polled];
            conns[n_polled] = freed;
        }
        if (polled[0].revents && n_polled <= CONNECTIONS) {
            connection *c = &conns[n_polled];
            if (c->in == NULL) { c->in = malloc(ROOM); c->out = malloc(2 * ROOM); }
            c->in_size = c->out_size = 0;
            polled[n_polled] = (struct pollfd){.fd = accept(listener, NULL, NULL), .events = POLLIN};
            no_delay(polled[n_polled++].fd);
        }
    }
}

static int64_t now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int loop(int to, const char *file, int count) {
    static uint8_t request[1 << 16], room[1 << 16];
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons((uint16_t)to)};
    FILE *from = fopen(file, "rb");
    int64_t *times = malloc(sizeof *times * (size_t)count), cpu;
    int sock = socket(AF_INET, SOCK_STREAM, 0);
    if (from == NULL || times == NULL || connect(sock, (struct sockaddr *)&there, sizeof there)) return 1;
    size_t size = fread(request, 1, sizeof request, from);
    no_delay(sock);
    cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < count; i++) {
        int64_t began = now(CLOCK_MONOTONIC);
        size_t got = 0;
        if (send(sock, request, size, MSG_NOSIGNAL) != (ssize_t)size) return 1;
        while (got < 4 || got < 4 + be32(room)) {
            ssize_t more = recv(sock, room + got, sizeof room - got, 0);
            if (more <= 0) return 1;
            got += (size_t)more;
        }
        times[i] = now(CLOCK_MONOTONIC) - began;
    }
    cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    qsort(times, (size_t)count, sizeof *times, ascending);
    printf("%lld %lld\n", (long long)times[count / 2], (long long)(cpu / count));
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 5 && strcmp(argv[1], "loop") == 0) return loop(atoi(argv[2]), argv[3], atoi(argv[4]));
    return argc == 1 ? serve_all() : 2;
}
