/* The floor of the Pulsar codec: walks the same frame, checks the same CRC-32C with the same code and copies the same
   bodies or columns, in plain C.

   usage: pulsar walk|bodies|columns|encode FILE
   FILE is one MESSAGE frame of a plain batch; `encode` builds a batch payload of as many messages, same bodies.
   Prints nanoseconds per message over one round of some milliseconds. Every length is checked, as the codec must. */

#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "../../_native/common/crc.h"

typedef struct { const uint8_t *at, *end; } cursor;
typedef struct { const uint8_t *body, *key; uint64_t body_size, key_size, sequence, event_time; } message;

static volatile uint64_t sink; /* so that nothing is optimised away */

static uint32_t be32(const uint8_t *p) { uint32_t n; memcpy(&n, p, 4); return __builtin_bswap32(n); }
static void put32(uint8_t *p, uint32_t v) { v = __builtin_bswap32(v); memcpy(p, &v, 4); }

static uint64_t varint(cursor *c) {
    uint64_t value = 0;
    for (int shift = 0; shift < 70 && c->at < c->end; shift += 7) {
        uint8_t byte = *c->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
    abort();
}

static const uint8_t *take(cursor *c, uint64_t size) {
    const uint8_t *at = c->at;
    if (size > (uint64_t)(c->end - at)) abort();
    c->at += size;
    return at;
}

static cursor sized(cursor *c) {
    uint32_t size = be32(take(c, 4));
    const uint8_t *at = take(c, size);
    return (cursor){at, at + size};
}

/* The number of messages; leaves the cursor at the payload. */
static uint64_t open_frame(cursor *c) {
    uint64_t count = 1;
    take(c, 4);
    sized(c);
    take(c, 2);
    uint32_t crc = be32(take(c, 4));
    if (mq_crc32c(0, c->at, (size_t)(c->end - c->at)) != crc) abort();
    cursor metadata = sized(c);
    while (metadata.at < metadata.end) {
        uint64_t tag = varint(&metadata);
        if ((tag & 7) == 2) take(&metadata, varint(&metadata));
        else if (tag == 11 << 3) count = varint(&metadata);
        else varint(&metadata);
    }
    return count;
}

static void next(cursor *c, message *m) {
    cursor metadata = sized(c);
    memset(m, 0, sizeof *m);
    while (metadata.at < metadata.end) {
        uint64_t tag = varint(&metadata);
        if ((tag & 7) == 2) {
            uint64_t size = varint(&metadata);
            const uint8_t *at = take(&metadata, size);
            if (tag == (2 << 3 | 2)) { m->key = at; m->key_size = size; }
        } else {
            uint64_t value = varint(&metadata);
            if (tag == 3 << 3) m->body_size = value;
            else if (tag == 8 << 3) m->sequence = value;
            else if (tag == 5 << 3) m->event_time = value;
        }
    }
    m->body = take(c, m->body_size);
}

static uint64_t walk(cursor c) {
    uint64_t count = open_frame(&c), sum = 0;
    message m;
    for (uint64_t i = 0; i < count; i++) { next(&c, &m); sum += m.body_size + m.sequence; }
    sink = sum;
    return count;
}

static uint64_t bodies(cursor c) {
    uint64_t count = open_frame(&c);
    uint8_t **all = malloc(count * sizeof *all);
    message m;
    for (uint64_t i = 0; i < count; i++) {
        next(&c, &m);
        all[i] = malloc(m.body_size);
        memcpy(all[i], m.body, m.body_size);
    }
    for (uint64_t i = 0; i < count; i++) { sink += all[i][0]; free(all[i]); }
    free(all);
    return count;
}

typedef struct { uint8_t *data; int32_t *ends; size_t size, room; } column;

static void add(column *c, uint64_t row, const uint8_t *p, size_t n) {
    if (c->size + n > c->room) c->data = realloc(c->data, c->room = (c->size + n) * 2);
    if (n > 0) memcpy(c->data + c->size, p, n);
    c->size += n;
    c->ends[row] = (int32_t)c->size;
}

static void drop(column *c) { sink += c->size; free(c->data); free(c->ends); }

static uint64_t columns(cursor c) {
    uint64_t count = open_frame(&c);
    column body = {.ends = malloc(4 * count)}, key = {.ends = malloc(4 * count)};
    uint64_t *numbers[2] = {malloc(8 * count), malloc(8 * count)};
    message m;
    for (uint64_t i = 0; i < count; i++) {
        next(&c, &m);
        add(&body, i, m.body, m.body_size);
        add(&key, i, m.key, m.key_size);
        numbers[0][i] = m.sequence;
        numbers[1][i] = m.event_time;
    }
    for (int i = 0; i < 2; i++) { sink += numbers[i][0]; free(numbers[i]); }
    drop(&body); drop(&key);
    return count;
}

static uint8_t *put_varint(uint8_t *p, uint64_t value) {
    while (value > 127) { *p++ = (uint8_t)(value | 128); value >>= 7; }
    *p++ = (uint8_t)value;
    return p;
}

static message *parsed; /* of the frame, before time is taken */

static uint64_t encode(cursor c) {
    uint64_t count = 0;
    if (parsed == NULL) {
        count = open_frame(&c);
        parsed = calloc(count + 1, sizeof *parsed);
        for (uint64_t i = 0; i < count; i++) next(&c, &parsed[i]);
    }
    uint8_t *out = NULL;
    size_t size = 0, room = 0;
    for (count = 0; parsed[count].body != NULL; count++) {
        const message *m = &parsed[count];
        if (size + m->body_size + 64 > room) out = realloc(out, room = (size + m->body_size + 64) * 2);
        uint8_t *start = out + size, *p = start + 4;
        *p++ = 3 << 3;
        p = put_varint(p, m->body_size);
        *p++ = 8 << 3;
        p = put_varint(p, count);
        put32(start, (uint32_t)(p - start - 4));
        memcpy(p, m->body, m->body_size);
        size = (size_t)(p - out) + m->body_size;
    }
    sink += out[size - 1];
    free(out);
    return count;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv) {
    static const struct { const char *name; uint64_t (*run)(cursor); } modes[] = {
        {"walk", walk}, {"bodies", bodies}, {"columns", columns}, {"encode", encode}};
    FILE *file = argc == 3 ? fopen(argv[2], "rb") : NULL;
    if (file == NULL) return 2;
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(size);
    if (data == NULL || fread(data, 1, size, file) != size) return 2;
    cursor frame = {data, data + size};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(argv[1], modes[i].name) != 0) continue;
        uint64_t count = 0;
        for (double start = now(); now() - start < 1e6;) modes[i].run(frame); /* warm */
        double start = now(), spent;
        do {
            for (int run = 0; run < 64; run++) count += modes[i].run(frame); /* reading the clock costs, too */
        } while ((spent = now() - start) < 4e6);
        printf("%.3f\n", spent / (double)count);
        return 0;
    }
    return 2;
}
