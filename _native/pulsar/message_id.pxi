# Where a message lies.

@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class MessageId:
    """Where a message lies. Ordered by ledger, entry and batch index; hashable, picklable."""

    cdef readonly int64_t ledger, entry
    cdef readonly int32_t partition, batch_index, batch_size
    cdef readonly MessageId first_chunk

    @property
    def ok(self):
        """True: in a list of results an id is told from an error by this."""
        return True

    def __init__(
        self,
        int64_t ledger,
        int64_t entry,
        int32_t partition=-1,
        int32_t batch_index=-1,
        int32_t batch_size=0,
        MessageId first_chunk=None,
    ):
        self.ledger = ledger
        self.entry = entry
        self.partition = partition
        self.batch_index = batch_index
        self.batch_size = batch_size
        self.first_chunk = first_chunk

    @staticmethod
    def of_batch(int64_t ledger, int64_t entry, int32_t partition, int32_t start, int32_t stop, int32_t size, /):
        cdef list made = []
        cdef MessageId one
        cdef int32_t index
        for index in range(start, stop):
            one = MessageId.__new__(MessageId)
            one.ledger, one.entry, one.partition = ledger, entry, partition
            one.batch_index, one.batch_size = index, size
            made.append(one)
        return made

    @staticmethod
    def from_bytes(bytes data not None, /):
        """Read `to_bytes`, or what the official clients serialize; ProtocolError if it is not that."""
        cdef const uint8_t *at = <const uint8_t *>PyBytes_AS_STRING(data)
        cdef MessageId found = read_message_id(at, PyBytes_GET_SIZE(data), 2)
        if found is None:
            raise ProtocolError("not a message id: cut, or without ledger and entry")
        return found

    def to_bytes(self):
        """MessageIdData, as the official clients serialize it."""
        cdef uint8_t room[64]
        cdef uint8_t *p = mq_put_number(mq_put_number(room, 1, self.ledger), 2, self.entry)
        if self.partition != -1:
            p = mq_put_number(p, 3, self.partition)
        if self.batch_index != -1:
            p = mq_put_number(p, 4, self.batch_index)
        if self.batch_size > 0:
            p = mq_put_number(p, 6, self.batch_size)
        cdef bytes own = PyBytes_FromStringAndSize(<char *>room, p - room)
        if self.first_chunk is None:
            return own
        cdef bytes chunk = self.first_chunk.to_bytes()
        p = mq_put_varint(mq_put_varint(room, 7 << 3 | DATA), <uint64_t>len(chunk))
        return own + PyBytes_FromStringAndSize(<char *>room, p - room) + chunk

    cdef tuple place(self):
        return self.ledger, self.entry, self.batch_index, self.partition

    def __lt__(self, other, /):
        return self.place() < (<MessageId>other).place() if isinstance(other, MessageId) else NotImplemented

    def __le__(self, other, /):
        return self.place() <= (<MessageId>other).place() if isinstance(other, MessageId) else NotImplemented

    def __gt__(self, other, /):
        return self.place() > (<MessageId>other).place() if isinstance(other, MessageId) else NotImplemented

    def __ge__(self, other, /):
        return self.place() >= (<MessageId>other).place() if isinstance(other, MessageId) else NotImplemented

    def __eq__(self, other, /):
        return self.place() == (<MessageId>other).place() if isinstance(other, MessageId) else NotImplemented

    def __hash__(self):
        return hash(self.place())

    def __repr__(self):
        return f"MessageId({self.ledger}, {self.entry}, {self.partition}, {self.batch_index})"

    def __reduce__(self):
        return MessageId.from_bytes, (self.to_bytes(),)


cdef MessageId read_message_id(const uint8_t *at, int64_t size, int depth):
    """None if it is malformed, or nested deeper than an id and its first chunk."""
    cdef mq_cursor c = mq_open(at, at + size)
    cdef mq_field f
    cdef MessageId made = MessageId.__new__(MessageId)
    cdef int seen = 0
    made.partition = made.batch_index = -1
    while mq_next_field(&c, &f):
        if f.tag == 1 << 3:
            made.ledger = f.value
            seen |= 1
        elif f.tag == 2 << 3:
            made.entry = f.value
            seen |= 2
        elif f.tag == 3 << 3:
            made.partition = <int32_t>f.value
        elif f.tag == 4 << 3:
            made.batch_index = <int32_t>f.value
        elif f.tag == 6 << 3:
            made.batch_size = <int32_t>f.value
        elif f.tag == (7 << 3 | DATA):
            made.first_chunk = read_message_id(f.start, f.size, depth - 1) if depth > 1 else None
            if made.first_chunk is None:
                return None
    return None if c.bad or seen != 3 else made


EARLIEST = MessageId(-1, -1)
LATEST = MessageId((1 << 63) - 1, (1 << 63) - 1)
