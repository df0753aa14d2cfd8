# What is acknowledged of which entry: records in a pool, found by (ledger, entry), without one Python object.

cdef struct Acks:
    int64_t ledger
    int64_t entry
    uint64_t bits       # not yet acknowledged; of a batch of more than 64 they are in `words`
    uint64_t* words
    int32_t size        # messages of the batch; 0: not known, and not needed
    int32_t left        # how many bits are set
    int32_t next_free
    bint waits          # is in the group
    bint forgotten      # leaves after it was told

cdef struct Table:
    Acks* pool
    int32_t* slots      # index into the pool + 1; 0: empty
    uint32_t mask
    int32_t pool_size
    int32_t pool_used   # of these some may be free again
    int32_t free        # chain of them through next_free, -1: none
    int32_t live


cdef inline uint32_t _home(Table* table, int64_t ledger, int64_t entry) noexcept:
    cdef uint64_t mixed = (<uint64_t>ledger * 0x9E3779B97F4A7C15u + <uint64_t>entry) * 0xD6E8FEB86659FD93u
    return <uint32_t>(mixed >> 32) & table.mask


cdef int table_open(Table* table) except -1:
    memset(table, 0, sizeof(Table))
    table.mask = 63
    table.pool_size = 32
    table.free = -1
    table.slots = <int32_t*>calloc(64, sizeof(int32_t))
    table.pool = <Acks*>malloc(32 * sizeof(Acks))
    if table.slots is NULL or table.pool is NULL:
        raise MemoryError()
    return 0


cdef void table_clear(Table* table) noexcept:
    cdef int32_t index
    if table.pool is NULL or table.slots is NULL:
        return
    if table.live:
        for index in range(table.pool_used):
            free(table.pool[index].words)
    memset(table.slots, 0, (<size_t>table.mask + 1) * sizeof(int32_t))
    table.pool_used = table.live = 0
    table.free = -1


cdef void table_close(Table* table) noexcept:
    table_clear(table)
    free(table.pool)
    free(table.slots)


cdef inline int32_t table_find(Table* table, int64_t ledger, int64_t entry) noexcept:
    """Index into the pool, or -1."""
    cdef uint32_t place = _home(table, ledger, entry)
    cdef int32_t index
    while table.slots[place]:
        index = table.slots[place] - 1
        if table.pool[index].entry == entry and table.pool[index].ledger == ledger:
            return index
        place = (place + 1) & table.mask
    return -1


cdef void _seat(Table* table, int32_t index) noexcept:
    cdef uint32_t place = _home(table, table.pool[index].ledger, table.pool[index].entry)
    while table.slots[place]:
        place = (place + 1) & table.mask
    table.slots[place] = index + 1


cdef int _table_grow(Table* table) except -1:
    """Twice as many records, four slots for each two; the free chain is empty here, so that all are in use."""
    cdef int32_t index, size = 2 * table.pool_size
    cdef Acks* pool
    cdef int32_t* slots
    if table.pool_size > (1 << 28):
        raise MemoryError()
    slots = <int32_t*>calloc(2 * <size_t>size, sizeof(int32_t))
    if slots is NULL:
        raise MemoryError()
    pool = <Acks*>realloc(table.pool, size * sizeof(Acks))
    if pool is NULL:
        free(slots)
        raise MemoryError()
    free(table.slots)
    table.pool, table.slots = pool, slots
    table.pool_size = size
    table.mask = 2 * <uint32_t>size - 1
    for index in range(table.pool_used):
        _seat(table, index)
    return 0


cdef int32_t table_insert(Table* table, int64_t ledger, int64_t entry, int32_t size) except -1:
    """A record with all its `size` bits set (none if size is 0); it must not be there yet."""
    cdef int32_t index
    cdef uint64_t* words = NULL
    cdef Py_ssize_t count = (size + 63) >> 6
    if table.free < 0 and table.pool_used == table.pool_size:
        _table_grow(table)
    if size > 64:
        words = <uint64_t*>malloc(count * sizeof(uint64_t))
        if words is NULL:
            raise MemoryError()
        memset(words, 0xff, count * sizeof(uint64_t))
        if size & 63:
            words[count - 1] = (<uint64_t>1 << (size & 63)) - 1
    if table.free >= 0:
        index = table.free
        table.free = table.pool[index].next_free
    else:
        index = table.pool_used
        table.pool_used += 1
    table.pool[index] = Acks(ledger, entry, 0, words, size, size, -1, False, False)
    if 0 < size <= 64:
        table.pool[index].bits = <uint64_t>-1 >> (64 - size)
    table.live += 1
    _seat(table, index)
    return index


cdef void table_remove(Table* table, int32_t index) noexcept:
    """Closes the gap: what follows without a hole moves up unless it is at home behind it."""
    cdef uint32_t place = _home(table, table.pool[index].ledger, table.pool[index].entry), after, home
    while table.slots[place] != index + 1:
        place = (place + 1) & table.mask
    after = place
    while True:
        after = (after + 1) & table.mask
        if not table.slots[after]:
            break
        home = _home(table, table.pool[table.slots[after] - 1].ledger, table.pool[table.slots[after] - 1].entry)
        if ((after - home) & table.mask) >= ((after - place) & table.mask):
            table.slots[place] = table.slots[after]
            place = after
    table.slots[place] = 0
    free(table.pool[index].words)
    table.pool[index].words = NULL
    table.pool[index].next_free = table.free
    table.free = index
    table.live -= 1


cdef inline uint64_t* acks_words(Acks* acks) noexcept:
    return acks.words if acks.words is not NULL else &acks.bits


cdef inline bint acks_clear_bit(Acks* acks, int32_t index) noexcept:
    """False if it was acknowledged before, or lies outside."""
    cdef uint64_t* word
    cdef uint64_t bit = <uint64_t>1 << (index & 63)
    if index >= acks.size:
        return False
    word = acks_words(acks) + (index >> 6)
    if not word[0] & bit:
        return False
    word[0] &= ~bit
    acks.left -= 1
    return True
