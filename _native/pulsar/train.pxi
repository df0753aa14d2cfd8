# Entries of one message each, one behind the other: they leave in one write, and have receipts of their own.

cdef enum:
    TRAIN_GAP = FRAME_ROOM + 2 * 15 + 10  # all that stands in front of the metadata
    TRAIN_FULL = -1
    TRAIN_OTHER = -2


cdef bytes name_alone(str producer_name):
    """Metadata without the two numbers."""
    front = encode_metadata(producer_name, 0, 0)
    return front[: len(front) - 4]


cdef bint is_plain(message) except -1:
    """Whether it says nothing that only the long way can."""
    cdef tuple parts
    if type(message) is not tuple or len(<tuple>message) != 7:
        return False
    parts = <tuple>message
    if type(parts[0]) is not bytes or parts[2] is not None or parts[5] != -1:
        return False
    return (parts[1] is None or type(parts[1]) is str) and (parts[4] is None or type(parts[4]) is bytes)


cdef bint put_entry(
    mq_writer *w, bytes front, bytes behind, int64_t producer, int64_t number, int64_t published_at, Py_ssize_t limit,
    bytes body, str key, int64_t event_time, bytes ordering_key, bint key_b64,
) except -1:
    """SEND of one message; 0 if that is larger than an entry may be."""
    cdef uint8_t command[2 * 15]
    cdef Py_ssize_t size = PyBytes_GET_SIZE(body), before = w.size, metadata, room
    cdef int64_t command_size, covered
    cdef uint8_t *at
    cdef uint8_t *p
    cdef uint8_t *crc
    cdef Span text
    room = PyBytes_GET_SIZE(front) + 8 * 15
    text.at = NULL
    text.size = 0
    if key is not None:
        text = utf8(key)
        room += <Py_ssize_t>text.size
    if ordering_key is not None:
        room += PyBytes_GET_SIZE(ordering_key)
    if behind is not None:
        room += PyBytes_GET_SIZE(behind)
    at = mq_room(w, TRAIN_GAP + room + size)
    p = at + TRAIN_GAP
    memcpy(p, PyBytes_AS_STRING(front), <size_t>PyBytes_GET_SIZE(front))
    p = mq_put_number(p + PyBytes_GET_SIZE(front), 2, number)
    p = mq_put_number(p, 3, published_at)
    if key is not None:
        p = mq_put_data(p, 6, text.at, text.size)
    if event_time != 0:
        p = mq_put_number(p, 12, event_time)
    if behind is not None:
        p = mq_put_data(p, 16, PyBytes_AS_STRING(behind), PyBytes_GET_SIZE(behind))
    if key_b64:
        p = mq_put_number(p, 17, 1)
    if ordering_key is not None:
        p = mq_put_data(p, 18, PyBytes_AS_STRING(ordering_key), PyBytes_GET_SIZE(ordering_key))
    metadata = p - at - TRAIN_GAP
    if metadata + size > limit or before + metadata + size > 0x7FFF0000:
        w.size = before
        return False
    command_size = mq_put_number(mq_put_number(command, 1, producer), 2, number) - command
    covered = 4 + <int64_t>metadata + size
    p = put_head(at, T_SEND, command_size, 6 + covered)
    memcpy(p, command, <size_t>command_size)
    p += command_size
    mq_put16(p, MAGIC_CHECKSUM)
    crc = p + 2
    p += 6
    mq_put32(p, <int32_t>metadata)
    memmove(p + 4, at + TRAIN_GAP, <size_t>metadata)
    memcpy(p + 4 + metadata, PyBytes_AS_STRING(body), <size_t>size)
    mq_put32(crc, <int32_t>mq_crc32c(0, p, <size_t>covered))
    w.size = p + covered - w.start
    return True


