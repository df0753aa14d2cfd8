# An entry's payload, opened and walked once: where each message lies.

cdef struct Walk:
    const uint8_t *base
    int64_t size
    int64_t *words  # the ack set; NULL: nothing acknowledged
    Py_ssize_t word_count
    int64_t first_sequence
    int32_t count


cdef inline bint acked(const Walk *w, int64_t index) noexcept nogil:
    """The ack set names this batch index as acknowledged."""
    if w.words == NULL:
        return False
    return index >> 6 >= w.word_count or not w.words[index >> 6] >> (index & 63) & 1


cdef bint read_single(mq_cursor c, Item *item, int64_t *payload_size, bint *gone) noexcept nogil:
    """SingleMessageMetadata; False if it is malformed. Sizes and numbers only: the rest is read when asked for."""
    cdef mq_field f
    while mq_next_field(&c, &f):
        if f.tag == 3 << 3:
            payload_size[0] = <int32_t>f.value
        elif f.tag == 8 << 3:
            item.sequence_id = f.value
            item.flags |= F_SEQUENCE
        elif f.tag == 5 << 3:
            item.event_time = f.value
        elif f.tag == (1 << 3 | DATA) or f.tag == (2 << 3 | DATA) or f.tag == (7 << 3 | DATA):
            item.flags |= F_MORE
        elif f.tag == 4 << 3:
            gone[0] = f.value != 0
        elif f.tag == 6 << 3:
            item.flags = (item.flags & ~F_B64) | F_B64_SAID | (F_B64 if f.value else 0)
        elif f.tag == 9 << 3:
            item.flags = (item.flags & ~F_NULL_VALUE) | (F_NULL_VALUE if f.value else 0)
        elif f.tag == 10 << 3:
            item.flags = (item.flags & ~F_NULL_KEY) | (F_NULL_KEY if f.value else 0)
    return not c.bad


cdef bint next_item(mq_cursor *c, const uint8_t *base, Item *item, bint *gone) noexcept nogil:
    """One message of a batch; False if it is missing, cut or malformed."""
    cdef Span metadata
    cdef int64_t payload_size = -1
    cdef const uint8_t *body
    memset(item, 0, sizeof(Item))
    gone[0] = False
    if not read_sized(c, &metadata):
        return False
    if not read_single(mq_open(metadata.at, metadata.at + metadata.size), item, &payload_size, gone):
        return False
    body = mq_skip(c, payload_size)
    if body == NULL:
        return False
    item.metadata_at = <uint32_t>(metadata.at - base)
    item.metadata_size = <uint32_t>metadata.size
    item.body_at = <uint32_t>(body - base)
    item.body_size = <uint32_t>payload_size
    return True


cdef bint walk(MessageBatch batch, const Walk *w, bint keep) except -1:
    """Fill the batch's items; False if its bytes are no such batch."""
    cdef mq_cursor c = mq_open(w.base, w.base + w.size)
    cdef frozenset left = batch.entry.compacted_left
    cdef int32_t index
    cdef bint gone
    cdef Item *item
    for index in range(w.count):
        item = &batch.items[batch.count]
        if not next_item(&c, w.base, item, &gone):
            return False
        if acked(w, index):
            continue
        if left is not None and left and index not in left:
            gone = True
        if gone:
            if not keep:
                batch.compacted += 1
                continue
            item.flags |= F_GONE
        if not item.flags & F_SEQUENCE:
            item.sequence_id = <int64_t>(<uint64_t>w.first_sequence + <uint64_t>index)
        item.index = index
        batch.count += 1
    return True


cdef MessageBatch failed(MessageBatch batch, int error):
    batch.error = error
    batch.count = 0
    batch.compacted = 0
    batch.lost = charged_of(batch.entry)
    return batch


cdef MessageBatch whole(MessageBatch batch, uint16_t flags, Py_ssize_t at, Py_ssize_t size):
    """One message that is not batch-framed, or that nobody could open."""
    cdef Entry entry = batch.entry
    cdef Item *item = &batch.one
    batch.items = item
    item.flags = flags | F_WHOLE
    if entry.m.has & H_NULL_VALUE:
        item.flags |= F_NULL_VALUE
    if entry.m.has & H_NULL_KEY:
        item.flags |= F_NULL_KEY
    item.index = -1
    item.sequence_id = entry.m.sequence_id
    item.event_time = entry.m.event_time
    item.body_at = <uint32_t>at
    item.body_size = <uint32_t>size
    batch.count = 1
    return settled(batch)


