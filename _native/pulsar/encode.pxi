# The bytes of hot commands and of message metadata.

cdef enum:
    NUMBER_ROOM = 15  # the longest tag and varint
    FRAME_ROOM = 32  # sizes and BaseCommand in front of a command, magics and sizes behind it


cdef struct View:  # a buffer of the caller's
    Py_buffer buffer
    const uint8_t *at
    Py_ssize_t size


cdef int open_view(View *view, object data) except -1:
    PyObject_GetBuffer(data, &view.buffer, PyBUF_SIMPLE)
    view.at = <const uint8_t *>view.buffer.buf
    view.size = view.buffer.len
    return 0


cdef inline void close_view(View *view) noexcept:
    PyBuffer_Release(&view.buffer)


cdef inline bytes new_bytes(int64_t size):
    return PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)


cdef inline uint8_t *put_head(uint8_t *p, uint32_t type, int64_t size, int64_t behind) noexcept nogil:
    """Sizes and BaseCommand up to where its command of `size` bytes begins; `behind` more follow it."""
    cdef int64_t base = head_size(type, size) - 8 + size
    mq_put32(p, <int32_t>(4 + base + behind))
    mq_put32(p + 4, <int32_t>base)
    p = mq_put_number(p + 8, 1, type)
    return mq_put_varint(mq_put_varint(p, type << 3 | DATA), <uint64_t>size)


cdef inline int64_t head_size(uint32_t type, int64_t size) noexcept nogil:
    return 9 + mq_varint_size(type) + mq_varint_size(type << 3) + mq_varint_size(<uint64_t>size)


cdef bytes command_frame(uint32_t type, const uint8_t *body, int64_t size):
    """A frame that is one command."""
    if size > 0x7FFF0000:
        raise ConfigError(f"a command of {size} bytes")
    cdef bytes frame = new_bytes(head_size(type, size) + size)
    cdef uint8_t *p = put_head(<uint8_t *>PyBytes_AS_STRING(frame), type, size, 0)
    if size > 0:
        memcpy(p, body, <size_t>size)
    return frame


def encode_command(int32_t type, body=b"", /):
    """The frame of a cold command: its type and the bytes of its sub-message."""
    cdef View view
    open_view(&view, body)
    try:
        return command_frame(<uint32_t>type, view.at, view.size)
    finally:
        close_view(&view)


cdef uint8_t *put_txn(uint8_t *p, uint32_t least, uint32_t most, tuple txn) except NULL:
    if txn is not None:
        p = mq_put_number(p, least, <int64_t>txn[1])
        p = mq_put_number(p, most, <int64_t>txn[0])
    return p


def encode_send(
    int64_t producer_id,
    int64_t sequence_id,
    metadata,
    payload,
    /,
    *,
    int32_t num_messages=0,
    highest_sequence_id=None,
    bint is_chunk=False,
    bint marker=False,
    tuple txn=None,
):
    """SEND with its CRC-32C. `num_messages` 0 leaves the field out."""
    cdef uint8_t room[8 * 15]
    cdef uint8_t *p = mq_put_number(mq_put_number(room, 1, producer_id), 2, sequence_id)
    if num_messages:
        p = mq_put_number(p, 3, num_messages)
    p = put_txn(p, 4, 5, txn)
    if highest_sequence_id is not None:
        p = mq_put_number(p, 6, <int64_t>highest_sequence_id)
    if is_chunk:
        p = mq_put_number(p, 7, 1)
    if marker:
        p = mq_put_number(p, 8, 1)
    cdef View meta, body
    open_view(&meta, metadata)
    try:
        open_view(&body, payload)
        try:
            return send_frame(room, p - room, &meta, &body)
        finally:
            close_view(&body)
    finally:
        close_view(&meta)


cdef bytes send_frame(const uint8_t *command, int64_t size, View *metadata, View *payload):
    cdef int64_t covered = 4 + <int64_t>metadata.size + payload.size
    if covered > 0x7FFF0000:
        raise ConfigError(f"an entry of {covered} bytes")
    cdef bytes frame = new_bytes(head_size(T_SEND, size) + size + 6 + covered)
    cdef uint8_t *p = put_head(<uint8_t *>PyBytes_AS_STRING(frame), T_SEND, size, 6 + covered)
    cdef uint8_t *crc
    memcpy(p, command, <size_t>size)
    p += size
    mq_put16(p, MAGIC_CHECKSUM)
    crc = p + 2
    p += 6
    mq_put32(p, <int32_t>metadata.size)
    memcpy(p + 4, metadata.at, <size_t>metadata.size)
    memcpy(p + 4 + metadata.size, payload.at, <size_t>payload.size)
    mq_put32(crc, <int32_t>mq_crc32c(0, p, <size_t>covered))
    return frame


