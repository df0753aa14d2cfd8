# A send that waits, whole: a message goes out and its receipt comes back in one call, if nothing unusual happens.

from cpython.exc cimport PyErr_CheckSignals

from common.fdio cimport mq_fd_glance, mq_pid, mq_seconds

cdef enum:
    LANE_MOST = 16384  # a larger body takes the long way
    LANE_LEFT_MS = 1  # for so long may a message be left to somebody else to write
    LANE_FRESH_US = 300  # those who have their receipt come that soon
    LANE_ROOM = 4096


@cython.final
cdef class _Landed:
    """The slot of a message whose receipt came: done."""

    cdef readonly MessageId value

    done = True
    error = None

    def result(self):
        return self.value


@cython.final
cdef class Lane(_Way):
    """One producer's. Open, it owns the next sequence id and whatever is in the flight; `shut` gives both back.

    Threads that send at the same time stand in a row (row.pxi). The first one that waits reads for all, without the
    GIL, until it has its own receipt; then the next one does. A message is written at once, or, if others have just
    got their receipts and are about to send again, by the last of them with theirs.

    A bare loop of send, poll and recv takes 25 µs of a processor here, this 30, the way through the engine 43.
    """

    cdef public int patience_ms
    cdef EntryFlight flight
    cdef object budget, mine, make_slot, give_up
    cdef SeatRow row
    cdef list seats, orphans  # free ones, and those whose threads left before their receipts came
    cdef int bell, pid
    cdef int64_t following, sent, got
    cdef double ready
    cdef bint contended
    cdef Py_ssize_t bytes
    cdef unsigned long tells  # the thread that tells the engine what it read

    def __cinit__(self):
        self.row.guard = PyThread_allocate_lock()
        if self.row.guard == NULL:
            raise MemoryError()
        self.row.published = -1
        self.patience_ms = 100
        self.seats = []
        self.orphans = []

    def __init__(self, budget, make_slot, give_up, /):
        self.budget = budget
        self.make_slot = make_slot
        self.give_up = give_up

    def __dealloc__(self):
        if self.row.guard != NULL:
            PyThread_free_lock(self.row.guard)

    @property
    def published(self):
        return self.row.published

    def open(self, EntryFlight flight not None, passage not None, int64_t sequence_id, /):
        """Whether messages go this way from now on."""
        if self.pid and self.pid != mq_pid():
            self.forked()
        if self.inside or flight.closed or flight.at < len(flight.waiting) or type(passage.reader) is not FrameReader:
            return False
        self.flight = flight
        self.lead_to(passage)
        self.bell = passage.bell
        self.mine = passage.mine
        self.following = sequence_id
        self.row.producer = flight.producer
        self.pid = mq_pid()
        self.opened = True
        return True

    def shut(self, deadline, /):
        """`(next sequence id, messages that went this way, frames to be written)`. Those on their way have slots and
        this deadline now."""
        cdef list slots = [], seats = [], unsent = []
        cdef int64_t sent
        cdef _Seat seat
        cdef Waits *it
        if self.opened and self.pid != mq_pid():
            self.forked()
        if self.opened:
            while len(slots) < self.row.count:  # others may come meanwhile
                slots.append(self.make_slot())
            self.opened = False
            it = row_take(&self.row)  # whoever reads finds no receipt in here any more, and tells the engine
            while it != NULL:
                seats.append(<_Seat>it.seat)
                it = it.next
            self.out, unsent = unsent, self.out
            self.unsent = 0
            for seat in seats:
                seat.slot = slots.pop()
                self.flight.waiting.append((seat.frame, seat.size, seat.it.number, deadline, seat.slot))
            for seat in seats:
                row_move(&self.row, &seat.it)  # last: they look at their slots
            if not self.inside:
                self.let_go()
        sent, self.sent = self.sent, 0
        return self.following, sent, unsent

    cdef int forked(self) except -1:
        """Whoever waited was a thread of the parent's, and may have held the guard."""
        self.row.guard = PyThread_allocate_lock()
        if self.row.guard == NULL:
            raise MemoryError()
        self.row.led = False
        self.row.coming = self.inside = self.bytes = 0
        self.pid = mq_pid()
        return 0

    def send(self, message, /):
        """Outside of any entry, and None: send it the long way. Else a slot; nearly always it is done."""
        cdef _Seat seat
        if not self.opened or not is_plain(message):
            return None
        if not self.connection.parked or (self.tells and self.tells == PyThread_get_thread_ident()):
            return None
        # No Python code runs up to the wait, and the GIL is kept: nobody, no Ctrl-C either, finds half of it done.
        if self.mine() or not self.come_in():
            return None
        seat = None
        try:
            seat = self.go(message)
            if seat is None:
                self.go_out()
                return None
            if not self.row.coming or mq_seconds(False) - self.row.woken > LANE_FRESH_US * 1e-6:
                self.write()
            return self.wait(seat)
        finally:
            if seat is not None:
                self.put_away(seat)

    cdef bint is_free(self, Py_ssize_t size) except -1:
        """Whether nobody else has anything to write, and there is room."""
        budget = self.budget
        if not self.opened or not self.connection.parked or not self.is_clear():
            return False
        if not budget.items and self.inside == 1:
            return True
        if budget.max_items and budget.items + self.inside > budget.max_items:
            return False
        return not budget.max_bytes or budget.bytes + self.bytes + size <= budget.max_bytes

    cdef _Seat go(self, message):
        cdef Py_ssize_t size = PyBytes_GET_SIZE(<bytes>(<tuple>message)[0])
        cdef int64_t number = self.following
        cdef bytes frame
        cdef _Seat seat
        if size > LANE_MOST:
            return None
        try:
            frame = self.flight.entry(message, number, <int64_t>(mq_seconds(True) * 1000))
        except Exception:  # it cannot be written: the long way says why
            return None
        if frame is None:
            return None
        seat = self.seats.pop() if self.seats else _Seat()
        # Looked at last: what was made above may have run a finalizer.
        if number != self.following or not self.is_free(size):
            self.seats.append(seat)
            return None
        self.out.append(frame)
        self.unsent += 1
        seat.frame = frame
        seat.size = size
        seat.inside = True
        self.bytes += size
        row_begin(&self.row, &seat.it, number)
        self.following += 1
        self.sent += 1
        return seat

    cdef object wait(self, _Seat seat):
        """Until it has its receipt; what is not just that receipt goes to whom it concerns.

        Nothing of others runs while the connection is lent to us and nobody of us reads: it might wait for what comes.
        """
        cdef double until = mq_seconds(False) + self.patience_ms / 1000.0
        cdef bint soon = self.unsent > 0, last = False, burns = False
        cdef int why = ROW_OTHER
        if self.contended and self.inside == 1:  # as RocketMQ's: our turn comes while the receipt does
            with nogil:
                mq_fd_glance(self.fd)
                self.ready = mq_seconds(False)
            burns = mq_seconds(False) - self.ready > CONTENDED
        while why != ROW_LATE and self.connection.link is not None:
            with nogil:
                why = self.ride(self.reader, &seat.it, until, soon)
            if why == ROW_READY:
                self.contended = burns or mq_seconds(False) - self.ready > CONTENDED
                why = self.take_in(self.reader, &seat.it)
            last = row_back(&self.row, &seat.it)
            if seat.it.read:
                self.link.last_read = seat.it.read
            if self.unsent and (last or why == ROW_SOON) and self.is_clear():
                self.write()
            if why == ROW_LANDED or why == ROW_MOVED:
                break
            soon = False
            if why == ROW_OTHER:
                self.tell()
            elif why == ROW_SIGNAL:
                self.step_out(seat)
                PyErr_CheckSignals()
                if not self.step_in(seat):
                    break
            elif why == ROW_SOON and self.unsent:  # somebody else writes: the engine sees to it
                break
        self.step_out(seat)
        if self.unsent and last or not (seat.it.landed or seat.it.moved):
            self.give_up()
        return self.landed(seat) if seat.it.landed else seat.slot

    cdef int step_out(self, _Seat seat) except -1:
        if seat.inside:
            seat.inside = False
            row_leave(&self.row, &seat.it)
            self.go_out()
        return 0

    cdef bint step_in(self, _Seat seat) except -1:
        """Whether it may go on waiting in here."""
        if not self.opened or not self.connection.parked or not self.come_in():
            return False
        seat.inside = True
        row_again(&self.row, &seat.it)
        return True

    cdef int put_away(self, _Seat seat) except -1:
        """Its thread goes. What was sent by one that Ctrl-C took away stays in the row."""
        self.step_out(seat)
        self.bytes -= seat.size
        if has_end(seat):
            seat.frame = seat.slot = None
            self.seats.append(seat)
        else:
            self.orphans.append(seat)
        if self.orphans and not self.inside:
            self.orphans = [one for one in self.orphans if not has_end(<_Seat>one)]
        return 0

    @cython.nonecheck(False)
    cdef int ride(self, FrameReader reader, Waits *it, double until, bint soon) noexcept nogil:
        """Wait, or read for all, up to something that needs the GIL: what it is."""
        cdef double now = mq_seconds(False), stop
        cdef int why, blocked
        while True:
            soon = soon and self.unsent > 0
            stop = now + LANE_LEFT_MS / 1000.0 if soon else until
            why = row_wait(&self.row, it, stop)
            if why == ROW_LATE and soon:
                return ROW_SOON
            if why >= 0:
                return why
            self.got = MQ_WOULD_BLOCK
            if reader.room - reader.end < LANE_ROOM:
                return ROW_OTHER
            now = mq_seconds(False)
            if now >= until:
                return ROW_LATE
            blocked = mq_fd_wait(self.fd, <int>((stop - now) * 1000) + 1 if stop > now else 0, self.bell)
            if blocked == MQ_WOULD_BLOCK:
                return ROW_SOON if soon else ROW_LATE
            if blocked:
                return ROW_SIGNAL
            if self.row.count == 1:
                self.ready = mq_seconds(False)
                return ROW_READY
            why = self.take_in(reader, it)
            if why != ROW_MORE:
                return why

    @cython.nonecheck(False)
    cdef int take_in(self, FrameReader reader, Waits *it) noexcept nogil:
        """One read, by who reads, and why it comes back then; with the GIL if it is alone: it will need it at once, and
        beside a thread that burns would wait 5 ms for what another one takes meanwhile."""
        self.got = mq_fd_receive(self.fd, reader.buffer + reader.end, <size_t>(reader.room - reader.end))
        it.read = mq_seconds(False)
        self.row.woken = it.read
        if self.got == MQ_WOULD_BLOCK:
            return ROW_MORE
        if self.got <= 0:
            return ROW_OTHER
        reader.end += <Py_ssize_t>self.got
        if not row_land(&self.row, reader.buffer, &reader.start, &reader.end, it):
            return ROW_OTHER
        return ROW_LANDED if it.landed else ROW_MORE

    cdef int tell(self) except -1:
        """What was read is not for those in the row, or there is no room to read."""
        cdef list events = []
        self.tells = PyThread_get_thread_ident()
        self.connection.lent = self.tells  # what is called back may wait, and reads then
        try:
            if self.got > 0:
                self.reader.begin()
                try:
                    self.reader.cut(events)
                finally:
                    self.reader.busy = False
            if self.got != MQ_WOULD_BLOCK:
                self.passage.dispatch(self.connection, events, self.got)
            self.reader.make_room(READ_SIZE)
        except BaseException as error:
            if self.connection.broken is None:
                self.connection.broken = error
            raise
        finally:
            self.tells = 0
            self.connection.lent = LENT
        return 0

    cdef object landed(self, _Seat seat):
        cdef _Landed slot = _Landed.__new__(_Landed)
        cdef MessageId made = MessageId.__new__(MessageId)
        made.ledger = seat.it.ledger
        made.entry = seat.it.entry
        made.partition = self.flight.partition
        made.batch_index = -1
        slot.value = made
        return slot


cdef bint has_end(_Seat seat):
    return seat.it.landed or seat.it.moved
