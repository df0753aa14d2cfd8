# The three calls that touch a descriptor. Non-blocking ones keep the GIL: giving it up costs a switch interval when
# another thread is busy.

cdef extern from *:
    """
    #ifndef _WIN32
    #include <errno.h>
    #include <poll.h>
    #include <sys/socket.h>
    #include <sys/types.h>
    #include <sys/uio.h>
    #ifndef MSG_NOSIGNAL
    #define MSG_NOSIGNAL 0
    #endif
    static long mq_recv(int fd, void *at, size_t room) {
        ssize_t n = recv(fd, at, room, MSG_DONTWAIT);
        return n < 0 ? -errno : n;
    }
    static long mq_send(int fd, struct iovec *runs, int count) {
        struct msghdr message = {0};
        message.msg_iov = runs;
        message.msg_iovlen = count;
        ssize_t n = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        return n < 0 ? -errno : n;
    }
    static long mq_wait(int fd, int ms) {
        struct pollfd one = {fd, POLLIN, 0};
        int n = poll(&one, 1, ms);
        return n < 0 ? -errno : n;
    }
    #else
    #include <errno.h>
    struct iovec { void *iov_base; size_t iov_len; };
    static long mq_recv(int fd, void *at, size_t room) { return -ENOSYS; }
    static long mq_send(int fd, struct iovec *runs, int count) { return -ENOSYS; }
    static long mq_wait(int fd, int ms) { return -ENOSYS; }
    #endif
    """
    cdef struct iovec:
        void *iov_base
        size_t iov_len
    long mq_recv(int fd, void *at, size_t room) nogil
    long mq_send(int fd, iovec *runs, int count) nogil
    long mq_wait(int fd, int ms) nogil
    enum:
        EAGAIN
        EWOULDBLOCK

WOULD_BLOCK = -EAGAIN

cdef enum:
    MOST_RUNS = 64


cdef tuple receive(FrameReader reader, int fd):
    cdef list frames = []
    cdef long received
    cdef Py_ssize_t room
    reader.make_room(SMALL_BUFFER)
    room = reader.room - reader.stop
    received = mq_recv(fd, reader.buffer + reader.stop, room if room < READ_SIZE else READ_SIZE)
    if received > 0 and reader.error is None:
        reader.stop += received
        reader.cut_held(frames)
        if received == room and reader.start == reader.stop:
            reader.make_room(READ_SIZE)  # a busy link: read more at once from now on
    return frames, -EAGAIN if received == -EWOULDBLOCK else received


def send_now(int fd, buffers not None):
    """One non-blocking gathering send: bytes sent, or -errno."""
    cdef iovec[MOST_RUNS] runs
    cdef Run run
    cdef int count = 0
    cdef long sent
    cdef list held = []
    for data in buffers:
        if count == MOST_RUNS:
            break
        held.append(hold(data, &run))
        runs[count].iov_base = <void *>run.at
        runs[count].iov_len = run.size
        count += 1
    sent = mq_send(fd, runs, count)
    return -EAGAIN if sent == -EWOULDBLOCK else sent
