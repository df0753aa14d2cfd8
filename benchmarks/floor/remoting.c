/* The floor of the remoting codec: walks the same bytes and copies the same bodies or columns, in plain C.

   usage: remoting walk|bodies|columns|encode FILE
   FILE is the body of a pull reply; `encode` builds a batch body of as many messages, same bodies, same properties.
   Prints nanoseconds per message over one round of some milliseconds. Every length is checked, as the codec must. */

#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

typedef struct {
    const uint8_t *start, *body, *topic, *text;
    uint32_t body_size, topic_size, text_size;
} message;

static uint32_t be32(const uint8_t *p) { uint32_t n; memcpy(&n, p, 4); return __builtin_bswap32(n); }
static uint64_t be64(const uint8_t *p) { uint64_t n; memcpy(&n, p, 8); return __builtin_bswap64(n); }
static uint32_t be16(const uint8_t *p) { return (uint32_t)p[0] << 8 | p[1]; }
static void put32(uint8_t *p, uint32_t v) { v = __builtin_bswap32(v); memcpy(p, &v, 4); }

/* The message at `p`, of `left` bytes at most; gives its size, 0 if it does not fit. */
static uint32_t next(const uint8_t *p, size_t left, message *m) {
    if (left < 91) return 0;
    uint32_t size = be32(p), magic = be32(p + 4), flags = be32(p + 36);
    size_t at = 84 + (flags & 0x10 ? 12 : 0) + (flags & 0x20 ? 12 : 0);
    if (size > left || size < at + 7 || (magic != 0xDAA320A7u && magic != 0xDAA320ABu)) return 0;
    m->start = p;
    m->body_size = be32(p + at);
    m->body = p + at + 4;
    if (m->body_size > size - at - 7) return 0;
    at += 4 + m->body_size;
    m->topic_size = p[at];
    m->topic = p + at + 1;
    if (m->topic_size > size - at - 3) return 0;
    at += 1 + m->topic_size;
    m->text_size = be16(p + at);
    m->text = p + at + 2;
    return m->text_size > size - at - 2 ? 0 : size;
}

static volatile uint64_t sink, sink_body, sink_text; /* so that nothing is optimised away */

static size_t walk(const uint8_t *p, size_t left) {
    size_t count = 0;
    uint64_t body = 0, text = 0, topic = 0;
    message m;
    for (uint32_t size; left > 0; p += size, left -= size, count++) {
        if ((size = next(p, left, &m)) == 0) abort();
        body += m.body_size;
        topic += m.topic_size;
        text += m.text_size;
    }
    sink = topic;
    sink_body = body;
    sink_text = text;
    return count;
}

static size_t bodies(const uint8_t *p, size_t left) {
    size_t count = 0, room = 0;
    uint8_t **all = NULL;
    message m;
    for (uint32_t size; left > 0; p += size, left -= size, count++) {
        if ((size = next(p, left, &m)) == 0) abort();
        if (count == room) all = realloc(all, (room = room * 2 + 64) * sizeof *all);
        all[count] = malloc(m.body_size);
        memcpy(all[count], m.body, m.body_size);
    }
    for (size_t i = 0; i < count; i++) { sink += all[i][0]; free(all[i]); }
    free(all);
    return count;
}

typedef struct {
    uint8_t *data;
    int32_t *ends;
    size_t size, room, rows, rows_room;
} column;

static void open_column(column *c, size_t room, size_t rows) {
    c->data = malloc(c->room = room);
    c->ends = malloc((c->rows_room = rows) * 4);
}

static void add(column *c, const uint8_t *p, size_t n) {
    if (c->size + n > c->room) c->data = realloc(c->data, c->room = (c->size + n) * 2);
    if (c->rows == c->rows_room) c->ends = realloc(c->ends, (c->rows_room = c->rows_room * 2 + 64) * 4);
    memcpy(c->data + c->size, p, n);
    c->size += n;
    c->ends[c->rows++] = (int32_t)c->size;
}

static void drop(column *c) { sink += c->size; free(c->data); free(c->ends); }

