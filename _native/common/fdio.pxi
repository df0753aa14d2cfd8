# send_now, for every extension with a frame reader.

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer

from common.fdio cimport MQ_IOV_MOST, MQ_WOULD_BLOCK, mq_fd_receive, mq_fd_send, mq_fd_wait, mq_part

WOULD_BLOCK = MQ_WOULD_BLOCK


def send_now(int fd, object buffers, /):
    """One non-blocking gathering send, the GIL kept: bytes sent (perhaps fewer than given), or -errno."""
    cdef Py_buffer views[64]
    cdef mq_part parts[64]
    cdef int count = 0
    cdef int64_t sent
    try:
        for buffer in buffers:
            if count == MQ_IOV_MOST:
                break
            PyObject_GetBuffer(buffer, &views[count], PyBUF_SIMPLE)
            parts[count].data = views[count].buf
            parts[count].size = <size_t>views[count].len
            count += 1
        sent = mq_fd_send(fd, parts, count)
    finally:
        while count > 0:
            count -= 1
            PyBuffer_Release(&views[count])
    return sent
