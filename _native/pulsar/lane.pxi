# A send that waits, whole: one message goes out and its receipt comes back in one call, if nothing unusual happens.

from cpython.exc cimport PyErr_CheckSignals

from common.fdio cimport mq_fd_ring, mq_seconds

cdef enum:
    LANE_MOST = 16384  # a larger body takes the long way
    LANE_MS = 100  # and so does the waiting for a receipt that takes longer


@cython.final
cdef class _Landed:
    """The slot of a message whose receipt came: done."""

    cdef readonly MessageId value

    done = True
    error = None

    def result(self):
        return self.value


@cython.final
cdef class Lane:
    """One producer's. Open, it owns the next sequence id and whatever is in the flight; `shut` gives both back.

    A bare loop of send, poll and recv takes 25 µs of a processor here, this 30, the way through the engine 43.
    """

    cdef readonly bint opened
    cdef readonly int64_t published
    cdef EntryFlight flight
    cdef FrameReader reader
    cdef object passage, connection, link, budget, acquire, release, mine, make_slot, give_up, slot
    cdef int fd, bell
    cdef int64_t following, sent
    cdef bint busy

    def __init__(self, budget, make_slot, give_up, /):
        self.budget = budget
        self.make_slot = make_slot
        self.give_up = give_up
        self.published = -1

    def open(self, EntryFlight flight not None, passage not None, int64_t sequence_id, /):
        """Whether messages go this way from now on."""
        if self.busy or flight.closed or flight.at < len(flight.waiting) or type(passage.reader) is not FrameReader:
            return False
        self.flight = flight
        self.passage = passage
        self.connection = passage.connection
        self.link = passage.link
        self.reader = passage.reader
        self.fd = passage.fd
        self.bell = passage.bell
        self.acquire = passage.reading.acquire
        self.release = passage.reading.release
        self.mine = passage.mine
        self.following = sequence_id
        self.opened = True
        return True

    def shut(self, deadline, /):
        """`(next sequence id, messages that went this way)`. Those on their way have slots and this deadline now."""
        cdef Py_ssize_t at
        cdef tuple one
        cdef int64_t sent = self.sent
        if self.opened:
            self.opened = False
            for at in range(self.flight.at, len(self.flight.waiting)):
                one = <tuple>self.flight.waiting[at]
                slot = self.make_slot()
                self.flight.waiting[at] = (one[0], one[1], one[2], deadline, slot)
                if self.busy:
                    self.slot = slot
        self.sent = 0
        return self.following, sent

    def send(self, message, /):
        """Outside of any entry, and None: send it the long way. Else a slot; nearly always it is done."""
        if not self.opened or self.busy or not is_plain(message) or self.flight.at < len(self.flight.waiting):
            return None
        if not self.connection.parked:
            return None
        # No Python code runs up to the wait, and the GIL is kept: nobody, no Ctrl-C either, finds half of it done.
        if self.mine() or not self.acquire(False):
            return None
        self.busy = True
        self.slot = None
        try:
            return self.wait() if self.go(message) else None
        finally:
            self.busy = False
            self.release()
            if self.connection.broken is not None or self.connection.closing:
                self.hand()

    cdef bint is_free(self, Py_ssize_t size) except -1:
        """Whether the connection is ours to read, nobody has anything to write, and there is room."""
        connection, budget = self.connection, self.budget
        if not self.opened or not connection.parked or connection.writing or connection.closing:
            return False
        if connection.link is not self.link or self.link.outbox or connection.broken is not None:
            return False
        return not budget.items or not budget.max_bytes or budget.bytes + size <= budget.max_bytes

    cdef bint go(self, message) except -1:
        cdef Py_ssize_t size = PyBytes_GET_SIZE(<bytes>(<tuple>message)[0])
        cdef bytes frame
        cdef tuple one
        cdef mq_part part
        cdef int64_t sent
        if size > LANE_MOST:
            return False
        try:
            frame = self.flight.entry(message, self.following, <int64_t>(mq_seconds(True) * 1000))
        except Exception:  # it cannot be written: the long way says why
            return False
        if frame is None:
            return False
        one = (frame, size, self.following, None, None)
        if not self.is_free(size):  # looked at last: what was made above may have run a finalizer
            return False
        self.flight.waiting.append(one)
        self.following += 1
        self.sent += 1
        part.data = PyBytes_AS_STRING(frame)
        part.size = <size_t>PyBytes_GET_SIZE(frame)
        sent = mq_fd_send(self.fd, &part, 1)
        if sent != PyBytes_GET_SIZE(frame):
            self.leave(frame, sent)
        return True

    cdef int leave(self, bytes frame, int64_t sent) except -1:
        """The reader thread writes what the socket did not take, and meets the error if there is one."""
        rest = frame if sent <= 0 else frame[sent:]
        self.link.outbox.append(rest)
        self.link.outbox_bytes += len(rest)
        self.connection.writing = self.connection.handed = True
        return self.hand()

    cdef int hand(self) except -1:
        self.passage.handed.append(self.connection)
        mq_fd_ring(self.passage.ring)
        return 0

    cdef object wait(self):
        """Read until it has its receipt; what is not just that receipt goes to whom it concerns."""
        cdef double until = mq_seconds(False) + LANE_MS / 1000.0, now
        cdef int blocked, left = LANE_MS
        cdef list events
        cdef MessageId made
        while left > 0 and self.connection.link is not None:
            with nogil:
                blocked = mq_fd_wait(self.fd, left, self.bell)
            if blocked == MQ_WOULD_BLOCK:
                break
            now = mq_seconds(False)
            if blocked:
                PyErr_CheckSignals()
            else:
                self.connection.last_borrow = now
                events, got = self.reader.receive_into(self.fd)
                if self.opened and len(events) == 1 and self.reader.error is None:
                    made = self.flight.answer(events[0])
                    if made is not None:
                        self.link.last_read = now
                        return self.landed(made)
                try:
                    self.passage.dispatch(self.connection, events, got)
                except BaseException as error:
                    if self.connection.broken is None:
                        self.connection.broken = error
                    raise
                if self.slot is not None and self.slot.done:
                    return self.slot
            left = <int>((until - now) * 1000)
        if self.slot is None:
            self.give_up()
        return self.slot

    cdef object landed(self, MessageId made):
        cdef _Landed slot = _Landed.__new__(_Landed)
        slot.value = made
        self.published = self.following - 1
        return slot
