# The bytes behind an argument.

cdef extern from "Python.h":
    unsigned long PyLong_AsUnsignedLongMask(object value) except? -1


cdef struct Span:
    const uint8_t *start
    size_t size
    bint held     # whether `view` must be given back
    Py_buffer view


cdef inline int span_of(object data, Span *span) except -1:
    """`bytes` are read where they lie; anything else is asked for a buffer in one piece. Pair it with `done`."""
    if PyBytes_CheckExact(data):
        span.start = <const uint8_t *> PyBytes_AS_STRING(data)
        span.size = PyBytes_GET_SIZE(data)
        span.held = False
        return 0
    PyObject_GetBuffer(data, &span.view, PyBUF_SIMPLE)
    span.start = <const uint8_t *> span.view.buf
    span.size = span.view.len
    span.held = True
    return 0


cdef inline void done(Span *span) noexcept:
    if span.held:
        PyBuffer_Release(&span.view)
