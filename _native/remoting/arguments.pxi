# Arguments of our callers: bytes-like, text, numbers. What does not fit is a ConfigError.

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX
    object PyObject_GenericGetAttr(object of, object name)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1
    int PyUnicode_IS_COMPACT_ASCII(object text)
    void *PyUnicode_1BYTE_DATA(object text)
    str PyUnicode_New(Py_ssize_t size, Py_UCS4 highest)


cdef extern from *:
    """
    static int mq_not_made_by_hand(PyTypeObject *type) {
        if (PyDict_DelItemString(type->tp_dict, "__new__") < 0) return -1;
        type->tp_new = NULL;
        type->tp_vectorcall = NULL;
        PyType_Modified(type);
        return 0;
    }
    """
    ctypedef struct PyTypeObject:
        pass
    int not_made_by_hand "mq_not_made_by_hand"(PyTypeObject *type) except -1
    # So that Python code gets a TypeError, never an object whose pointers lead nowhere.


@cython.final
@cython.internal
cdef class Held:
    """A bytes-like argument, held while its bytes are read."""
    cdef Py_buffer buffer
    cdef bint taken

    def __cinit__(self, object data):
        PyObject_GetBuffer(data, &self.buffer, PyBUF_SIMPLE)
        self.taken = True

    def __dealloc__(self):
        if self.taken:
            PyBuffer_Release(&self.buffer)


cdef struct Run:  # bytes somewhere
    const uint8_t *at
    Py_ssize_t size


cdef object hold(object data, Run *run):
    """Where the bytes of `data` are, as long as the object given back lives."""
    cdef Held held
    if type(data) is bytes:
        run.at = <const uint8_t *>PyBytes_AS_STRING(data)
        run.size = PyBytes_GET_SIZE(data)
        return data
    held = Held(data)
    run.at = <const uint8_t *>held.buffer.buf
    run.size = held.buffer.len
    return held


cdef bytes as_bytes(object data):
    """`data` itself if it is bytes; else a copy, which nobody can change under us."""
    cdef Run run
    if type(data) is bytes:
        return <bytes>data
    held = hold(data, &run)
    return PyBytes_FromStringAndSize(<const char *>run.at, run.size)


cdef Run utf8_of(object text) except *:
    """The UTF-8 of a str, kept by the str."""
    cdef Run run
    if type(text) is str and PyUnicode_IS_COMPACT_ASCII(text):
        run.at = <const uint8_t *>PyUnicode_1BYTE_DATA(text)
        run.size = PyUnicode_GET_LENGTH(text)
        return run
    if not isinstance(text, str):
        raise TypeError(f"str wanted, not {type(text).__name__}")
    try:
        run.at = <const uint8_t *>PyUnicode_AsUTF8AndSize(text, &run.size)
    except UnicodeEncodeError as error:
        raise ConfigError(f"text that is no Unicode: {error.reason} at {error.start}") from error
    return run


cdef int32_t fit32(object number, str what) except? -1:
    cdef int64_t value = fit64(number, what)
    if value < -0x80000000 or value > 0x7FFFFFFF:
        raise ConfigError(f"{what} {number} is no 32-bit integer")
    return <int32_t>value


cdef int64_t fit64(object number, str what) except? -1:
    cdef int overflow
    cdef int64_t value = PyLong_AsLongLongAndOverflow(number, &overflow)
    if overflow != 0:
        raise ConfigError(f"{what} {number} is no 64-bit integer")
    return value


cdef int write_run(mq_writer *w, Run run) except -1:
    return mq_write(w, run.at, run.size)


cdef uint8_t *decimal(int64_t number, uint8_t *end) noexcept nogil:
    """Write the digits so that they end before `end`; gives where they begin, at most 20 bytes earlier."""
    cdef uint64_t rest = <uint64_t>number if number >= 0 else 0 - <uint64_t>number
    while True:
        end -= 1
        end[0] = <uint8_t>(48 + rest % 10)
        rest = rest // 10
        if rest == 0:
            break
    if number < 0:
        end -= 1
        end[0] = c'-'
    return end


cdef int write_number(mq_writer *w, int64_t number) except -1:
    cdef uint8_t[24] digits
    cdef uint8_t *at = decimal(number, digits + 24)
    return mq_write(w, at, digits + 24 - at)
