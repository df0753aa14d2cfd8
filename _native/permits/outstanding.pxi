# Offsets of one RocketMQ queue in flight: a ring, ascending, whose first and last are never done.

cdef struct Flight:
    int64_t offset
    int64_t size  # -1: done


cdef class Outstanding:
    cdef Flight* _ring
    cdef size_t _mask, _head, _used
    cdef Py_ssize_t _count
    cdef int64_t _bytes, _highest_seen

    def __cinit__(self):
        self._ring = <Flight*>malloc(16 * sizeof(Flight))
        if self._ring is NULL:
            raise MemoryError()
        self._mask = 15
        self._highest_seen = -1

    def __dealloc__(self):
        free(self._ring)

    def __len__(self):
        return self._count

    def __contains__(self, offset):
        cdef int64_t wanted
        if not isinstance(offset, int):
            return False
        try:
            wanted = offset
        except OverflowError:
            return False
        return self._find(wanted) is not NULL

    @property
    def count(self):
        return self._count

    @property
    def bytes(self):
        return self._bytes

    @property
    def span(self):
        return self._span()

    @property
    def lowest(self):
        return self._at(0).offset if self._used else -1

    @property
    def highest_seen(self):
        return self._highest_seen

    @property
    def commit_offset(self):
        if self._used:
            return self._at(0).offset
        return self._highest_seen + 1 if self._highest_seen >= 0 else -1

    def add(self, int64_t offset, int64_t size, /):
        return bool(self._add(offset, size))

    def add_many(self, offsets, sizes, /):
        cdef list all_offsets = offsets if type(offsets) is list else list(offsets)
        cdef list all_sizes = sizes if type(sizes) is list else list(sizes)
        cdef Py_ssize_t index, new = 0
        if len(all_offsets) != len(all_sizes):
            raise ValueError(f"{len(all_offsets)} offsets with {len(all_sizes)} sizes")
        for index in range(len(all_offsets)):
            new += self._add(<int64_t?>all_offsets[index], <int64_t?>all_sizes[index])
        return new

    def done(self, int64_t offset, /):
        return self._done(offset)

    def done_many(self, offsets, /):
        cdef int64_t offset
        cdef Py_ssize_t count = 0
        for offset in offsets:
            count += self._done(offset)
        return count

    def over(self, int64_t count, int64_t bytes, int64_t span, /):
        if 0 <= count < self._count:
            return COUNT
        if 0 <= bytes < self._bytes:
            return BYTES
        if 0 <= span < self._span():
            return SPAN
        return 0

    def offsets(self):
        cdef size_t index
        return [self._at(index).offset for index in range(self._used) if self._at(index).size >= 0]

    def clear(self):
        cdef Py_ssize_t count = self._count
        self._head = self._used = 0
        self._count = 0
        self._bytes = 0
        self._highest_seen = -1
        return count

    cdef inline Flight* _at(self, size_t index) noexcept:
        return &self._ring[(self._head + index) & self._mask]

    cdef inline int64_t _span(self) noexcept:
        return self._at(self._used - 1).offset - self._at(0).offset if self._used else 0

    cdef int _add(self, int64_t offset, int64_t size) except -1:
        if offset < 0 or size < 0 or size > MOST:
            raise ValueError(f"no message has offset {offset} and size {size}")
        if offset <= self._highest_seen:
            return 0
        if self._used > self._mask:
            self._grow()
        self._highest_seen = offset
        self._at(self._used)[0] = Flight(offset, size)
        self._used += 1
        self._count += 1
        self._bytes += size
        return 1

    cdef int _grow(self) except -1:
        cdef size_t capacity = self._mask + 1, index
        cdef Flight* ring = <Flight*>malloc(2 * capacity * sizeof(Flight))
        if ring is NULL:
            raise MemoryError()
        for index in range(self._used):
            ring[index] = self._at(index)[0]
        free(self._ring)
        self._ring = ring
        self._mask = 2 * capacity - 1
        self._head = 0
        return 0

    cdef Flight* _find(self, int64_t offset) noexcept:
        """Offsets ascend by at least one a place, which bounds the place from both ends: without gaps it is exact."""
        cdef int64_t first, last
        cdef size_t low, high, middle
        cdef Flight* flight
        if not self._used:
            return NULL
        first = self._at(0).offset
        last = self._at(self._used - 1).offset
        if offset < first or offset > last:
            return NULL
        high = self._used - 1
        if <uint64_t>(offset - first) < high:
            high = <size_t>(offset - first)
        low = 0
        if <uint64_t>(last - offset) < self._used - 1:
            low = self._used - 1 - <size_t>(last - offset)
        while low < high:
            middle = (low + high) >> 1
            if self._at(middle).offset < offset:
                low = middle + 1
            else:
                high = middle
        flight = self._at(low)
        return flight if flight.offset == offset and flight.size >= 0 else NULL

    cdef bint _done(self, int64_t offset) noexcept:
        cdef Flight* flight = self._find(offset)
        if flight is NULL:
            return False
        self._bytes -= flight.size
        self._count -= 1
        flight.size = -1
        while self._used and self._at(0).size < 0:
            self._head += 1
            self._used -= 1
        while self._used and self._at(self._used - 1).size < 0:
            self._used -= 1
        return True
