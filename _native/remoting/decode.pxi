# Decoding a pull reply: the walk, and what a message needs beyond it.

@cython.internal
@cython.final
cdef class Decoding:
    """What one `decode_messages` was asked for beside the walk."""
    cdef object tags, decompress
    cdef bint check_crc
    cdef int64_t limit


def decode_messages(body not None, tags=None, *, bint check_crc=False, decompress=None, int64_t limit=MOST_BODIES,
                    queue=None, int64_t offset_delta=0, bint retry_topic=False):
    """The messages of a pull reply's body; with `tags` only those whose tag is one of them."""
    cdef MessageBatch batch = MessageBatch.__new__(MessageBatch)
    cdef Decoding how = None
    batch.owner = as_bytes(body)
    batch.queue = queue
    batch.delta = offset_delta
    batch.retry_topic = retry_topic
    if tags or check_crc or decompress is not None:
        how = Decoding.__new__(Decoding)
        how.tags, how.decompress, how.check_crc, how.limit = tags or None, decompress, check_crc, limit
    walk(batch, how)
    return batch


cdef int walk(MessageBatch batch, Decoding how) except -1:
    """Note every message of the body; those that need more than noting go the slow way."""
    cdef const uint8_t *start = <const uint8_t *>PyBytes_AS_STRING(batch.owner)
    cdef mq_cursor c = mq_open(start, start + PyBytes_GET_SIZE(batch.owner))
    cdef Records *records = &batch.records
    cdef Record r
    cdef const uint8_t *at
    first_records(records, first_guess(&c))
    while c.at < c.end:
        at = c.at
        if not walk_message(&c, &r):
            raise ProtocolError(f"message {batch.scanned} at byte {at - start} is cut off, or none")
        if how is not None or batch.delta != 0 or mq_be32(at + AT_SYS_FLAG) & INNER_BATCH == INNER_BATCH:
            try:
                settle_message(batch, how, &r)
            except ProtocolError as error:
                raise ProtocolError(f"message {batch.scanned} at byte {at - start}: {error}") from error
            continue
        batch.scanned += 1
        if records.count == records.room:
            more_records(records, 2 * records.room)
        records.first[records.count] = r
        records.count += 1
    return 0


cdef Py_ssize_t first_guess(mq_cursor *c) noexcept nogil:
    """How many messages there may be, if all are as long as the first: never more than the bytes can hold."""
    cdef mq_cursor probe = c[0]
    cdef int32_t size = mq_i32(&probe)
    return mq_left(c) // (size if size > SMALLEST else SMALLEST) + 1


cdef int settle_message(MessageBatch batch, Decoding how, Record *r) except -1:
    """CRC, decompression, inner batches, the tag filter."""
    cdef int32_t sys_flag = mq_be32(r.head + AT_SYS_FLAG)
    if how is not None and how.check_crc:
        check_body(r)
    if r.state == STILL_COMPRESSED and how is not None and how.decompress is not None:
        expand(batch, how, r, compression_of(sys_flag))
    if sys_flag & INNER_BATCH == INNER_BATCH and r.state != STILL_COMPRESSED:
        return take_apart(batch, how, r)
    return keep_record(batch, how, r)


cdef int check_body(const Record *r) except -1:
    if <int32_t>(mq_crc32(0, r.body, r.body_size) & 0x7FFFFFFF) != mq_be32(r.head + AT_CRC):
        raise ProtocolError(f"body of offset {mq_be64(r.head + AT_OFFSET)} has another CRC")
    return 0


cdef int expand(MessageBatch batch, Decoding how, Record *r, int kind) except -1:
    """The body decompressed by who was handed in; what it gives is checked against what is left of the limit."""
    cdef const uint8_t *start = <const uint8_t *>PyBytes_AS_STRING(batch.owner)
    cdef bytes body
    view = memoryview(batch.owner)[r.body - start:r.body - start + r.body_size]
    body = as_bytes(how.decompress(kind, view, how.limit))
    if PyBytes_GET_SIZE(body) > how.limit:
        raise ProtocolError(f"body of {len(body)} bytes, decompressed, is above the limit of {how.limit}")
    how.limit -= PyBytes_GET_SIZE(body)
    if batch.kept is None:
        batch.kept = []
    batch.kept.append(body)
    r.body = <const uint8_t *>PyBytes_AS_STRING(body)
    r.body_size = <uint32_t>PyBytes_GET_SIZE(body)
    r.state = DECOMPRESSED
    return 0


cdef int take_apart(MessageBatch batch, Decoding how, const Record *container) except -1:
    cdef mq_cursor c = mq_open(container.body, container.body + container.body_size)
    cdef Record r = container[0]
    while c.at < c.end:
        r.element += 1
        if not walk_element(&c, &r):
            raise ProtocolError(f"element {r.element} of an inner batch is cut off")
        keep_record(batch, how, &r)
    return 0


cdef int keep_record(MessageBatch batch, Decoding how, const Record *r) except -1:
    cdef mq_entry entry
    cdef int64_t offset = mq_be64(r.head + AT_OFFSET), more = r.element if r.element > 0 else 0
    if overflows(offset, more) or overflows(offset + more, batch.delta):
        raise ProtocolError(f"offset {offset} is beyond 64 bits, moved by {batch.delta}")
    batch.scanned += 1
    if how is not None and how.tags is not None:
        if not find(r, b"TAGS", 4, &entry) or tag_text(entry.value, entry.value_size) not in how.tags:
            return 0
    if batch.records.count == batch.records.room:
        more_records(&batch.records, 2 * batch.records.room)
    batch.records.first[batch.records.count] = r[0]
    batch.records.count += 1
    return 0


cdef bint overflows(int64_t one, int64_t two) noexcept nogil:
    return one > INT64_MAX - two if two > 0 else one < INT64_MIN - two


def split_batch(body not None):
    """A batch body as (flag, body, property text) each."""
    cdef bytes owner = as_bytes(body)
    cdef const uint8_t *start = <const uint8_t *>PyBytes_AS_STRING(owner)
    cdef mq_cursor c = mq_open(start, start + PyBytes_GET_SIZE(owner))
    cdef Record r
    cdef list elements = []
    while c.at < c.end:
        if not walk_element(&c, &r):
            raise ProtocolError(f"element {len(elements)} of a batch is cut off")
        elements.append((
            mq_be32(r.body - 8),
            PyBytes_FromStringAndSize(<const char *>r.body, r.body_size),
            PyBytes_FromStringAndSize(<const char *>r.text, r.text_size),
        ))
    return elements
