# CRC-32 and CRC-32C: arguments and the interpreter lock; the work is in common/crc.h.

cdef extern from "crc.h" nogil:
    uint32_t mq_crc32(uint32_t crc, const uint8_t *p, size_t n)
    uint32_t mq_crc32c(uint32_t crc, const uint8_t *p, size_t n)

# Below, the lock is kept: a mebibyte takes 20 us with wide folding (200 us with the instruction alone), while getting
# the lock back from a busy thread takes up to 5 ms.
cdef size_t RELEASE_FROM = 1 << 20

ctypedef uint32_t (*Checksum)(uint32_t crc, const uint8_t *p, size_t n) noexcept nogil


cdef inline uint32_t checked(Checksum checksum, object data, object value) except? 0xffffffff:
    cdef Span span
    cdef uint32_t crc = <uint32_t> PyLong_AsUnsignedLongMask(value)
    span_of(data, &span)
    if span.size < RELEASE_FROM:
        crc = checksum(crc, span.start, span.size)
    else:
        with nogil:
            crc = checksum(crc, span.start, span.size)
    done(&span)
    return crc


def crc32(data, value=0, /):
    """CRC-32 as zlib and RocketMQ bodies use it, unsigned; `value` is the checksum of what came before."""
    return checked(mq_crc32, data, value)


def crc32c(data, value=0, /):
    """CRC-32C (Castagnoli) as Pulsar frames use it, unsigned; `value` is the checksum of what came before."""
    return checked(mq_crc32c, data, value)
