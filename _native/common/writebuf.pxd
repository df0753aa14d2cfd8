"""The write buffer that leaves as bytes without a copy."""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t


cdef extern from "writebuf.h":
    ctypedef struct mq_writer:
        PyObject *bytes
        uint8_t *start
        Py_ssize_t size
        Py_ssize_t room

    int mq_writer_open(mq_writer *w, Py_ssize_t room) except -1
    void mq_writer_drop(mq_writer *w)
    uint8_t *mq_room(mq_writer *w, Py_ssize_t size) except NULL
    int mq_write(mq_writer *w, const void *data, Py_ssize_t size) except -1
    bytes mq_writer_done(mq_writer *w)