@cython.final
cdef class EntryTrain:
    """SEND frames of single messages, one entry each, and where the broker stored each of them."""

    cdef mq_writer w
    cdef bytes front, behind, frames
    cdef readonly Py_ssize_t count, landed
    cdef readonly int64_t first
    cdef int64_t producer, published_at
    cdef Py_ssize_t most, limit, room, count_of_frames
    cdef Py_ssize_t *ends
    cdef int64_t *places

    def __init__(
        self,
        int64_t producer_id,
        str producer_name not None,
        int64_t sequence_id,
        int64_t published_at,
        Py_ssize_t max_bytes,
        Py_ssize_t limit,
        bytes schema_version=None,
    ):
        self.producer = producer_id
        self.front = name_alone(producer_name)
        self.behind = schema_version
        self.first = sequence_id
        self.published_at = published_at
        self.most = max_bytes
        self.limit = limit
        if self.w.bytes == NULL and self.frames is None:
            mq_writer_open(&self.w, max_bytes + 1024)

    def __dealloc__(self):
        mq_writer_drop(&self.w)
        free(self.ends)
        free(self.places)

    @property
    def size(self):
        """Bytes of all frames."""
        return self.w.size if self.frames is None else len(self.frames)

    @property
    def following(self):
        """The sequence id after the last one."""
        return self.first + self.count

    def add(self, message, /):
        """Its index; FULL where there is no room any more; OTHER where it says what only the long way can."""
        cdef tuple parts
        cdef int64_t event_time
        if not is_plain(message):
            return TRAIN_OTHER
        parts = <tuple>message
        body, key, ordering_key = parts[0], parts[1], parts[4]
        event_time = parts[3]
        with cython.critical_section(self):
            return self.append(<bytes>body, key, event_time, ordering_key, bool(parts[6]))

    cdef Py_ssize_t append(self, bytes body, str key, int64_t event_time, bytes ordering_key, bint key_b64) except -9:
        cdef Py_ssize_t before = self.w.size
        if self.frames is not None or (self.count and before + PyBytes_GET_SIZE(body) + TRAIN_GAP > self.most):
            return TRAIN_FULL
        self.grow()
        if not put_entry(
            &self.w, self.front, self.behind, self.producer, self.first + self.count, self.published_at, self.limit,
            body, key, event_time, ordering_key, key_b64,
        ):
            return TRAIN_OTHER
        self.ends[self.count] = self.w.size
        self.count += 1
        return self.count - 1

    cdef int grow(self) except -1:
        """Room to note one entry more."""
        cdef Py_ssize_t room
        cdef void *grown
        if self.count < self.room:
            return 0
        room = 2 * self.room + 64
        grown = realloc(self.ends, room * sizeof(Py_ssize_t))
        if grown == NULL:
            raise MemoryError()
        self.ends = <Py_ssize_t *>grown
        grown = realloc(self.places, 2 * room * sizeof(int64_t))
        if grown == NULL:
            raise MemoryError()
        self.places = <int64_t *>grown
        self.room = room
        return 0

    def close(self):
        """All frames; nothing is added any more."""
        with cython.critical_section(self):
            if self.frames is None:
                self.frames = mq_writer_done(&self.w)
                self.count_of_frames = self.count
            return self.frames

    def drop(self):
        """Nobody asks for frames any more; close it first."""
        self.frames = b""
        self.count_of_frames = 0

    def frame(self, Py_ssize_t index, /):
        """That of one entry, once it is closed."""
        if self.frames is None or not 0 <= index < self.count_of_frames:
            raise IndexError(f"frame {index} of {self.count_of_frames}, closed: {self.frames is not None}")
        return self.frames[self.ends[index - 1] if index else 0 : self.ends[index]]

    def land(self, int64_t ledger, int64_t entry, /):
        """The next one is stored there."""
        if self.landed >= self.count:
            raise IndexError(f"all {self.count} have landed")
        self.places[2 * self.landed] = ledger
        self.places[2 * self.landed + 1] = entry
        self.landed += 1

    def place(self, Py_ssize_t index, /):
        """`(ledger, entry)` of one that has landed."""
        if not 0 <= index < self.landed:
            raise IndexError(f"place {index} of {self.landed}")
        return self.places[2 * index], self.places[2 * index + 1]

    def take_receipts(self, list events not None, Py_ssize_t at, /):
        """How many SEND_RECEIPT events from `at` on are those of the next entries, in their order."""
        cdef Py_ssize_t start = at
        cdef tuple event
        cdef int64_t ledger, entry
        while at < len(events) and self.landed < self.count and self.frames is not None:
            if type(events[at]) is not tuple or len(<tuple>events[at]) != 6:
                break
            event = <tuple>events[at]
            if <int64_t>event[0] != T_SEND_RECEIPT or <int64_t>event[1] != self.producer:
                break
            ledger, entry = event[3], event[4]
            if <int64_t>event[2] != self.first + self.landed or ledger < 0:
                break
            self.places[2 * self.landed] = ledger
            self.places[2 * self.landed + 1] = entry
            self.landed += 1
            at += 1
        return at - start