def encode_message(
    int64_t consumer_id,
    int64_t ledger,
    int64_t entry,
    stored,
    /,
    *,
    partition=None,
    uint32_t redelivery_count=0,
    ack_set=None,
    consumer_epoch=None,
    broker_timestamp=None,
    broker_index=None,
    bint head_only=False,
):
    """MESSAGE around `stored` as it is; broker entry metadata in front if one of its two fields is given."""
    cdef uint8_t id[3 * 15]
    cdef uint8_t front[6 + 2 * 15]
    cdef uint8_t *p = mq_put_number(mq_put_number(id, 1, ledger), 2, entry)
    cdef uint8_t *f = front
    cdef mq_writer w
    cdef View body
    if partition is not None:
        p = mq_put_number(p, 3, <int32_t>partition)
    cdef int64_t id_size = p - id
    if broker_timestamp is not None or broker_index is not None:
        f = front + 6
        if broker_timestamp is not None:
            f = mq_put_number(f, 1, <int64_t>broker_timestamp)
        if broker_index is not None:
            f = mq_put_number(f, 2, <int64_t>broker_index)
        mq_put16(front, MAGIC_BROKER_ENTRY)
        mq_put32(front + 2, <int32_t>(f - front - 6))
    mq_writer_open(&w, 128)
    try:
        p = mq_room(&w, 2 * NUMBER_ROOM + id_size)
        p = mq_put_data(mq_put_number(p, 1, consumer_id), 2, id, id_size)
        w.size = p - w.start
        if redelivery_count:
            write_number(&w, 3, redelivery_count)
        for word in ack_set or ():
            write_number(&w, 4, <int64_t>word)
        if consumer_epoch is not None:
            write_number(&w, 5, <int64_t>consumer_epoch)
        open_view(&body, stored)
        try:
            return message_frame(w.start, w.size, front, f - front, &body, 0 if head_only else body.size)
        finally:
            close_view(&body)
    finally:
        mq_writer_drop(&w)


cdef int write_number(mq_writer *w, uint32_t field, int64_t value) except -1:
    cdef uint8_t *p = mq_room(w, NUMBER_ROOM)
    w.size = mq_put_number(p, field, value) - w.start
    return 0


cdef int write_data(mq_writer *w, uint32_t field, const uint8_t *data, int64_t size) except -1:
    cdef uint8_t *p = mq_room(w, NUMBER_ROOM + <Py_ssize_t>size)
    w.size = mq_put_data(p, field, data, size) - w.start
    return 0


cdef bytes message_frame(
    const uint8_t *command, int64_t size, const uint8_t *front, int64_t front_size, View *body, int64_t copied
):
    """With so much of the body behind it, none or all."""
    cdef int64_t behind = front_size + body.size
    if behind > 0x7FFF0000:
        raise ConfigError(f"an entry of {behind} bytes")
    cdef bytes frame = new_bytes(head_size(T_MESSAGE, size) + size + front_size + copied)
    cdef uint8_t *p = put_head(<uint8_t *>PyBytes_AS_STRING(frame), T_MESSAGE, size, behind)
    memcpy(p, command, <size_t>size)
    memcpy(p + size, front, <size_t>front_size)
    memcpy(p + size + front_size, body.at, <size_t>copied)
    return frame


def encode_receipt(
    int64_t producer_id, int64_t sequence_id, int64_t ledger, int64_t entry, /, int64_t highest_sequence_id=-1
):
    """SEND_RECEIPT"""
    cdef uint8_t id[2 * 15]
    cdef uint8_t room[6 * 15]
    cdef int64_t id_size = mq_put_number(mq_put_number(id, 1, ledger), 2, entry) - id
    cdef uint8_t *p = mq_put_number(mq_put_number(room, 1, producer_id), 2, sequence_id)
    p = mq_put_number(mq_put_data(p, 3, id, id_size), 4, highest_sequence_id)
    return command_frame(T_SEND_RECEIPT, room, p - room)


cdef int write_ack_id(mq_writer *w, mq_writer *id, tuple place) except -1:
    """One message id of an ACK, put together in `id`."""
    cdef Py_ssize_t count = len(place)
    if not 2 <= count <= 4:
        raise ConfigError(f"an id is (ledger, entry[, ack_set[, batch_size]]), not {place!r}")
    id.size = 0
    write_number(id, 1, <int64_t>place[0])
    write_number(id, 2, <int64_t>place[1])
    if count > 2 and place[2] is not None:
        for word in place[2]:
            write_number(id, 5, <int64_t>word)
    if count > 3 and place[3]:
        write_number(id, 6, <int32_t>place[3])
    return write_data(w, 3, id.start, id.size)


