# Entries of one message each that are written at once, and for each of which somebody waits.

@cython.final
cdef class EntryFlight:
    """SEND frames of single messages without receipt, in their order, and the slots of those who wait for them."""

    cdef bytes front, behind
    cdef int64_t producer
    cdef int32_t partition
    cdef Py_ssize_t limit
    cdef list waiting  # (frame, size, number, deadline, slot) of each, the landed ones before `at` aside
    cdef Py_ssize_t at
    cdef readonly Py_ssize_t landed_bytes
    cdef readonly bint closed

    def __init__(
        self,
        int64_t producer_id,
        str producer_name not None,
        int32_t partition,
        Py_ssize_t limit,
        bytes schema_version=None,
    ):
        self.producer = producer_id
        self.front = name_alone(producer_name)
        self.behind = schema_version
        self.partition = partition
        self.limit = limit
        self.waiting = []

    @property
    def count(self):
        """Messages without receipt."""
        return len(self.waiting) - self.at

    @property
    def sequence_id(self):
        """Of the first one without receipt."""
        return self.one(self.at)[2]

    @property
    def last_sequence_id(self):
        return self.one(len(self.waiting) - 1)[2]

    @property
    def deadline(self):
        """Of the first one without receipt."""
        return self.one(self.at)[3]

    @property
    def size(self):
        """Of the bodies without receipt."""
        return sum([one[1] for one in self.waiting[self.at :]])

    cdef tuple one(self, Py_ssize_t index):
        if not self.at <= index < len(self.waiting):
            raise IndexError("all have landed")
        return <tuple>self.waiting[index]

    def add(self, message, int64_t sequence_id, int64_t published_at, deadline, slot, /):
        """Its frame, to be written now; None where it says what only the long way can, or when this was parted."""
        if self.closed or not is_plain(message):
            return None
        frame = self.entry(message, sequence_id, published_at)
        if frame is not None:
            self.waiting.append((frame, PyBytes_GET_SIZE((<tuple>message)[0]), sequence_id, deadline, slot))
        return frame

    cdef bytes entry(self, message, int64_t sequence_id, int64_t published_at):
        """The frame of a plain message; None if it is too large."""
        cdef mq_writer w
        cdef tuple parts = <tuple>message
        cdef int64_t event_time = parts[3]
        body, key, ordering_key = parts[0], parts[1], parts[4]
        mq_writer_open(&w, PyBytes_GET_SIZE(self.front) + PyBytes_GET_SIZE(body) + TRAIN_GAP + 8 * 15)
        try:
            if not put_entry(
                &w, self.front, self.behind, self.producer, sequence_id, published_at, self.limit, <bytes>body, key,
                event_time, ordering_key, bool(parts[6]),
            ):
                return None
            return mq_writer_done(&w)
        finally:
            mq_writer_drop(&w)

    cdef MessageId answer(self, event):
        """The id of the first one, which has landed, if this is its receipt; None: it is something else."""
        cdef tuple told, one
        cdef MessageId made
        if type(event) is not tuple or len(<tuple>event) != 6 or self.at >= len(self.waiting):
            return None
        told, one = <tuple>event, <tuple>self.waiting[self.at]
        if <int64_t>told[0] != T_SEND_RECEIPT or <int64_t>told[1] != self.producer:
            return None
        if <int64_t>told[2] != <int64_t>one[2] or <int64_t>told[3] < 0:
            return None
        self.at += 1
        if self.at == len(self.waiting) or self.at >= 1024:
            del self.waiting[: self.at]
            self.at = 0
        made = MessageId.__new__(MessageId)
        made.ledger = told[3]
        made.entry = told[4]
        made.partition = self.partition
        made.batch_index = -1
        return made

    def take_receipts(self, list events not None, Py_ssize_t at, /):
        """How many events from `at` on are SEND_RECEIPT of the next entries, in their order; who waits is told."""
        cdef Py_ssize_t start = at
        cdef tuple one
        cdef MessageId made
        self.landed_bytes = 0
        while at < len(events) and self.at < len(self.waiting):
            one = <tuple>self.waiting[self.at]
            made = self.answer(events[at])
            if made is None:
                break
            self.landed_bytes += <Py_ssize_t>one[1]
            at += 1
            one[4].complete(made)
        return at - start

    def part(self):
        """`(frame, size, sequence id, deadline, slot)` of those without receipt; nobody joins any more."""
        cdef list left = self.waiting[self.at :]
        self.closed = True
        self.waiting = []
        self.at = 0
        return left
