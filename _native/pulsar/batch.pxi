# The payload of a batch: message by message.

from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

cdef extern from "Python.h":
    int PyList_CheckExact(object o)
    int PyTuple_CheckExact(object o)
    int PyTuple_Check(object o)

cdef enum:
    JOIN_ROOM = 64  # more than the numbers of a message take that joins
    SINGLE_ROOM = 4 + 8 * 15  # sizes, numbers and tags of one message without its texts and body


cdef struct Single:  # of one message, apart from its properties
    Span key, ordering_key, body
    int64_t event_time, sequence_id
    bint null_value, key_b64, null_key


cdef inline int put_single(mq_writer *w, Py_ssize_t begin, const Single *s) except -1:
    """The rest of a message whose properties are written behind `begin` and room for the metadata's size."""
    cdef uint8_t *p = mq_room(w, SINGLE_ROOM + <Py_ssize_t>(s.key.size + s.ordering_key.size + s.body.size))
    if s.key.at != NULL:
        p = mq_put_data(p, 2, s.key.at, s.key.size)
    p = mq_put_number(p, 3, s.body.size)
    if s.event_time != 0:
        p = mq_put_number(p, 5, s.event_time)
    if s.key_b64:
        p = mq_put_number(p, 6, 1)
    if s.ordering_key.at != NULL:
        p = mq_put_data(p, 7, s.ordering_key.at, s.ordering_key.size)
    if s.sequence_id != -1:
        p = mq_put_number(p, 8, s.sequence_id)
    if s.null_value:
        p = mq_put_number(p, 9, 1)
    if s.null_key:
        p = mq_put_number(p, 10, 1)
    mq_put32(w.start + begin, <int32_t>(p - w.start - begin - 4))
    if s.body.size > 0:
        memcpy(p, s.body.at, <size_t>s.body.size)
    w.size = p - w.start + <Py_ssize_t>s.body.size
    return 0


cdef inline void clear_single(Single *s) noexcept nogil:
    memset(s, 0, sizeof(Single))
    s.sequence_id = -1