def encode_ack(
    int64_t consumer_id,
    ids,
    /,
    *,
    bint cumulative=False,
    validation_error=None,
    tuple txn=None,
    request_id=None,
):
    """ACK. An id is `(ledger, entry)`, `(ledger, entry, ack_set)` or `(ledger, entry, ack_set, batch_size)`."""
    cdef mq_writer w, id
    cdef uint8_t *p
    mq_writer_open(&w, 256)
    id.bytes = NULL
    try:
        mq_writer_open(&id, 256)
        write_number(&w, 1, consumer_id)
        write_number(&w, 2, cumulative)
        for place in ids:
            write_ack_id(&w, &id, place)
        if validation_error is not None:
            write_number(&w, 4, <int32_t>validation_error)
        p = mq_room(&w, 2 * NUMBER_ROOM)
        w.size = put_txn(p, 6, 7, txn) - w.start
        if request_id is not None:
            write_number(&w, 8, <int64_t>request_id)
        return command_frame(T_ACK, w.start, w.size)
    finally:
        mq_writer_drop(&w)
        mq_writer_drop(&id)


def encode_flow(int64_t consumer_id, uint32_t permits, /):
    """FLOW"""
    cdef uint8_t room[2 * 15]
    return command_frame(T_FLOW, room, mq_put_number(mq_put_number(room, 1, consumer_id), 2, permits) - room)


cdef int write_text(mq_writer *w, uint32_t field, object text) except -1:
    cdef Span span
    if text is None:
        return 0
    span = utf8(text)
    return write_data(w, field, span.at, span.size)


cdef int write_blob(mq_writer *w, uint32_t field, bytes data) except -1:
    if data is None:
        return 0
    return write_data(w, field, <const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))


cdef int write_int(mq_writer *w, uint32_t field, object value) except -1:
    return 0 if value is None else write_number(w, field, <int64_t>value)


cdef int write_pair(mq_writer *w, uint32_t field, Span key, Span value) except -1:
    """A KeyValue."""
    cdef int64_t size = 2 + mq_varint_size(<uint64_t>key.size) + key.size
    size += mq_varint_size(<uint64_t>value.size) + value.size
    cdef uint8_t *p = mq_room(w, <Py_ssize_t>size + NUMBER_ROOM)
    p = mq_put_varint(mq_put_varint(p, field << 3 | DATA), <uint64_t>size)
    w.size = mq_put_data(mq_put_data(p, 1, key.at, key.size), 2, value.at, value.size) - w.start
    return 0


cdef int write_properties(mq_writer *w, uint32_t field, object properties) except -1:
    if properties is None:
        return 0
    for key, value in properties.items():
        write_pair(w, field, utf8(key), utf8(value))
    return 0


def encode_metadata(
    str producer_name not None,
    int64_t sequence_id,
    int64_t published_at,
    /,
    *,
    properties=None,
    str replicated_from=None,
    str partition_key=None,
    replicate_to=(),
    int32_t compression=0,
    uncompressed_size=None,
    int32_t num_messages=0,
    int64_t event_time=0,
    encryption_keys=(),
    str encryption_algo=None,
    bytes encryption_param=None,
    bytes schema_version=None,
    key_b64=None,
    bytes ordering_key=None,
    deliver_at=None,
    tuple txn=None,
    highest_sequence_id=None,
    bint null_value=False,
    str uuid=None,
    num_chunks=None,
    total_chunk_size=None,
    chunk_id=None,
    bint null_key=False,
):
    """MessageMetadata. `num_messages` 0 leaves the field out: not batch-framed."""
    cdef mq_writer w
    cdef uint8_t *p
    mq_writer_open(&w, 128)
    try:
        write_text(&w, 1, producer_name)
        write_number(&w, 2, sequence_id)
        write_number(&w, 3, published_at)
        write_properties(&w, 4, properties)
        write_text(&w, 5, replicated_from)
        write_text(&w, 6, partition_key)
        for cluster in replicate_to:
            write_text(&w, 7, cluster)
        write_int(&w, 8, compression or None)
        write_int(&w, 9, uncompressed_size)
        write_int(&w, 11, num_messages or None)
        write_int(&w, 12, event_time or None)
        for key in encryption_keys:
            write_blob(&w, 13, key)
        write_text(&w, 14, encryption_algo)
        write_blob(&w, 15, encryption_param)
        write_blob(&w, 16, schema_version)
        write_int(&w, 17, key_b64)
        write_blob(&w, 18, ordering_key)
        write_int(&w, 19, deliver_at)
        p = mq_room(&w, 2 * NUMBER_ROOM)
        w.size = put_txn(p, 22, 23, txn) - w.start
        write_int(&w, 24, highest_sequence_id)
        write_int(&w, 25, null_value or None)
        write_text(&w, 26, uuid)
        write_int(&w, 27, num_chunks)
        write_int(&w, 28, total_chunk_size)
        write_int(&w, 29, chunk_id)
        write_int(&w, 30, null_key or None)
        return mq_writer_done(&w)
    finally:
        mq_writer_drop(&w)


PING_FRAME = command_frame(T_PING, NULL, 0)
PONG_FRAME = command_frame(T_PONG, NULL, 0)
