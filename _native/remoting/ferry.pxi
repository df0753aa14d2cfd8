# Messages of a thread that waits, over by a lane and back as receipts: one call, if nothing unusual happens.

@cython.final
cdef class Berth:
    """One queue, and the way to its broker."""

    cdef readonly object queue, address
    cdef readonly SendHead alone, batch
    cdef public object passage

    def __init__(self, queue not None, address not None, SendHead alone not None, SendHead batch not None, /):
        self.queue = queue
        self.address = address
        self.alone = alone
        self.batch = batch


@cython.final
cdef class Ferry:
    """One producer's."""

    cdef readonly dict courses
    cdef public UniqueKeys keys
    cdef public bint closed
    cdef object exchange, chart, board, settle, prepare  # its owner's
    cdef Lane lane  # None: one in Python, by its `exchange`
    cdef object opaques, reserved, batch_properties, alone_code, batch_code
    cdef object kind, own, content, receipt
    cdef dict turns, faults
    cdef Py_ssize_t most_plain, most_together
    cdef double send_timeout, timely
    cdef bint decorates

    def __init__(self, owner, terms, /):
        self.courses = {}
        self.keys = terms.keys
        self.exchange, self.chart, self.board = owner.lane.exchange, owner.chart, owner.board
        self.lane = owner.lane if type(owner.lane) is Lane else None
        self.settle, self.prepare = owner.settle, terms.prepare
        self.opaques, self.turns, self.faults = terms.opaques, terms.turns, terms.faults
        self.reserved, self.batch_properties = terms.reserved, terms.batch_properties
        self.alone_code, self.batch_code = terms.codes
        self.kind, self.content, self.receipt = terms.kind, terms.content, terms.receipt
        self.own = own_kind(self.kind)
        if not issubclass(self.content, tuple) or not issubclass(self.receipt, tuple):
            raise TypeError("contents and receipts are kinds of tuple")
        self.most_plain, self.most_together = terms.most_plain, terms.most_together
        self.send_timeout, self.timely = terms.send_timeout, terms.timely
        self.decorates = terms.decorates

    def send(self, message, key, queue, timeout, /):
        """Its receipt; None: nothing was done, take the long way."""
        cdef object content, done
        if key is not None or queue is not None or type(message) is not self.kind:
            return None
        berth = self.berth(message.topic, timeout)
        if berth is None:
            return None
        content = self.single(message, fields_of(message, self.own))
        if content is None:
            return None
        done = self.cross(<Berth>berth, <tuple>content, 1, timeout)
        return None if done is None else (<list>done)[0]

    def send_many(self, messages, key, timeout, /):
        """What became of each; None: nothing was done, take the long way."""
        cdef object first, content
        if key is not None or self.decorates or type(messages) is not list or len(<list>messages) < 2:
            return None
        first = (<list>messages)[0]
        if type(first) is not self.kind:
            return None
        berth = self.berth(first.topic, timeout)
        if berth is None:
            return None
        content = self.batch(<list>messages, first.topic, first.body)
        return None if content is None else self.cross(<Berth>berth, <tuple>content, len(<list>messages), timeout)

    cdef object berth(self, object topic, object timeout):
        """Of the queue whose turn it is, if its broker can be asked at once; else None."""
        cdef Berth found
        cdef object passage, course
        if self.closed or self.faults or type(topic) is not str or self.seconds(timeout) < self.timely:
            return None
        course = self.courses.get(topic)
        if course is None:
            course = self.chart(topic)
            if course is None:
                return None
        found = <Berth?>(<list?>course)[(<int64_t>self.turns[topic] + 1) % len(<list>course)]
        passage = found.passage
        if passage is None or passage.connection.link is not passage.link:
            passage = found.passage = self.board(found.address)
        return None if passage is None or passage.taken else found

    cdef double seconds(self, object timeout) except? -1:
        return self.send_timeout if timeout is None else <double>timeout

    cdef object single(self, object given, Outgoing message):
        """What travels of a message that goes alone; None if it is too large."""
        cdef Run body
        cdef mq_writer w
        cdef uint8_t[56] key
        cdef Py_ssize_t key_size
        cdef object held = message.body, text
        if type(held) is not bytes:
            return None
        body.at, body.size = <const uint8_t *>PyBytes_AS_STRING(held), PyBytes_GET_SIZE(held)
        if body.size >= self.most_together:
            return None
        if self.decorates or not plain(message, &body, self.most_plain, self.reserved):
            return self.prepare(given)
        mq_writer_open(&w, 256)
        try:
            key_size = put_properties(&w, message, self.keys, wall_ms(), key)
            check_text(w.size)
            text = mq_writer_done(&w)
        finally:
            mq_writer_drop(&w)
        return self.made(message.topic, held, text, (mq_text(key, key_size),), message.flag, self.alone_code)

    cdef object batch(self, list messages, object topic, object held):
        """What travels of messages that go together; None if they do not, or are too large. Its ids are made later."""
        cdef Py_ssize_t place = 0, count = len(messages)
        cdef uint8_t[56] key
        cdef Outgoing message
        cdef Run body
        cdef mq_writer w
        cdef int64_t now = wall_ms()
        if type(held) is not bytes or count * (ELEMENT + PyBytes_GET_SIZE(held)) >= self.most_together:
            return None
        mq_writer_open(&w, 4096)
        try:
            while place < len(messages):
                if type(messages[place]) is not self.kind:
                    return None
                message = fields_of(messages[place], self.own)
                held = message.body
                if type(held) is not bytes or not (message.topic is topic or message.topic == topic):
                    return None
                body.at, body.size = <const uint8_t *>PyBytes_AS_STRING(held), PyBytes_GET_SIZE(held)
                if w.size >= self.most_together or not plain(message, &body, self.most_plain, self.reserved):
                    return None
                put_message(&w, message, body, self.keys, now, key)
                place += 1
            if w.size >= self.most_together:
                return None
            return self.made(topic, mq_writer_done(&w), self.batch_properties, [], 0, self.batch_code)
        finally:
            mq_writer_drop(&w)

    cdef object made(self, object topic, object body, object properties, object ids, object flag, object code):
        """As `tuple.__new__(content, (topic, …))`."""
        cdef object made = mq_tuple_of(<PyTypeObject *>self.content, 10)
        set_item(made, 0, topic)
        set_item(made, 1, body)
        set_item(made, 2, properties)
        set_item(made, 3, ids)
        set_item(made, 4, flag)
        set_item(made, 5, 0)
        set_item(made, 6, None)
        set_item(made, 7, False)
        set_item(made, 8, code)
        set_item(made, 9, "")
        return made

    cdef object cross(self, Berth berth, tuple content, Py_ssize_t count, object timeout):
        """Over and back; None if nothing went out."""
        cdef SendHead head = berth.alone if count == 1 else berth.batch
        cdef double now = mq_seconds(False), deadline = now + self.seconds(timeout)
        cdef object topic = content[0], opaque = <int64_t>next(self.opaques) & 0x7FFFFFFF
        cdef object turn = <int64_t>self.turns[topic] + 1
        cdef Receipts receipts = new_receipts(self.receipt, berth.queue, content[3], "SEND_OK")
        cdef Crossing crossing = Crossing(
            berth.passage, opaque, (content, berth.queue, berth.address, deadline, now, count > 1)
        )
        frame = head.frame(opaque, content[2], content[1], wall_ms(), content[5], content[4])
        if count > 1:
            receipts.batch, receipts.key_size = content[1], self.keys.prefix_size + 12
        if self.lane is not None:
            answer = self.lane.over(crossing, frame, count, receipts)
        else:
            receipts.begin()
            answer = self.exchange(crossing, frame, count)
        if answer is None:
            return None
        self.turns[topic] = turn
        return receipts.end(<Frame>answer) if type(answer) is Frame else self.settle(crossing, answer)


cdef inline int64_t wall_ms() noexcept:
    return <int64_t>(mq_seconds(True) * 1000)
