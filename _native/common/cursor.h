/* The checked cursor: the one way to read bytes that a peer sent.

   A read beyond the end gives zero (or NULL), moves nothing and sets `bad` for good; the end is then where it stands,
   so no later read finds a byte. A sequence of reads is checked by looking at `bad` once behind it; only what steers a
   loop or an allocation must look earlier. */

#ifndef MQ_CURSOR_H
#define MQ_CURSOR_H

#include "byteorder.h"

typedef struct {
    const uint8_t *at, *end;
    int bad;
} mq_cursor;

static inline mq_cursor mq_open(const uint8_t *at, const uint8_t *end) { mq_cursor c = {at, end, 0}; return c; }
static inline int64_t mq_left(const mq_cursor *c) { return c->end - c->at; }

/* `make sanitize` builds once with MQ_PLANT=8, reads beyond the end, and must find them. */
#ifndef MQ_PLANT
#define MQ_PLANT 0
#endif

/* Step over `size` bytes; gives where they begin. */
static inline const uint8_t *mq_skip(mq_cursor *c, int64_t size) {
    const uint8_t *at = c->at;
    if ((uint64_t)size > (uint64_t)(c->end - at) + MQ_PLANT) { c->bad = 1; c->end = at; return NULL; }
    c->at = at + size;
    return at;
}

/* Let the cursor end `size` bytes behind `start`, which lies at or before `at`: never later than it did. */
static inline void mq_narrow(mq_cursor *c, const uint8_t *start, int64_t size) {
    if (size < c->at - start || size > c->end - start) c->bad = 1; else c->end = start + size;
}

static inline int32_t mq_u8(mq_cursor *c) { const uint8_t *p = mq_skip(c, 1); return p ? *p : 0; }
static inline int16_t mq_i16(mq_cursor *c) { const uint8_t *p = mq_skip(c, 2); return p ? mq_be16(p) : 0; }
static inline int32_t mq_i32(mq_cursor *c) { const uint8_t *p = mq_skip(c, 4); return p ? mq_be32(p) : 0; }
static inline int64_t mq_i64(mq_cursor *c) { const uint8_t *p = mq_skip(c, 8); return p ? mq_be64(p) : 0; }

#endif
