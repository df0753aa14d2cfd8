"""Protobuf's wire format over the checked cursor."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from common.cursor cimport mq_cursor


cdef extern from "varint.h" nogil:
    ctypedef struct mq_field:
        uint32_t tag
        int64_t value
        const uint8_t *start
        int64_t size

    uint64_t mq_varint(mq_cursor *c)
    bint mq_next_field(mq_cursor *c, mq_field *f)
    int mq_varint_size(uint64_t value)
    uint8_t *mq_put_varint(uint8_t *p, uint64_t value)
    uint8_t *mq_put_number(uint8_t *p, uint32_t field, int64_t value)
    uint8_t *mq_put_data(uint8_t *p, uint32_t field, const void *data, int64_t size)