/* Splits property text; puts names and values into their columns and gives the tag's and the keys' value. */
static void split(const message *m, column *names, column *values, const uint8_t **tag, size_t *tag_size,
                  const uint8_t **keys, size_t *keys_size) {
    const uint8_t *p = m->text, *end = p + m->text_size;
    while (p < end) {
        const uint8_t *stop = memchr(p, 2, end - p);
        if (stop == NULL) stop = end;
        const uint8_t *middle = memchr(p, 1, stop - p);
        if (middle != NULL && middle > p && middle + 1 < stop) {
            size_t n = middle - p;
            add(names, p, n);
            add(values, middle + 1, stop - middle - 1);
            if (n == 4 && memcmp(p, "TAGS", 4) == 0) { *tag = middle + 1; *tag_size = stop - middle - 1; }
            if (n == 4 && memcmp(p, "KEYS", 4) == 0) { *keys = middle + 1; *keys_size = stop - middle - 1; }
        }
        p = stop + 1;
    }
}

static size_t columns(const uint8_t *p, size_t left) {
    column body = {0}, tag = {0}, keys = {0}, names = {0}, values = {0};
    int64_t *numbers[3] = {0};
    int32_t *rows = NULL;
    size_t count = 0, rows_all = walk(p, left), text = sink_text, bytes = sink_body;
    message m;
    for (int i = 0; i < 3; i++) numbers[i] = malloc(rows_all * 8);
    rows = malloc(rows_all * 4);
    open_column(&body, bytes, rows_all);
    open_column(&tag, 16 * rows_all, rows_all);
    open_column(&keys, 16 * rows_all, rows_all);
    open_column(&names, text, 8 * rows_all);
    open_column(&values, text, 8 * rows_all);
    for (uint32_t size; left > 0; p += size, left -= size, count++) {
        if ((size = next(p, left, &m)) == 0) abort();
        const uint8_t *tag_at = NULL, *keys_at = NULL;
        size_t tag_size = 0, keys_size = 0;
        split(&m, &names, &values, &tag_at, &tag_size, &keys_at, &keys_size);
        add(&body, m.body, m.body_size);
        add(&tag, tag_at, tag_size);
        add(&keys, keys_at, keys_size);
        rows[count] = (int32_t)names.rows;
        numbers[0][count] = (int64_t)be64(p + 20);
        numbers[1][count] = (int64_t)be64(p + 40);
        numbers[2][count] = (int64_t)be64(p + 56);
    }
    for (int i = 0; i < 3; i++) { sink += (uint64_t)numbers[i][0]; free(numbers[i]); }
    free(rows);
    drop(&body); drop(&tag); drop(&keys); drop(&names); drop(&values);
    return count;
}

static size_t encode(const uint8_t *p, size_t left) {
    size_t count = 0, size_out = 0, room = 0;
    uint8_t *out = NULL;
    message m;
    for (uint32_t size; left > 0; p += size, left -= size, count++) {
        if ((size = next(p, left, &m)) == 0) abort();
        uint32_t element = 22 + m.body_size + m.text_size;
        if (size_out + element > room) out = realloc(out, room = (size_out + element) * 2);
        uint8_t *at = out + size_out;
        put32(at, element);
        memset(at + 4, 0, 12);
        put32(at + 16, m.body_size);
        memcpy(at + 20, m.body, m.body_size);
        at[20 + m.body_size] = (uint8_t)(m.text_size >> 8);
        at[21 + m.body_size] = (uint8_t)m.text_size;
        memcpy(at + 22 + m.body_size, m.text, m.text_size);
        size_out += element;
    }
    sink += out[size_out - 1];
    free(out);
    return count;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv) {
    static const struct { const char *name; size_t (*run)(const uint8_t *, size_t); } modes[] = {
        {"walk", walk}, {"bodies", bodies}, {"columns", columns}, {"encode", encode}};
#ifdef __GLIBC__
    mallopt(M_TRIM_THRESHOLD, 256 << 20); /* memory stays with the process, as in a long-lived client */
    mallopt(M_MMAP_THRESHOLD, 256 << 20);
#endif
    FILE *file = argc == 3 ? fopen(argv[2], "rb") : NULL;
    if (file == NULL) return 2;
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(size);
    if (data == NULL || fread(data, 1, size, file) != size) return 2;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(argv[1], modes[i].name) != 0) continue;
        size_t count = 0;
        for (double start = now(); now() - start < 1e6;) modes[i].run(data, size); /* warm */
        double start = now(), spent;
        do {
            for (int run = 0; run < 64; run++) count += modes[i].run(data, size); /* reading the clock costs, too */
        } while ((spent = now() - start) < 4e6);
        printf("%.3f\n", spent / (double)count);
        free(data);
        return 0;
    }
    return 2;
}
