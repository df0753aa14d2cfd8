# Messages that wait for the user: a queue of puts, each a list with a cursor.

cdef class Source:
    cdef readonly object consumer
    cdef readonly long long epoch
    cdef public Py_ssize_t half
    cdef readonly Py_ssize_t waiting
    cdef readonly Py_ssize_t untold
    cdef readonly object last
    cdef Py_ssize_t _clears

    def __init__(self, consumer, long long epoch, Py_ssize_t half):
        self.consumer = consumer
        self.epoch = epoch
        self.half = half


@cython.final
@cython.freelist(512)
cdef class _Put:
    """One put: its messages from `cursor` on; or what is sealed and announced to hold `count`, and no messages."""

    cdef list messages
    cdef object sealed
    cdef Source source
    cdef Py_ssize_t cursor, count


cdef class Mailbox:
    cdef object _on_half, _opener, _wake
    cdef _Put _front
    cdef list _behind  # puts after the front, from `_first` on; before that None
    cdef Py_ssize_t _first, _count, _clears, _opening
    cdef bint _missed
    cdef object _failure

    def __init__(self, on_half=None, opener=None, wake=None):
        self._on_half = on_half
        self._opener = opener
        self._wake = wake
        self._behind = []

    def __len__(self):
        return self._count

    def put_many(self, list messages not None, Source source not None, /):
        cdef _Put put
        cdef Py_ssize_t count = PyList_GET_SIZE(messages)
        if not count:
            return self._count
        put = _Put.__new__(_Put)
        put.messages = messages
        put.source = source
        put.count = count
        with cython.critical_section(self):
            self._append(put)
            return self._count

    def put_sealed(self, sealed, Py_ssize_t count, Source source not None, /):
        cdef _Put put
        if self._opener is None:
            raise ValueError("this mailbox has no opener")
        if count < 0:
            raise ValueError(f"a put cannot announce {count} messages")
        put = _Put.__new__(_Put)
        put.sealed = sealed
        put.source = source
        put.count = count
        with cython.critical_section(self):
            self._append(put)
            return self._count

    def take(self):
        cdef _Put put
        cdef Source source = None
        cdef object message = None
        cdef bint due = False
        with cython.critical_section(self):
            put = self._front
            if put is not None and put.messages is not None and self._failure is None:
                source = put.source
                message = mq_steal(put.messages, put.cursor)
                put.cursor += 1
                put.count -= 1
                self._count -= 1
                source.waiting -= 1
                source.untold += 1
                due = source.untold >= source.half
                if not put.count:
                    self._advance()
                source.last = message  # lets go of the one before, which may run anything: so it comes last
        if source is None:
            if put is None and self._failure is None and not self._opening:
                return None
            taken = self._take_many(1)
            return taken[0] if taken else None
        if due:
            self._tell(source)
        return message

    def take_many(self, Py_ssize_t limit, /):
        return self._take_many(limit)

    def drain(self, Py_ssize_t limit, /):
        cdef list taken = [], whole
        with cython.critical_section(self):
            whole = self._gather(taken, limit, [])
        return taken if whole is None else whole

    def collect(self, Source source not None, /):
        cdef Py_ssize_t untold
        with cython.critical_section(self):
            untold, source.untold = source.untold, 0
        return untold

    def clear(self, Source source=None, /):
        cdef list before = [], kept = []  # made first: making them may run the collector
        cdef Py_ssize_t count
        with cython.critical_section(self):
            count = self._count
            self._sort_out(source, before, kept)
            count -= self._count
        del before[:]
        return count

    cdef inline int _append(self, _Put put) except -1:
        if self._front is None:
            self._front = put
        else:
            self._behind.append(put)
        self._move(put, put.count)
        return 0

    cdef inline void _move(self, _Put put, Py_ssize_t count) noexcept:
        put.source.waiting += count
        self._count += count

    cdef inline int _advance(self) except -1:
        """The front put is through."""
        if self._first == PyList_GET_SIZE(self._behind):
            self._front = None
            return 0
        self._front = <_Put>mq_steal(self._behind, self._first)
        self._first += 1
        if self._first >= 64 and 2 * self._first >= PyList_GET_SIZE(self._behind):
            del self._behind[: self._first]
            self._first = 0
        return 0

    cdef inline int _put_back(self, _Put put) except -1:
        if self._front is not None:
            if self._first:
                self._first -= 1
                self._behind[self._first] = self._front
            else:
                self._behind.insert(0, self._front)
        self._front = put
        self._move(put, put.count)
        return 0

    cdef int _sort_out(self, Source source, list gone, list kept) except -1:
        cdef Py_ssize_t index
        cdef _Put put
        if self._front is not None:
            (gone if source is None or self._front.source is source else kept).append(self._front)
        for index in range(self._first, PyList_GET_SIZE(self._behind)):
            put = <_Put>self._behind[index]
            (gone if source is None or put.source is source else kept).append(put)
        for put in gone:
            self._move(put, -put.count)
        self._behind, self._front, self._first = kept, None, 0
        self._advance()
        if source is None:
            self._clears += 1
        else:
            source._clears += 1
        return 0

    cdef list _take_many(self, Py_ssize_t limit):
        cdef list taken = [], whole = None, touched = []
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        try:
            whole = self._take_into(taken, limit, touched)
        except BaseException:
            if not taken:
                raise
            # Nothing taken gets lost: the sealed put is back at the front, and its opener raises at the next call.
        finally:
            for source in touched:
                self._tell(<Source>source)
        return taken if whole is None else whole

    cdef list _take_into(self, list taken, Py_ssize_t limit, list touched):
        cdef _Put sealed
        cdef list whole
        cdef Py_ssize_t clears, source_clears
        while True:
            with cython.critical_section(self):
                whole = self._gather(taken, limit, touched)
                if whole is not None or PyList_GET_SIZE(taken) >= limit:
                    return whole
                if self._front is None:
                    if self._opening and not taken:
                        self._missed = True
                    return None
                sealed = self._front
                self._advance()
                self._move(sealed, -sealed.count)
                self._opening += 1
                clears, source_clears = self._clears, sealed.source._clears
            touched.append(sealed.source)
            self._open(sealed, clears, source_clears)

    cdef list _gather(self, list taken, Py_ssize_t limit, list touched):
        """Append messages up to the limit, or up to what is sealed; a list that is all there is is given as it is."""
        cdef _Put put = self._front
        cdef Source source
        cdef Py_ssize_t count
        while put is not None and put.messages is not None and PyList_GET_SIZE(taken) < limit:
            source = put.source
            count = limit - PyList_GET_SIZE(taken)
            if put.count < count:
                count = put.count
            touched.append(source)
            if (not put.cursor and count == put.count == PyList_GET_SIZE(put.messages) and not taken
                    and (count == limit or self._first == PyList_GET_SIZE(self._behind))):
                self._charge(put, count)
                self._advance()
                source.last = put.messages[count - 1]
                return put.messages
            while count and PyList_GET_SIZE(taken) < limit:
                taken.append(mq_steal(put.messages, put.cursor))
                put.cursor += 1
                self._charge(put, 1)
                count -= 1
            if not put.count:
                self._advance()
            source.last = taken[PyList_GET_SIZE(taken) - 1]
            put = self._front
        return None

    cdef inline void _charge(self, _Put put, Py_ssize_t count) noexcept:
        put.count -= count
        self._count -= count
        put.source.waiting -= count
        put.source.untold += count

    cdef int _open(self, _Put put, Py_ssize_t clears, Py_ssize_t source_clears) except -1:
        """Turn a claimed put into messages at the front, outside of any critical section.

        Race: A opens, the engine clears, A comes back. What A opened was dropped by that clear, but could not be
        counted by it; it counts as taken, so that its permits find their way back. Race: A opens, B finds nothing and
        goes to wait, A puts back more than it takes. So A wakes.
        """
        cdef bint failed = True, missed
        cdef list messages
        try:
            messages = list(self._opener(put.sealed, put.source))
            put.messages, put.sealed, put.count = messages, None, PyList_GET_SIZE(messages)
            failed = False
        finally:
            with cython.critical_section(self):
                self._opening -= 1
                if clears != self._clears or source_clears != put.source._clears:
                    put.source.untold += put.count
                elif put.count or failed:
                    self._put_back(put)
                missed, self._missed = self._missed, False
            if missed and self._wake is not None:
                self._wake()
        return 0

    cdef int _tell(self, Source source) except -1:
        """The count starts anew *before* it is told: telling enters the engine, which may look here."""
        cdef Py_ssize_t untold
        if self._on_half is None:
            return 0
        with cython.critical_section(self):
            untold = source.untold
            if not 0 < source.half <= untold:
                return 0
            source.untold = 0
        try:
            self._on_half(source, untold)
        except BaseException as failure:
            self._failure = failure  # the messages in hand must not get lost; the next take raises it
        return 0
