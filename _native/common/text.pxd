"""Python strings from wire text, shared where the same text comes again."""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t


cdef extern from "text.h":
    bint mq_is_ascii(const uint8_t *p, Py_ssize_t n) nogil
    str mq_text(const uint8_t *p, Py_ssize_t n)
    bint mq_same(PyObject *text, const uint8_t *p, Py_ssize_t n) nogil
    str mq_text_memo(PyObject **memo, const uint8_t *p, Py_ssize_t n, Py_ssize_t keep)
    void mq_hex(uint8_t *out, const uint8_t *p, Py_ssize_t n) nogil
