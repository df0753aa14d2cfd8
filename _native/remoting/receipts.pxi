# Where a broker put the messages of one request: a tuple for each of them.

cdef extern from *:
    """
    /* A tuple of a subclass; its items are still to be set. */
    static inline PyObject *mq_tuple_of(PyTypeObject *kind, Py_ssize_t size) { return kind->tp_alloc(kind, size); }
    """
    object mq_tuple_of(PyTypeObject *kind, Py_ssize_t size)

cdef int64_t MOST_OFFSET = 0x4000000000000000
cdef tuple ANSWER = ("queueId", "queueOffset", "msgId", "transactionId", "recallHandle")
cdef Run[5] SAID  # the same names
SAID[0], SAID[1], SAID[2] = literal(b"queueId", 7), literal(b"queueOffset", 11), literal(b"msgId", 5)
SAID[3], SAID[4] = literal(b"transactionId", 13), literal(b"recallHandle", 12)


cdef inline void set_item(object made, Py_ssize_t place, object item):
    Py_INCREF(item)
    PyTuple_SET_ITEM(made, place, item)


cdef inline void change_item(object made, Py_ssize_t place, object item):
    """Of a tuple that nobody else has."""
    cdef PyObject *old = PyTuple_GET_ITEM(made, place)
    set_item(made, place, item)
    Py_DECREF(<object>old)


cdef int64_t number_or(object text, int64_t otherwise) except? -1:
    """A number that a broker wrote; `otherwise` where it wrote none, or one that no queue comes near."""
    cdef int overflow
    cdef int64_t number
    if not text:
        return otherwise
    try:
        number = PyLong_AsLongLongAndOverflow(int(text), &overflow)
    except ValueError:
        return otherwise
    return number if overflow == 0 and -MOST_OFFSET < number < MOST_OFFSET else otherwise


cdef int64_t number_in(Span *span, int64_t otherwise) except? -1:
    """As `number_or`, of a field; nearly all are a few digits."""
    cdef const uint8_t *at = span.at
    cdef int64_t number = 0
    if span.kind == ABSENT or span.kind == NULL_VALUE:
        return otherwise
    if span.kind == PLAIN and 0 < span.end - at <= 18:
        while at < span.end and 48 <= at[0] <= 57:
            number = number * 10 + (at[0] - 48)
            at += 1
        if at == span.end:
            return number
    return number_or(span_text(span), otherwise)


cdef Py_ssize_t parts(Span *span) noexcept:
    """How many texts with commas between; 0 for what is no plain text."""
    cdef const uint8_t *at = span.at
    cdef Py_ssize_t count = 1
    if span.kind != PLAIN:
        return 0
    while True:
        at = <const uint8_t *>memchr(at, c',', span.end - at)
        if at == NULL:
            return count
        at += 1
        count += 1


cdef bint in_place(Frame answer, Span *found, Py_ssize_t count) except -1:
    """Whether the header can be read where it lies; then where the first so many of `SAID` are."""
    cdef Py_ssize_t place
    if answer.header.ext == NULL or answer.form != FORM_JSON or answer.decoded is not None:
        return False
    for place in range(count):
        found[place].kind = ABSENT
    find_members(answer.header.ext, answer.header.ext_end, SAID, found, count)
    return True


cdef inline object text_or_none(Span *span):
    return None if span.kind == ABSENT or span.kind == NULL_VALUE else span_text(span)


