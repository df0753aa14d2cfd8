/* A write buffer that is a bytes object from the start: what was written leaves without a copy.

   mq_room gives where to write `size` more bytes, or NULL with MemoryError set (the buffer is then empty and closed). */

#ifndef MQ_WRITEBUF_H
#define MQ_WRITEBUF_H

#include <Python.h>
#include <string.h>
#include "byteorder.h"

typedef struct {
    PyObject *bytes;
    uint8_t *start;
    Py_ssize_t size, room;
} mq_writer;

static inline int mq_writer_open(mq_writer *w, Py_ssize_t room) {
    w->size = 0;
    w->room = room < 64 ? 64 : room;
    w->bytes = PyBytes_FromStringAndSize(NULL, w->room);
    w->start = w->bytes ? (uint8_t *)PyBytes_AS_STRING(w->bytes) : NULL;
    return w->bytes ? 0 : -1;
}

static inline void mq_writer_drop(mq_writer *w) {
    Py_CLEAR(w->bytes);
    w->start = NULL;
    w->size = w->room = 0;
}

static int mq_writer_grow(mq_writer *w, Py_ssize_t size) {
    Py_ssize_t room = w->room;
    if (w->bytes == NULL) return PyErr_NoMemory(), -1;
    while (room - w->size < size) {
        if (room > PY_SSIZE_T_MAX / 2 - size) return mq_writer_drop(w), PyErr_NoMemory(), -1;
        room *= 2;
    }
    if (_PyBytes_Resize(&w->bytes, room) < 0) return mq_writer_drop(w), -1;
    w->start = (uint8_t *)PyBytes_AS_STRING(w->bytes);
    w->room = room;
    return 0;
}

static inline uint8_t *mq_room(mq_writer *w, Py_ssize_t size) {
    if (w->room - w->size < size && mq_writer_grow(w, size) < 0) return NULL;
    uint8_t *at = w->start + w->size;
    w->size += size;
    return at;
}

static inline int mq_write(mq_writer *w, const void *data, Py_ssize_t size) {
    uint8_t *at = mq_room(w, size);
    if (at == NULL) return -1;
    memcpy(at, data, (size_t)size);
    return 0;
}

/* The bytes written; the writer is closed. */
static inline PyObject *mq_writer_done(mq_writer *w) {
    PyObject *bytes = w->bytes;
    Py_ssize_t size = w->size;
    w->bytes = NULL;
    w->start = NULL;
    if (bytes != NULL && size != PyBytes_GET_SIZE(bytes)) _PyBytes_Resize(&bytes, size);
    w->size = w->room = 0;
    return bytes;
}

#endif
