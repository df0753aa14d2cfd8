# The numbers of the protocol, and the small steps between the wire and Python.

cdef extern from "crc.h" nogil:
    uint32_t mq_crc32c(uint32_t crc, const uint8_t *p, size_t n)

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    int PyBytes_CheckExact(object o)

cdef enum:
    T_SEND = 6
    T_SEND_RECEIPT = 7
    T_MESSAGE = 9
    T_ACK = 10
    T_FLOW = 11
    T_PING = 18
    T_PONG = 19

cdef enum:
    NUMBER = 0  # wire types, added to number << 3
    DATA = 2

cdef enum:
    E_SIZE = 0  # CommandAck.ValidationError
    E_DECOMPRESSION = 1
    E_CHECKSUM = 2
    E_BATCH = 3

SEND, SEND_RECEIPT, MESSAGE, ACK, FLOW, PING, PONG = 6, 7, 9, 10, 11, 18, 19
INDIVIDUAL, CUMULATIVE = 0, 1
UNCOMPRESSED_SIZE_CORRUPTION, DECOMPRESSION_ERROR, CHECKSUM_MISMATCH = 0, 1, 2
BATCH_DESERIALIZE_ERROR, DECRYPTION_ERROR = 3, 4
MAX_MESSAGE = 5242880
FRAME_PADDING = 10240

cdef struct Span:
    const uint8_t *at  # NULL: absent
    int64_t size


cdef inline void hold(Span *span, mq_field *field) noexcept nogil:
    span.at = field.start
    span.size = field.size


cdef inline str span_text(Span span):
    return None if span.at == NULL else mq_text(span.at, span.size)


cdef inline bytes span_bytes(Span span):
    return None if span.at == NULL else PyBytes_FromStringAndSize(<const char *>span.at, span.size)


cdef inline Span utf8(object text) except *:
    """The UTF-8 of a string; it lives as long as the string."""
    cdef Span span
    cdef Py_ssize_t size
    if not isinstance(text, str):
        raise TypeError(f"str wanted, not {type(text).__name__}")
    span.at = <const uint8_t *>PyUnicode_AsUTF8AndSize(text, &size)
    span.size = size
    return span


cdef bint read_pair(Span pair, Span *key, Span *value) noexcept nogil:
    """KeyValue; False if it is malformed."""
    cdef mq_cursor c = mq_open(pair.at, pair.at + pair.size)
    cdef mq_field f
    key.at = value.at = pair.at
    key.size = value.size = 0
    while mq_next_field(&c, &f):
        if f.tag == (1 << 3 | DATA):
            hold(key, &f)
        elif f.tag == (2 << 3 | DATA):
            hold(value, &f)
    return not c.bad


cdef dict read_properties(Span metadata, uint32_t tag):
    """The KeyValues under a tag as a dict; an empty one if any of them is malformed."""
    cdef mq_cursor c = mq_open(metadata.at, metadata.at + metadata.size)
    cdef mq_field f
    cdef Span pair, key, value
    cdef dict found = {}
    while mq_next_field(&c, &f):
        if f.tag == tag:
            hold(&pair, &f)
            if not read_pair(pair, &key, &value):
                return {}
            found[mq_text(key.at, key.size)] = mq_text(value.at, value.size)
    return found


cdef bint add_words(Span packed, list into) except -1:
    """Append a packed list of varints; False if it is malformed."""
    cdef mq_cursor c = mq_open(packed.at, packed.at + packed.size)
    cdef int64_t word
    while c.at < c.end:
        word = <int64_t>mq_varint(&c)
        if c.bad:
            return False
        into.append(word)
    return True
