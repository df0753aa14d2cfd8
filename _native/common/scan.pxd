"""Scanning of property text and JSON strings."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t


cdef extern from "scan.h" nogil:
    ctypedef struct mq_entry:
        const uint8_t *name
        const uint8_t *value
        int32_t name_size
        int32_t value_size

    ctypedef struct mq_entries:
        pass

    const uint8_t *mq_json_plain(const uint8_t *at, const uint8_t *end)
    bint mq_separates(const uint8_t *p, int64_t size)
    bint mq_find_entry(const uint8_t *text, int32_t size, const char *name, int32_t n, mq_entry *out)
    mq_entries mq_open_entries(const uint8_t *text, int32_t size, uint16_t *scratch)
    bint mq_next_entry(mq_entries *e, mq_entry *out)