@cython.final
@cython.internal
cdef class Receipts:
    """The receipts of one request. What is known before its answer is put into them while the broker works: after a
    wait each of these lines costs twice as much, and the next request waits for it."""

    cdef object kind, queue, ids, status
    cdef list made
    cdef bytes batch  # whose ids are still to be read
    cdef Py_ssize_t key_size

    cdef int begin(self) except -1:
        cdef PyTypeObject *kind = <PyTypeObject *>self.kind
        cdef object made
        if self.batch is not None:
            read_keys(self.batch, self.key_size, <list>self.ids)
        self.made = []
        for own in self.ids:
            made = mq_tuple_of(kind, 7)
            set_item(made, 0, self.queue)
            set_item(made, 1, None)
            set_item(made, 2, own)
            set_item(made, 3, None)
            set_item(made, 4, self.status)
            set_item(made, 5, None)
            set_item(made, 6, None)
            self.made.append(made)
        return 0

    cdef list end(self, Frame answer):
        if self.made is None:
            self.begin()
        if len(self.made) == 1:
            self.end_one(answer)
        else:
            self.end_many(answer)
        return self.made

    cdef int end_one(self, Frame answer) except -1:
        cdef object there, first, said, transaction, handle, made = self.made[0]
        cdef int64_t queue_id = self.queue.queue_id, offset
        cdef Span[5] found
        if in_place(answer, found, 5):
            queue_id, offset = number_in(&found[0], queue_id), number_in(&found[1], -1)
            said, transaction, handle = text_or_none(&found[2]), text_or_none(&found[3]), text_or_none(&found[4])
        else:
            there, first, said, transaction, handle = answer.pick(ANSWER)
            queue_id, offset = number_or(there, queue_id), number_or(first, -1)
        self.move(queue_id)
        change_item(made, 1, offset)
        change_item(made, 3, said or "")
        change_item(made, 5, transaction)
        change_item(made, 6, handle)
        return 0

    cdef int end_many(self, Frame answer) except -1:
        """Where the header can be read in place, no text is made but the ids."""
        cdef Py_ssize_t size = len(self.made), place
        cdef Span[3] found
        cdef list said_ids = None
        cdef const uint8_t *at
        cdef const uint8_t *stop
        cdef object there, first, said
        cdef int64_t queue_id = self.queue.queue_id, offset
        found[2].kind = ABSENT
        if not in_place(answer, found, 3):
            there, first, said = answer.pick(("queueId", "queueOffset", "msgId"))
            queue_id, offset = number_or(there, queue_id), number_or(first, -1)
            said_ids = (said or "").split(",")
        else:
            queue_id, offset = number_in(&found[0], queue_id), number_in(&found[1], -1)
            if parts(&found[2]) != size:
                said_ids = (text_or_none(&found[2]) or "").split(",")
        if said_ids is not None and len(said_ids) != size:
            said_ids = [""] * size
        self.move(queue_id)
        at = found[2].at
        for place in range(size):
            change_item(self.made[place], 1, offset)
            if said_ids is None:
                stop = <const uint8_t *>memchr(at, c',', found[2].end - at) if place < size - 1 else found[2].end
                change_item(self.made[place], 3, mq_text(at, stop - at))
                at = stop + 1
            else:
                change_item(self.made[place], 3, said_ids[place])
            if offset >= 0:
                offset += 1
        return 0

    cdef int move(self, int64_t queue_id) except -1:
        """The broker took another queue than it was asked to."""
        if queue_id != self.queue.queue_id:
            self.queue = self.queue._replace(queue_id=queue_id)
            for made in self.made:
                change_item(made, 0, self.queue)
        return 0


cdef Receipts new_receipts(object kind, object queue, object ids, object status):
    cdef Receipts made = Receipts.__new__(Receipts)
    made.kind = kind
    made.queue = queue
    made.ids = ids
    made.status = status
    return made


cdef int read_keys(bytes batch, Py_ssize_t key_size, list ids) except -1:
    """Of a batch that we made: each element's properties begin with its id."""
    cdef const uint8_t *at = <const uint8_t *>PyBytes_AS_STRING(batch)
    cdef const uint8_t *end = at + PyBytes_GET_SIZE(batch)
    while at < end:
        ids.append(mq_text(at + ELEMENT + <uint32_t>mq_be32(at + 16) + 9, key_size))  # behind "UNIQ_KEY" and its mark
        at += <uint32_t>mq_be32(at)
    return 0


def receipts(type kind not None, Frame answer not None, queue not None, ids not None, status not None):
    """One tuple of `kind` for each id: queue, offset, id, the broker's id of it, status, transaction, recall handle."""
    if not issubclass(kind, tuple):
        raise TypeError(f"a kind of tuple is wanted, not {kind.__name__}")
    return new_receipts(kind, queue, ids, status).end(answer)
