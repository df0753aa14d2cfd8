"""Endian reads and writes and the checked cursor, for every extension."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t


cdef extern from "cursor.h" nogil:
    ctypedef struct mq_cursor:
        const uint8_t *at
        const uint8_t *end
        int bad

    mq_cursor mq_open(const uint8_t *at, const uint8_t *end)
    int64_t mq_left(const mq_cursor *c)
    const uint8_t *mq_skip(mq_cursor *c, int64_t size)
    void mq_narrow(mq_cursor *c, const uint8_t *start, int64_t size)
    int32_t mq_u8(mq_cursor *c)
    int16_t mq_i16(mq_cursor *c)
    int32_t mq_i32(mq_cursor *c)
    int64_t mq_i64(mq_cursor *c)

    int16_t mq_be16(const uint8_t *p)
    int32_t mq_be32(const uint8_t *p)
    int64_t mq_be64(const uint8_t *p)
    void mq_put16(uint8_t *p, int16_t v)
    void mq_put32(uint8_t *p, int32_t v)
    void mq_put64(uint8_t *p, int64_t v)
