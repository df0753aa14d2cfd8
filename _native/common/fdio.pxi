# What every extension with a frame reader has.

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer

from common.fdio cimport (
    MQ_IOV_MOST, MQ_WOULD_BLOCK, mq_fd_glance, mq_fd_look_after, mq_fd_receive, mq_fd_send, mq_fd_wait, mq_part,
    mq_seconds,
)

cdef enum:
    PARKED_MOST = 64  # of more the others are looked at each time

cdef double CONTENDED = 0.001  # seconds that the GIL took to come back, so that somebody burns beside us

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


cdef int wait_for_parked(int poller, list readers, double park, double seconds) except -1:
    """As `FrameReader.look_after`."""
    cdef const double *borrowed[PARKED_MOST]
    cdef double until
    cdef int count = 0
    for reader in readers:
        if count == PARKED_MOST:
            seconds = min(seconds, park)
            break
        borrowed[count] = &(<FrameReader?>reader).last_borrow
        count += 1
    until = mq_seconds(False) + seconds
    with nogil:
        mq_fd_look_after(poller, borrowed, count, park, until)
    return 0


cdef int wait_beside(int fd, int ms, int bell, bint *contended) except 1:
    """As `FrameReader.wait`. Beside a thread that burns, whoever waits asks for the GIL at once, as the lanes do: what
    he waits for comes meanwhile."""
    cdef bint burns = False
    cdef double began = mq_seconds(False), ready, now
    cdef int blocked
    if contended[0] and ms:
        with nogil:
            blocked = mq_fd_glance(fd)
            ready = mq_seconds(False)
        now = mq_seconds(False)
        contended[0] = burns = now - ready > CONTENDED
        if blocked == MQ_WOULD_BLOCK:
            blocked = mq_fd_wait(fd, 0, -1)
        if ms > 0:
            ms = max(0, ms - <int>((now - began) * 1000))
        if blocked != MQ_WOULD_BLOCK or not ms:
            return blocked
    with nogil:
        blocked = mq_fd_wait(fd, ms, bell)
        ready = mq_seconds(False)
    contended[0] = burns or mq_seconds(False) - ready > CONTENDED
    return blocked
