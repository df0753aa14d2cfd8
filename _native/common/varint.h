/* Protobuf's wire format over the checked cursor (cursor.h): varints, and the fields of a message one by one. */

#ifndef MQ_VARINT_H
#define MQ_VARINT_H

#include "cursor.h"

enum { MQ_VARINT = 0, MQ_FIXED64 = 1, MQ_BYTES = 2, MQ_FIXED32 = 5 };

typedef struct {
    uint32_t tag;         /* number << 3 | wire type */
    int64_t value;        /* of a number */
    const uint8_t *start; /* of bytes */
    int64_t size;
} mq_field;

static uint64_t mq_long_varint(mq_cursor *c) {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        const uint8_t *p = mq_skip(c, 1);
        if (p == NULL) return 0;
        value |= (uint64_t)(*p & 127) << shift;
        if (*p < 128) return value;
    }
    c->bad = 1;
    return 0;
}

/* Up to ten bytes; bits above the 64th are dropped, as every protobuf does. */
static inline uint64_t mq_varint(mq_cursor *c) {
    if (c->end > c->at && *c->at < 128 && !c->bad) return *c->at++;
    return mq_long_varint(c);
}

/* 1 with the next field; 0 at the end, or with `bad` set. */
static inline int mq_next_field(mq_cursor *c, mq_field *f) {
    if (c->at == c->end || c->bad) return 0;
    uint64_t tag = mq_varint(c);
    if (tag < 8 || tag > 0xffffffffu) { c->bad = 1; return 0; }
    f->tag = (uint32_t)tag;
    f->value = f->size = 0;
    f->start = c->at;
    switch (tag & 7) {
    case MQ_VARINT: f->value = (int64_t)mq_varint(c); break;
    case MQ_BYTES: {
        uint64_t size = mq_varint(c);
        if (size > (uint64_t)mq_left(c)) { c->bad = 1; return 0; }
        f->size = (int64_t)size;
        f->start = mq_skip(c, f->size);
        break;
    }
    case MQ_FIXED64: mq_skip(c, 8); break; /* hot commands have none: only stepped over */
    case MQ_FIXED32: mq_skip(c, 4); break;
    default: c->bad = 1;
    }
    return !c->bad;
}

static inline int mq_varint_size(uint64_t value) {
    int size = 1;
    while (value > 127) { value >>= 7; size++; }
    return size;
}

/* Each gives where the next byte goes; room is the caller's care. */
static inline uint8_t *mq_put_varint(uint8_t *p, uint64_t value) {
    while (value > 127) { *p++ = (uint8_t)(value | 128); value >>= 7; }
    *p++ = (uint8_t)value;
    return p;
}

static inline uint8_t *mq_put_number(uint8_t *p, uint32_t field, int64_t value) {
    return mq_put_varint(mq_put_varint(p, field << 3), (uint64_t)value);
}

static inline uint8_t *mq_put_data(uint8_t *p, uint32_t field, const void *data, int64_t size) {
    p = mq_put_varint(mq_put_varint(p, field << 3 | MQ_BYTES), (uint64_t)size);
    if (size > 0) memcpy(p, data, (size_t)size);
    return p + size;
}

#endif