cdef MessageBatch settled(MessageBatch batch):
    """`lost` makes up for what was charged and is not there."""
    cdef int64_t lost = charged_of(batch.entry) - batch.count - batch.compacted
    batch.lost = lost if lost > 0 else 0
    return batch


cdef MessageBatch batched(MessageBatch batch, Py_ssize_t at, Py_ssize_t size, bint keep):
    """The messages of a batch-framed payload."""
    cdef Entry entry = batch.entry
    cdef Walk w
    cdef bint good
    if size // 6 < entry.m.num_messages:  # the shortest message takes six bytes: checked before the allocation
        return failed(batch, E_BATCH)
    w.base = batch.base + at
    w.size = size
    w.count = entry.m.num_messages
    w.first_sequence = entry.m.sequence_id
    w.words = NULL
    w.word_count = 0
    batch.base = w.base
    batch.items = <Item *>malloc(<size_t>w.count * sizeof(Item))
    if batch.items == NULL:
        raise MemoryError()
    try:
        take_words(entry, &w)
        good = walk(batch, &w, keep)
    finally:
        free(w.words)
    return settled(batch) if good else failed(batch, E_BATCH)


cdef bint take_words(Entry entry, Walk *w) except -1:
    cdef Py_ssize_t place
    if entry.ack_set is None:
        return True
    w.word_count = len(entry.ack_set)
    w.words = <int64_t *>malloc(<size_t>w.word_count * sizeof(int64_t))
    if w.words == NULL:
        raise MemoryError()
    for place in range(w.word_count):
        w.words[place] = entry.ack_set[place]
    return True


cdef bytes opened(MessageBatch batch, object payload, object decompress, int64_t limit):
    """The payload decompressed, or None with the batch's error set."""
    cdef Entry entry = batch.entry
    if entry.m.uncompressed_size > limit:
        batch.error = E_SIZE
        return None
    try:
        found = decompress(entry.m.compression, memoryview(payload), entry.m.uncompressed_size)
    except ProtocolError:
        batch.error = E_DECOMPRESSION
        return None
    cdef bytes data = found if type(found) is bytes else bytes(found)
    if len(data) != entry.m.uncompressed_size:
        batch.error = E_SIZE
        return None
    return data


def decode_messages(
    Entry entry not None, payload=None, /, *, decompress=None, int64_t limit=5242880, bint keep_compacted=False
):
    """The messages of an entry. Bad bytes never raise: see `MessageBatch.corrupt`."""
    cdef MessageBatch batch = MessageBatch.__new__(MessageBatch)
    cdef Py_ssize_t at = 0, size
    cdef uint16_t as_stored = 0
    batch.entry = entry
    if entry.m.has & H_CORRUPT or entry.data is None:
        return failed(batch, E_CHECKSUM)
    if entry.m.has & H_ENCRYPTED and payload is None:
        as_stored = F_ENCRYPTED
    if entry.m.compression != 0 and (as_stored or decompress is None):
        as_stored |= F_COMPRESSED
    if entry.m.compression != 0 and not as_stored:
        batch.data = opened(batch, entry.payload if payload is None else payload, decompress, limit)
        if batch.data is None:
            return failed(batch, batch.error)
        size = PyBytes_GET_SIZE(batch.data)
    elif payload is None:
        batch.data = entry.data
        at = entry.payload_at()
        size = entry.payload_.size
    else:
        batch.data = payload if type(payload) is bytes else bytes(payload)
        size = PyBytes_GET_SIZE(batch.data)
    if size > 0x7FFFFFFF:
        return failed(batch, E_SIZE)
    batch.base = <const uint8_t *>PyBytes_AS_STRING(batch.data)
    if as_stored or not entry.m.has & H_BATCHED:
        return whole(batch, as_stored, at, size) if open_at(entry, as_stored) else settled(batch)
    return batched(batch, at, size, keep_compacted)


cdef bint open_at(Entry entry, bint as_stored) except -1:
    """Whether anything in an entry that is one message is not acknowledged yet."""
    if entry.ack_set is None and not entry.m.has & H_PERMITS:
        return True
    if as_stored:
        return charged_of(entry) != 0
    return entry.ack_set is None or (<int64_t>entry.ack_set[0]) & 1
