# A request of a thread that waits alone: it goes out and its answer comes back in one call, if nothing unusual happens.

from cpython.exc cimport PyErr_CheckSignals

from libc.math cimport INFINITY

from common.fdio cimport mq_fd_glance, mq_note, mq_seconds


@cython.final
cdef class Crossing:
    """One request on its way: `what` belongs to whoever made it."""

    cdef readonly object passage, what
    cdef readonly int64_t opaque
    cdef readonly object slot
    cdef readonly bint answered

    def __init__(self, passage, opaque, what, /):
        self.passage = passage
        self.opaque = fit32(opaque, "opaque")
        self.what = what

    def take(self, slot, /):
        """Whether this slot stands for it from now on: nobody else's does, and it has no answer yet."""
        if self.answered or self.slot is not None:
            return False
        self.slot = slot
        return True


@cython.final
cdef class Lane:
    """One producer's."""

    able = True
    cdef public int patience_ms
    cdef readonly int64_t landed
    cdef readonly set under_way
    cdef object late
    cdef bint contended

    def __init__(self, late, /):
        self.late = late
        self.patience_ms = 100
        self.under_way = set()

    def exchange(self, Crossing crossing not None, bytes frame not None, Py_ssize_t count=1, /):
        """The frame of a good answer; None: nothing went out; else the slot that stands for it."""
        return self.over(crossing, frame, count, None)

    cdef object over(self, Crossing crossing, bytes frame, Py_ssize_t count, Receipts receipts):
        cdef object passage = crossing.passage, connection = passage.connection
        cdef FrameReader reader = passage.reader
        if passage.taken or not connection.parked or passage.mine() or not passage.reading.acquire(False):
            return None
        passage.taken = True
        mq_note(&reader.last_borrow, INFINITY)
        try:
            # No Python code runs up to the wait, and the GIL is kept: nobody, no Ctrl-C either, finds half of it done.
            if not is_clear(connection, passage.link):
                return None
            self.under_way.add(crossing)
            self.write(passage, connection, frame)
            return self.wait(passage, connection, crossing, count, receipts)
        finally:
            self.under_way.discard(crossing)
            passage.taken = False
            mq_note(&reader.last_borrow, mq_seconds(False))
            passage.reading.release()
            if connection.broken is not None or connection.closing:
                hand(passage, connection)

    cdef int write(self, object passage, object connection, bytes frame) except -1:
        """What the socket did not take the reader thread writes, and it meets the error if there is one."""
        cdef mq_part part
        cdef int64_t sent
        part.data = PyBytes_AS_STRING(frame)
        part.size = <size_t>PyBytes_GET_SIZE(frame)
        sent = mq_fd_send(passage.fd, &part, 1)
        if sent == PyBytes_GET_SIZE(frame):
            return 0
        return leave_rest(passage, connection, passage.link, frame[sent if sent > 0 else 0:])

    cdef object wait(self, object passage, object connection, Crossing crossing, Py_ssize_t count, Receipts receipts):
        """Read until it has its answer; what is not just that answer goes to whom it concerns."""
        cdef double until = mq_seconds(False) + self.patience_ms / 1000.0, ready, now
        cdef int fd = passage.fd, bell = passage.bell, blocked, left = self.patience_ms
        cdef bint ask = self.contended
        cdef FrameReader reader = passage.reader
        cdef list frames
        cdef Frame frame
        try:
            if receipts is not None:
                receipts.begin()
            while left > 0 and connection.link is not None:
                # A thread that burns gives us the GIL 5 ms after we ask. So beside one ask early: the answer comes
                # meanwhile, and what it takes and those 5 ms do not add up (5.2 ms for 7.4 where it takes 2.4).
                with nogil:
                    blocked = mq_fd_glance(fd) if ask else mq_fd_wait(fd, left, bell)
                    ready = mq_seconds(False)
                now = mq_seconds(False)
                self.contended = now - ready > CONTENDED
                if blocked == MQ_WOULD_BLOCK and ask:
                    blocked = mq_fd_wait(fd, 0, -1)
                elif blocked == MQ_WOULD_BLOCK:
                    break
                ask = False
                if blocked:
                    PyErr_CheckSignals()
                else:
                    frames, got = reader.receive_into(fd)
                    if len(frames) == 1 and crossing.slot is None and reader.error is None:
                        frame = <Frame>frames[0]
                        if frame.header.opaque == crossing.opaque and frame.header.flag & RESPONSE \
                                and frame.header.code == 0:
                            passage.link.last_read = now
                            crossing.answered = True
                            self.landed += count
                            return frame
                    self.pass_on(passage, connection, crossing, frames, got)
                    if crossing.slot is not None and crossing.slot.done:
                        return crossing.slot
                left = <int>((until - now) * 1000)
        except BaseException:
            self.late(crossing)
            raise
        return self.late(crossing)

    cdef int pass_on(self, object passage, object connection, Crossing crossing, list frames, object got) except -1:
        """First whoever waits for them is known, then what was read is theirs."""
        try:
            if frames or not (got > 0 or got == MQ_WOULD_BLOCK) or passage.reader.error is not None:
                self.late(crossing)
            passage.dispatch(connection, frames, got)
        except BaseException as error:
            if connection.broken is None:
                connection.broken = error
            raise
        return 0
