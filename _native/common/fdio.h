/* The three calls on a descriptor; each gives a number of bytes or -errno, and never blocks but where it says so. */

#ifndef MQ_FDIO_H
#define MQ_FDIO_H

#include <Python.h>
#include <errno.h>
#include <stdint.h>

#define MQ_IOV_MOST 64 /* buffers of one gathering send */

typedef struct { const void *data; size_t size; } mq_part;

#ifdef _WIN32

/* Sockets of Windows are no descriptors of the C library: the drivers use the socket object there. */
#define MQ_WOULD_BLOCK (-EAGAIN)
static inline int64_t mq_fd_receive(int fd, void *at, size_t size) { (void)fd; (void)at; (void)size; return -ENOSYS; }
static inline int mq_fd_wait(int fd, int ms, int bell) { (void)fd; (void)ms; (void)bell; return -ENOSYS; }
static inline int mq_fd_glance(int fd) { (void)fd; return -ENOSYS; }
static inline int64_t mq_fd_send(int fd, const mq_part *parts, int count) {
    (void)fd; (void)parts; (void)count; return -ENOSYS;
}
static inline void mq_fd_ring(int bell) { (void)bell; }
static inline void mq_fd_look_after(int poller, const double *const *borrowed, int count, double park, double until) {
    (void)poller; (void)borrowed; (void)count; (void)park; (void)until;
}
static inline void mq_note(double *at, double value) { *at = value; }
static inline double mq_seconds(int wall) { (void)wall; return 0; }
static inline int mq_pid(void) { return 0; }

#else

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MQ_WOULD_BLOCK (-EAGAIN) /* EWOULDBLOCK is the same number, or made so below */

#ifdef MSG_NOSIGNAL
#  define MQ_SEND_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL)
#else
#  define MQ_SEND_FLAGS MSG_DONTWAIT /* Python ignores SIGPIPE */
#endif

static inline int mq_fd_failed(void) {
    return errno == EWOULDBLOCK ? MQ_WOULD_BLOCK : -errno;
}

/* One recv; EINTR cannot wait here, so it is tried again. */
static inline int64_t mq_fd_receive(int fd, void *at, size_t size) {
    ssize_t got;
    do got = recv(fd, at, size, MSG_DONTWAIT); while (got < 0 && errno == EINTR);
    return got < 0 ? mq_fd_failed() : (int64_t)got;
}

/* 0 once there is something to read or the stream has ended, MQ_WOULD_BLOCK at the timeout or when only the bell rang
   (a descriptor, or -1: no bell); call without the GIL. */
static inline int mq_fd_wait(int fd, int ms, int bell) {
    struct pollfd both[2] = {{.fd = fd, .events = POLLIN}, {.fd = bell, .events = POLLIN}};
    int ready = poll(both, bell < 0 ? 1 : 2, ms);
    return ready < 0 ? mq_fd_failed() : ready > 0 && both[0].revents ? 0 : MQ_WOULD_BLOCK;
}

/* As mq_fd_wait, without bell and for a moment only: long enough for another thread to have taken the GIL. */
static inline int mq_fd_glance(int fd) {
#ifdef __linux__
    struct pollfd one = {.fd = fd, .events = POLLIN};
    const struct timespec moment = {0, 200000};
    int ready = ppoll(&one, 1, &moment, NULL);
    return ready < 0 ? mq_fd_failed() : ready > 0 ? 0 : MQ_WOULD_BLOCK;
#else
    return mq_fd_wait(fd, 1, -1);
#endif
}

/* One gathering send of at most MQ_IOV_MOST parts. */
static inline int64_t mq_fd_send(int fd, const mq_part *parts, int count) {
    struct iovec vectors[MQ_IOV_MOST];
    struct msghdr message = {.msg_iov = vectors};
    ssize_t sent;
    if (count == 1) { /* the kernel has less to look at */
        do sent = send(fd, parts->data, parts->size, MQ_SEND_FLAGS); while (sent < 0 && errno == EINTR);
        return sent < 0 ? mq_fd_failed() : (int64_t)sent;
    }
    for (int i = 0; i < count; i++) {
        vectors[i].iov_base = (void *)parts[i].data;
        vectors[i].iov_len = parts[i].size;
    }
    message.msg_iovlen = count;
    do sent = sendmsg(fd, &message, MQ_SEND_FLAGS); while (sent < 0 && errno == EINTR);
    return sent < 0 ? mq_fd_failed() : (int64_t)sent;
}

/* Make the other end of a bell (see mqclient/io/poller.py) readable; one that is full rings already. */
static inline void mq_fd_ring(int bell) {
    uint64_t one = 1;
    ssize_t done = write(bell, &one, sizeof one);
    (void)done;
}

/* Of the clock that Python calls monotonic, or of the wall. */
static inline double mq_seconds(int wall) {
    struct timespec now;
    clock_gettime(wall ? CLOCK_REALTIME : CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A time that a thread without the GIL may look at meanwhile. */
static inline void mq_note(double *at, double value) { __atomic_store(at, &value, __ATOMIC_RELAXED); }

static inline double mq_noted(const double *at) {
    double value;
    __atomic_load(at, &value, __ATOMIC_RELAXED);
    return value;
}

/* Until the poller has something, or `until`, or until one of the times at which callers borrowed is `park` seconds old,
   and so is the call: who comes back and can do nothing about it waits that long again. Infinity: it is borrowed. */
static inline void mq_fd_look_after(int poller, const double *const *borrowed, int count, double park, double until) {
    struct pollfd one = {.fd = poller, .events = POLLIN};
    const double began = mq_seconds(0);
    double now = began;
    while (now < until) {
        double next = until < now + park ? until : now + park;
        for (int i = 0; i < count; i++) {
            const double last = mq_noted(borrowed[i]);
            const double due = (last > now ? now : last > began ? last : began) + park;
            if (due <= now) return;
            if (due < next) next = due;
        }
        if (poll(&one, 1, (int)((next - now) * 1000) + 1) > 0) return;
        now = mq_seconds(0);
    }
}

static inline int mq_pid(void) { return (int)getpid(); }

#endif
#endif
