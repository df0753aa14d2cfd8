# Acknowledgements that wait to be told, used by faces without the engine lock.

cdef enum:
    _ARM = 1
    _FLUSH = 2

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define mq_popcount(word) __builtin_popcountll(word)
    #else
    static int mq_popcount(unsigned long long word) { int n = 0; for (; word; word &= word - 1) n++; return n; }
    #endif
    """
    int mq_popcount(uint64_t word) nogil

cdef struct Told:
    int64_t ledger
    int64_t entry
    Py_ssize_t words  # where its words start
    Py_ssize_t count  # of them; 0: the whole entry


cdef tuple _signed(const uint64_t* words, Py_ssize_t count):
    return tuple([<int64_t>words[place] for place in range(count)])


cdef class AckSet:
    cdef Table _table
    cdef int32_t* _group
    cdef int32_t _group_size, _waiting, _limit, _last
    cdef bint _batch_index, _moved
    cdef int64_t _ledger, _entry, _index  # the cumulative position; an index of MOST: the whole entry
    cdef int32_t _size
    cdef PyTypeObject* _known
    cdef read_ack_id _read
    cdef object _known_type, _plain_type

    def __cinit__(self):
        self._group = <int32_t*>malloc(64 * sizeof(int32_t))
        self._group_size = 64
        if self._group is NULL:
            raise MemoryError()
        table_open(&self._table)
        self._last = -1
        self._ledger = self._entry = self._index = -1

    def __init__(self, long long limit=1000, *, bint batch_index=True):
        if limit < 1 or limit > MOST:
            raise ValueError(f"a group of {limit} acknowledgements is impossible")
        self._limit = <int32_t>limit
        self._batch_index = batch_index

    def __dealloc__(self):
        table_close(&self._table)
        free(self._group)

    def __len__(self):
        return self._waiting

    def add(self, message, /):
        cdef ack_id place
        if Py_TYPE(message) is self._known:
            self._read(<PyObject*>message, &place)
            return self._add(&place)
        holder = self._place(message, &place)
        return self._add(&place)

    def add_many(self, messages, /):
        cdef ack_id place
        cdef int signal, strongest = 0
        for message in messages:
            holder = self._place(message, &place)
            signal = self._add(&place)
            if signal > strongest:
                strongest = signal
        return strongest

    def add_id(self, int64_t ledger, int64_t entry, int32_t batch_index=-1, int32_t batch_size=0, /):
        cdef ack_id place = ack_id(ledger, entry, batch_index, batch_size, NULL)
        return self._add(&place)

    def add_cumulative(self, message, /):
        cdef ack_id place
        cdef int64_t index
        cdef bint armed
        holder = self._place(message, &place)
        self._check_index(&place)
        index = place.batch_index
        if index < 0 or index == place.batch_size - 1:
            index = MOST
        elif not self._batch_index:
            index = MOST
            place.entry -= 1
        with cython.critical_section(self):
            if not self._before(place.ledger, place.entry, index):
                return self._signal(True)
            armed = self._moved or self._waiting
            self._ledger, self._entry, self._index = place.ledger, place.entry, index
            self._size = place.batch_size
            self._moved = True
            return self._signal(armed)

    def take(self):
        """Out of the table first, then into Python objects: making those may run a collector, and that anything."""
        cdef Told* told
        cdef uint64_t* words
        cdef Py_ssize_t index, count
        cdef list acks
        with cython.critical_section(self):
            count = self._waiting
            told = <Told*>malloc((count + 1) * sizeof(Told))
            words = <uint64_t*>malloc((self._told_words() + 1) * sizeof(uint64_t))
            if told is NULL or words is NULL:
                free(told)
                free(words)
                raise MemoryError()
            self._tell(told, words)
        try:
            acks = []
            for index in range(count):
                if told[index].count:
                    acks.append((told[index].ledger, told[index].entry,
                                 _signed(words + told[index].words, told[index].count)))
                else:
                    acks.append((told[index].ledger, told[index].entry))
            return acks
        finally:
            free(told)
            free(words)

    def take_cumulative(self):
        cdef int64_t ledger, entry, index
        cdef int32_t size
        with cython.critical_section(self):
            if not self._moved:
                return None
            self._moved = False
            ledger, entry, index, size = self._ledger, self._entry, self._index, self._size
        if index == MOST:
            return ledger, entry
        return ledger, entry, _above(<int32_t>index, size)

    def covers(self, int64_t ledger, int64_t entry, int32_t batch_index=-1, /):
        cdef int32_t found
        cdef Acks* acks
        with cython.critical_section(self):
            if not self._before(ledger, entry, batch_index if batch_index >= 0 else MOST):
                return True
            found = table_find(&self._table, ledger, entry)
            if found < 0:
                return False
            acks = &self._table.pool[found]
            if batch_index < 0 or not acks.left:
                return acks.left == 0 and (batch_index < 0 or batch_index < (acks.size if acks.size > 1 else 1))
            return batch_index < acks.size and not acks_words(acks)[batch_index >> 6] >> (batch_index & 63) & 1

    def forget(self):
        cdef int32_t place
        cdef uint32_t slot
        with cython.critical_section(self):
            # What waits is marked; what does not is removed: each removal may move a later one to its place.
            for place in range(self._waiting):
                self._table.pool[self._group[place]].forgotten = True
            for slot in range(self._table.mask + 1):
                while self._table.slots[slot] and not self._table.pool[self._table.slots[slot] - 1].waits:
                    table_remove(&self._table, self._table.slots[slot] - 1)
            self._last = -1

    def clear(self):
        with cython.critical_section(self):
            table_clear(&self._table)
            self._waiting = 0
            self._last = -1
            self._moved = False
            self._ledger = self._entry = self._index = -1

    cdef inline object _place(self, object message, ack_id* place):
        """Fills `place`; what it gives back keeps `place.holder` alive."""
        if Py_TYPE(message) is self._known:
            self._read(<PyObject*>message, place)
            return message
        return self._place_slowly(message, place)

    cdef object _place_slowly(self, object message, ack_id* place):
        if type(message) is not self._plain_type:
            read = getattr(type(message), "__ack_id__", None)
            if PyCapsule_IsValid(read, ACK_ID_CAPSULE):
                self._read = <read_ack_id>PyCapsule_GetPointer(read, ACK_ID_CAPSULE)
                self._known_type = type(message)
                self._known = Py_TYPE(message)
                self._read(<PyObject*>message, place)
                return message
            self._plain_type = type(message)
        try:
            holder = message.entry
        except AttributeError:
            shown = repr(message) if isinstance(message, str) else type(message).__name__
            raise TypeError(f"a message, its id, or a list of these is needed here, not {shown}") from None
        place.batch_index = message.batch_index
        if isinstance(holder, int):
            place.ledger, place.entry, place.batch_size = message.ledger, holder, message.batch_size
            place.holder = NULL
            return message
        place.ledger, place.entry, place.batch_size = holder.ledger, holder.entry, holder.num_messages
        place.holder = <PyObject*>holder
        return holder

    cdef int _check_index(self, ack_id* place) except -1:
        if place.batch_index >= 0 and (place.batch_index >= place.batch_size or place.batch_size > LARGEST_BATCH):
            raise ValueError(f"batch index {place.batch_index} is not within a batch of {place.batch_size}")
        return 0

    cdef inline bint _before(self, int64_t ledger, int64_t entry, int64_t index) noexcept:
        """The cumulative position lies before this one."""
        if self._ledger != ledger:
            return self._ledger < ledger
        if self._entry != entry:
            return self._entry < entry
        return self._index < index

    cdef inline int _signal(self, bint armed) noexcept:
        if self._waiting >= self._limit or (self._moved and self._limit == 1):
            return _FLUSH
        return 0 if armed else _ARM

    cdef int _add(self, ack_id* place) except -1:
        cdef int32_t found
        cdef Acks* acks
        cdef tuple ack_set = None
        self._check_index(place)
        if place.batch_index >= 0 and place.holder is not NULL and not self._has(place):
            ack_set = _ack_set(<object>place.holder)  # may run Python code: so it is looked up again
        with cython.critical_section(self):
            found = self._find(place)
            if found < 0:
                found = self._insert(place, ack_set)
                acks = &self._table.pool[found]
                if place.batch_index >= 0:
                    acks_clear_bit(acks, place.batch_index)
            else:
                acks = &self._table.pool[found]
                if not acks.left:
                    return self._signal(True)
                if place.batch_index < 0:
                    acks.left = 0
                elif not acks_clear_bit(acks, place.batch_index):
                    return self._signal(True)
            if acks.waits or (acks.left and not self._batch_index):
                return self._signal(True)
            return self._join(found)

    cdef inline bint _has(self, ack_id* place):
        with cython.critical_section(self):
            return self._find(place) >= 0

    cdef inline int32_t _find(self, ack_id* place) noexcept:
        """Messages of one entry come one after the other."""
        cdef Acks* acks
        if self._last >= 0:
            acks = &self._table.pool[self._last]
            if acks.entry == place.entry and acks.ledger == place.ledger:
                return self._last
        self._last = table_find(&self._table, place.ledger, place.entry)
        return self._last

    cdef int32_t _insert(self, ack_id* place, tuple ack_set) except -1:
        cdef int32_t found = table_insert(&self._table, place.ledger, place.entry,
                                          place.batch_size if place.batch_index >= 0 else 0)
        cdef Acks* acks = &self._table.pool[found]
        cdef uint64_t* words = acks_words(acks)
        cdef Py_ssize_t word
        if ack_set:
            acks.left = 0
            for word in range((acks.size + 63) >> 6):
                words[word] &= PyLong_AsUnsignedLongLongMask(ack_set[word]) if word < len(ack_set) else 0
                acks.left += mq_popcount(words[word])
        self._last = found
        return found

    cdef int _join(self, int32_t found) except -1:
        cdef int32_t* group
        cdef bint armed = self._moved or self._waiting
        if self._waiting == self._group_size:
            group = <int32_t*>realloc(self._group, 2 * <size_t>self._group_size * sizeof(int32_t))
            if group is NULL:
                raise MemoryError()
            self._group = group
            self._group_size *= 2
        self._table.pool[found].waits = True
        self._group[self._waiting] = found
        self._waiting += 1
        return self._signal(armed)

    cdef Py_ssize_t _told_words(self) noexcept:
        cdef Py_ssize_t total = 0
        cdef int32_t place
        for place in range(self._waiting):
            if self._table.pool[self._group[place]].left:
                total += (self._table.pool[self._group[place]].size + 63) >> 6
        return total

    cdef void _tell(self, Told* told, uint64_t* words) noexcept:
        """Copy the group out and end it: entries acknowledged in full leave the table."""
        cdef Py_ssize_t used = 0, count
        cdef int32_t place, found, gone = 0
        cdef Acks* acks
        for place in range(self._waiting):
            acks = &self._table.pool[self._group[place]]
            acks.waits = False
            count = 0
            if acks.left:
                count = (acks.size + 63) >> 6
                memcpy(words + used, acks_words(acks), count * sizeof(uint64_t))
                while not words[used + count - 1]:
                    count -= 1
            told[place] = Told(acks.ledger, acks.entry, used, count)
            used += count
            gone += not acks.left or acks.forgotten
        if gone == self._table.live:
            table_clear(&self._table)
        else:
            for place in range(self._waiting):
                found = self._group[place]
                if not self._table.pool[found].left or self._table.pool[found].forgotten:
                    table_remove(&self._table, found)
        self._waiting = 0
        self._last = -1


cdef tuple _ack_set(object holder):
    """The words of an entry's ack set, checked to be ints: reading those runs no Python code."""
    ack_set = holder.ack_set
    if not ack_set:
        return None
    words = tuple(ack_set)
    for word in words:
        if not isinstance(word, int):
            raise TypeError(f"an ack set of {word!r}")
    return words


cdef tuple _above(int32_t index, int32_t size):
    """The words of a batch with just the bits behind `index` set."""
    cdef int32_t start
    cdef uint64_t bits
    words = []
    for start in range(0, size, 64):
        bits = <uint64_t>-1
        if index >= start + 63:
            bits = 0
        elif index >= start:
            bits <<= index - start + 1
        if size - start < 64:
            bits &= (<uint64_t>1 << (size - start)) - 1
        words.append(<int64_t>bits)
    return tuple(words)
