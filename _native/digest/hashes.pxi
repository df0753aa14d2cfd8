# Hashes of keys: murmur3, Java's String.hashCode, Boost's string hash.

cdef extern from *:
    """
    /* Numbers from bytes, whatever the byte order of the machine: compilers see one load. */
    static inline uint32_t mq_little32(const uint8_t *p) {
        return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    }

    static inline uint64_t mq_little64(const uint8_t *p) {
        return mq_little32(p) | (uint64_t)mq_little32(p + 4) << 32;
    }

    /* The two halves of the 128-bit product, folded onto each other. */
    static inline uint64_t mq_fold_product(uint64_t a, uint64_t b) {
    #ifdef __SIZEOF_INT128__
        unsigned __int128 product = (unsigned __int128)a * b;
        return (uint64_t)(product >> 64) ^ (uint64_t)product;
    #else
        uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
        uint64_t low = a0 * b0, left = a1 * b0, right = a0 * b1;
        uint64_t middle = (low >> 32) + (uint32_t)left + (uint32_t)right;
        return (a1 * b1 + (left >> 32) + (right >> 32) + (middle >> 32)) ^ (a * b);
    #endif
    }
    """
    uint32_t mq_little32(const uint8_t *p) nogil
    uint64_t mq_little64(const uint8_t *p) nogil
    uint64_t mq_fold_product(uint64_t a, uint64_t b) nogil


cdef extern from "Python.h":
    int PyUnicode_KIND(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    void *PyUnicode_DATA(object text)
    Py_UCS4 PyUnicode_READ(int kind, void *data, Py_ssize_t index)


cdef inline uint64_t tail(const uint8_t *p, size_t size) noexcept nogil:
    """Less than 8 bytes as a number."""
    cdef uint64_t word = 0
    cdef size_t place
    for place in range(size):
        word |= <uint64_t> p[place] << (8 * place)
    return word


cdef inline uint32_t rotated(uint32_t word, int by) noexcept nogil:
    return word << by | word >> (32 - by)


cdef inline uint32_t murmur_mix(uint32_t block) noexcept nogil:
    return rotated(block * <uint32_t> 0xCC9E2D51, 15) * <uint32_t> 0x1B873593


cdef uint32_t murmur(const uint8_t *p, size_t size, uint32_t state) noexcept nogil:
    cdef size_t left = size
    while left >= 4:
        state = rotated(state ^ murmur_mix(mq_little32(p)), 13) * 5 + <uint32_t> 0xE6546B64
        p += 4
        left -= 4
    state ^= murmur_mix(<uint32_t> tail(p, left)) ^ <uint32_t> size
    state = (state ^ state >> 16) * <uint32_t> 0x85EBCA6B
    state = (state ^ state >> 13) * <uint32_t> 0xC2B2AE35
    return state ^ state >> 16


cdef uint64_t boost(const uint8_t *p, size_t size) noexcept nogil:
    cdef uint64_t step = 0x9E3779B97F4A7C15
    cdef uint64_t factor = step * step
    cdef uint64_t weight = mq_fold_product(step, factor)
    cdef uint64_t state = weight ^ size
    while size >= 8:
        weight += step
        state ^= mq_fold_product(mq_little64(p) + weight, factor)
        p += 8
        size -= 8
    weight += step
    state ^= mq_fold_product(tail(p, size) + weight, factor)
    return mq_fold_product(state + weight, factor)


def murmur3_32(data, seed=0, /):
    """MurmurHash3 x86 32-bit, unsigned; Pulsar hashes the UTF-8 bytes of a key with seed 0."""
    cdef Span span
    cdef uint32_t state = <uint32_t> PyLong_AsUnsignedLongMask(seed)
    span_of(data, &span)
    state = murmur(span.start, span.size, state)
    done(&span)
    return state


def boost_hash(data, /):
    """The C++ client's `BoostHash` of a key's UTF-8 bytes: 31 bits, not negative."""
    cdef Span span
    span_of(data, &span)
    cdef uint64_t state = boost(span.start, span.size)
    done(&span)
    return <uint32_t> state & <uint32_t> 0x7FFFFFFF


def java_string_hash(str text not None, /):
    """Java's `String.hashCode`: over UTF-16 code units, signed 32 bits."""
    cdef int kind = PyUnicode_KIND(text)
    cdef void *data = PyUnicode_DATA(text)
    cdef Py_ssize_t place
    cdef uint32_t state = 0, point
    for place in range(PyUnicode_GET_LENGTH(text)):
        point = PyUnicode_READ(kind, data, place)
        if point > 0xFFFF:
            point -= 0x10000
            state = 31 * state + (0xD800 | point >> 10)
            point = 0xDC00 | point & 0x3FF
        state = 31 * state + point
    return <int32_t> state
