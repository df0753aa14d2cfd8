"""The three calls on a descriptor; each gives a number of bytes or -errno."""

from libc.stdint cimport int64_t


cdef extern from "fdio.h":
    const int MQ_IOV_MOST
    const int MQ_WOULD_BLOCK
    ctypedef struct mq_part:
        const void *data
        size_t size

    int64_t mq_fd_receive(int fd, void *at, size_t size) nogil
    int mq_fd_wait(int fd, int ms, int bell) nogil
    int mq_fd_glance(int fd) nogil
    int64_t mq_fd_send(int fd, const mq_part *parts, int count) nogil
    void mq_fd_ring(int bell) nogil
    void mq_fd_look_after(int poller, const double *const *borrowed, int count, double park, double until) nogil
    void mq_note(double *at, double value) nogil
    double mq_seconds(int wall) nogil
    int mq_pid() nogil