@cython.final
cdef class BatchBuilder:
    """The payload of one batch, message by message; used anew after `seal`."""

    cdef mq_writer w
    cdef readonly Py_ssize_t count
    cdef Py_ssize_t max_messages, max_bytes, last
    cdef int64_t following, token
    cdef bint is_open

    def __init__(self, Py_ssize_t max_messages=1000, Py_ssize_t max_bytes=131072):
        self.max_messages = max_messages
        self.max_bytes = max_bytes

    def __dealloc__(self):
        mq_writer_drop(&self.w)

    @property
    def size(self):
        """Bytes of the payload so far."""
        return self.w.size

    cdef inline int begin(self) except -1:
        """Where the writer stands is where the next message begins; room as the last batch took."""
        if self.w.bytes == NULL:
            mq_writer_open(&self.w, self.last + 1024)
        return 0

    def add(
        self,
        body,
        str key=None,
        properties=None,
        int64_t event_time=0,
        bytes ordering_key=None,
        int64_t sequence_id=-1,
        bint key_b64=False,
        bint null_key=False,
    ):
        """Append one message; the size after it."""
        cdef Single s
        clear_single(&s)
        s.event_time = event_time
        s.sequence_id = sequence_id
        s.key_b64 = key_b64
        s.null_key = null_key
        self.append(body, key, properties, ordering_key, &s)
        return self.w.size

    cdef int append(self, object body, object key, object properties, bytes ordering_key, Single *s) except -1:
        """Append one message, or nothing if its parts are not what they should be."""
        cdef View view
        cdef bint viewed = False
        self.begin()
        cdef Py_ssize_t begin = self.w.size
        try:
            if body is None:
                s.null_value = True
            elif type(body) is bytes:
                s.body.at = <const uint8_t *>PyBytes_AS_STRING(body)
                s.body.size = PyBytes_GET_SIZE(body)
            else:
                open_view(&view, body)
                viewed = True
                s.body.at = view.at
                s.body.size = view.size
            if key is not None:
                s.key = utf8(key)
            if ordering_key is not None:
                s.ordering_key.at = <const uint8_t *>PyBytes_AS_STRING(ordering_key)
                s.ordering_key.size = PyBytes_GET_SIZE(ordering_key)
            self.check(s)
            mq_room(&self.w, 4)
            write_properties(&self.w, 1, properties)
            put_single(&self.w, begin, s)
            self.count += 1
        except BaseException:
            if self.w.bytes != NULL:
                self.w.size = begin
            raise
        finally:
            if viewed:
                close_view(&view)
        return 0

    cdef inline int check(self, const Single *s) except -1:
        if s.body.size > 0x7FFFFFFF or self.w.size > 0x7FFFFFFF:
            raise ConfigError("a body or batch of more than 2 GiB")
        return 0

    cdef int append_item(self, object item, int64_t sequence_id) except -1:
        """A body, or a tuple of `add`'s arguments."""
        cdef Single s
        cdef tuple parts
        cdef Py_ssize_t count
        clear_single(&s)
        s.sequence_id = sequence_id
        if not isinstance(item, tuple):
            return self.append(item, None, None, None, &s)
        parts = <tuple>item
        count = len(parts)
        if not 1 <= count <= 8:
            raise TypeError(f"a message has 1 to 8 parts, not {count}")
        if count > 3:
            s.event_time = parts[3]
        if count > 5 and parts[5] != -1:
            s.sequence_id = parts[5]
        if count > 6:
            s.key_b64 = parts[6]
        if count > 7:
            s.null_key = parts[7]
        return self.append(
            parts[0],
            parts[1] if count > 1 else None,
            parts[2] if count > 2 else None,
            <bytes?>parts[4] if count > 4 and parts[4] is not None else None,
            &s,
        )

    def open(self, int64_t sequence_id, /):
        """From now on `join` takes messages, the first of which gets this id; the token for it."""
        with cython.critical_section(self):
            self.following = sequence_id
            self.is_open = True
            self.token += 1
            return self.token

    def shut(self):
        """`join` takes none any more; the sequence id after the last one."""
        with cython.critical_section(self):
            self.is_open = False
            return self.following

    def join(self, message, int64_t token, /):
        """Append a plain message, with room for more behind it; its index, or -1: it is not open, full or not plain.

        Nothing in here runs Python code, so nothing else happens to the builder meanwhile.
        """
        cdef tuple parts
        if type(message) is not tuple or len(<tuple>message) != 7:
            return -1
        parts = <tuple>message
        if parts[2] is not None or parts[5] != -1:
            return -1
        return self.join_parts(parts[0], parts[1], parts[3], parts[4], bool(parts[6]), token)

    cdef Py_ssize_t join_parts(
        self, object body, object key, object event_time, object ordering_key, bint key_b64, int64_t token
    ) except -2:
        cdef Single s
        cdef Py_ssize_t size
        if type(body) is not bytes:
            return -1
        size = PyBytes_GET_SIZE(body) + JOIN_ROOM
        if key is not None:
            if type(key) is not str:
                return -1
            size += <Py_ssize_t>utf8(key).size
        if ordering_key is not None:
            if type(ordering_key) is not bytes:
                return -1
            size += PyBytes_GET_SIZE(ordering_key)
        clear_single(&s)
        s.event_time = event_time
        s.key_b64 = key_b64
        with cython.critical_section(self):
            if not self.is_open or token != self.token or self.count + 1 >= self.max_messages:
                return -1
            if self.w.size + size >= self.max_bytes:
                return -1
            s.sequence_id = self.following
            self.append(body, key, None, <bytes>ordering_key, &s)
            self.following += 1
            return self.count - 1

    def add_many(self, items, Py_ssize_t start=0, int64_t sequence_id=-1):
        """Append from `start` until a limit; the index of the first that was not taken."""
        cdef Py_ssize_t place = start, stop = len(items), before
        while place < stop:
            if self.count and (self.count >= self.max_messages or self.w.size >= self.max_bytes):
                break
            before = self.w.size
            self.append_item(items[place], sequence_id if sequence_id == -1 else sequence_id + place - start)
            if self.w.size > self.max_bytes and self.count > 1:
                self.w.size = before
                self.count -= 1
                break
            place += 1
        return place

    def seal(self):
        """`(payload, count)`; the builder is empty again."""
        cdef Py_ssize_t count = self.count
        self.last = self.w.size
        self.count = 0
        return mq_writer_done(&self.w) if self.w.bytes != NULL else b"", count


@cython.final
cdef class Door:
    """Where a face puts what it was given, while a batch gathers that may be joined; see the stub."""

    cdef object future, batch
    cdef BatchBuilder builder
    cdef int64_t token

    def __init__(self, future, /):
        self.future = future

    def open(self, BatchBuilder builder not None, batch, int64_t token, /):
        with cython.critical_section(self):
            self.builder, self.batch, self.token = builder, batch, token

    def shut(self):
        with cython.critical_section(self):
            self.builder = self.batch = None

    def board(
        self, body, key, properties, event_time, ordering_key, sequence_id, deliver_at, deliver_after, replicate_to,
        txn, /
    ):
        """The future of a message that has joined, or None."""
        cdef BatchBuilder builder
        cdef Py_ssize_t index
        cdef int64_t token, when
        with cython.critical_section(self):
            builder, batch, token = self.builder, self.batch, self.token
        if builder is None or properties is not None or type(event_time) is not int or sequence_id is not None:
            return None
        if deliver_at is not None or deliver_after is not None or replicate_to is not None or txn is not None:
            return None
        try:
            when = event_time
            if when < -0x7FFFFFFFFFFFFFFF:
                return None
            index = builder.join_parts(body, key, event_time, ordering_key, False, token)
        except (OverflowError, UnicodeEncodeError):
            return None  # who looks at it knows what to say
        return None if index < 0 else self.future(batch, index)
