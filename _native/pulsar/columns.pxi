# Messages to Arrow's buffers, without making a message.

cdef enum:  # which columns are asked for
    C_BODY = 1
    C_KEY = 2
    C_ORDERING = 4
    C_PROPERTIES = 8
    C_INDEX = 16
    C_SEQUENCE = 32
    C_PUBLISHED = 64
    C_EVENT = 128

COLUMNS = (
    "body", "key", "ordering_key", "properties", "batch_index", "sequence_id", "published_at", "event_time"
)


cdef struct Column:  # under construction: text or bytes of one row after the other
    mq_writer data, offsets
    uint8_t *nulls  # one bit a row, set: there; NULL as long as all are
    Py_ssize_t rows, most


cdef int open_column(Column *column, Py_ssize_t rows, Py_ssize_t room) except -1:
    column.nulls = NULL
    column.rows = 0
    column.most = rows
    column.data.bytes = column.offsets.bytes = NULL
    mq_writer_open(&column.data, room)
    mq_writer_open(&column.offsets, 4 * rows + 4)
    return put_offset(column)


cdef void drop_column(Column *column) noexcept:
    mq_writer_drop(&column.data)
    mq_writer_drop(&column.offsets)
    free(column.nulls)
    column.nulls = NULL


cdef inline int put_offset(Column *column) except -1:
    cdef int32_t end
    if column.data.size > 0x7FFFFFFF:
        raise OverflowError("a column of more than 2 GiB")
    end = <int32_t>column.data.size
    return mq_write(&column.offsets, &end, 4)


cdef inline int end_row(Column *column, bint there) except -1:
    """The row is complete; its validity bit says whether it is there."""
    cdef Py_ssize_t row = column.rows, full
    if not there and column.nulls == NULL:
        column.nulls = <uint8_t *>calloc(<size_t>(column.most + 7) // 8 + 1, 1)
        if column.nulls == NULL:
            raise MemoryError()
        for full in range(row):
            column.nulls[full >> 3] |= <uint8_t>(1 << (full & 7))
    if there and column.nulls != NULL:
        column.nulls[row >> 3] |= <uint8_t>(1 << (row & 7))
    column.rows += 1
    return put_offset(column)


cdef int add_bytes(Column *column, Span value) except -1:
    if value.at != NULL and value.size > 0:
        mq_write(&column.data, value.at, <Py_ssize_t>value.size)
    return end_row(column, value.at != NULL)


cdef int add_text(Column *column, Span value) except -1:
    """As bytes, but always UTF-8: what is not is replaced, as where messages are made."""
    if value.at == NULL or mq_is_ascii(value.at, value.size):
        return add_bytes(column, value)
    cdef str text = mq_text(value.at, value.size)
    return add_bytes(column, utf8(text))


cdef tuple column_done(Column *column):
    cdef bytes validity = None
    if column.nulls != NULL:
        validity = PyBytes_FromStringAndSize(<char *>column.nulls, (column.rows + 7) // 8)
    return validity, mq_writer_done(&column.offsets), mq_writer_done(&column.data)


cdef struct Row:
    Span metadata
    Tags tags


cdef inline Row row_of(MessageBatch batch, const Item *item) noexcept:
    cdef Row row
    if item.flags & F_WHOLE:
        row.metadata = batch.entry.metadata_
        row.tags = OF_ENTRY
        return row
    row.metadata.at = batch.base + item.metadata_at
    row.metadata.size = item.metadata_size
    row.tags = OF_SINGLE
    return row


cdef Py_ssize_t rows_of(list batches) except -1:
    cdef Py_ssize_t rows = 0
    cdef MessageBatch batch
    for batch in batches:
        rows += batch.count
    return rows


cdef tuple body_column(list batches):
    """All sizes are known: allocated once, and copied without looking for room."""
    cdef Py_ssize_t place, rows = rows_of(batches), row = 0, room = 0, nulls = 0
    cdef const Item *item
    cdef MessageBatch batch
    for batch in batches:
        for place in range(batch.count):
            if batch.items[place].flags & F_NULL_VALUE:
                nulls += 1
            else:
                room += batch.items[place].body_size
    if room > 0x7FFFFFFF:
        raise OverflowError("a column of more than 2 GiB")
    cdef bytes data = new_bytes(room), offsets = new_bytes(4 * rows + 4)
    cdef uint8_t *into = <uint8_t *>PyBytes_AS_STRING(data)
    cdef int32_t *ends = <int32_t *>PyBytes_AS_STRING(offsets)
    cdef int32_t end = 0
    ends[0] = 0
    for batch in batches:
        for place in range(batch.count):
            item = &batch.items[place]
            if not item.flags & F_NULL_VALUE:
                memcpy(into + end, batch.base + item.body_at, item.body_size)
                end += <int32_t>item.body_size
            row += 1
            ends[row] = end
    return validity_of(batches, rows) if nulls else None, offsets, data


cdef bytes validity_of(list batches, Py_ssize_t rows):
    """The bits of the bodies that are there."""
    cdef Py_ssize_t place, row = 0, size = (rows + 7) // 8
    cdef bytes bits = new_bytes(size)
    cdef uint8_t *into = <uint8_t *>PyBytes_AS_STRING(bits)
    cdef MessageBatch batch
    memset(into, 0, <size_t>size)
    for batch in batches:
        for place in range(batch.count):
            if not batch.items[place].flags & F_NULL_VALUE:
                into[row >> 3] |= <uint8_t>(1 << (row & 7))
            row += 1
    return bits


cdef bint has_texts(list batches) except -1:
    """Some message has a key or properties."""
    cdef Py_ssize_t place
    cdef MessageBatch batch
    for batch in batches:
        for place in range(batch.count):
            if batch.items[place].flags & (F_WHOLE | F_MORE):
                return True
    return False


cdef tuple no_texts(Py_ssize_t rows):
    """A column of nulls."""
    return bytes((rows + 7) // 8), bytes(4 * rows + 4), b""


cdef tuple key_column(list batches, bint ordering):
    """key as text, or ordering_key as bytes."""
    cdef Column column
    cdef Py_ssize_t place, rows = rows_of(batches)
    cdef Span none
    cdef Row row
    cdef const Item *item
    cdef MessageBatch batch
    none.at = NULL
    none.size = 0
    if rows and not has_texts(batches):
        return no_texts(rows)
    try:
        open_column(&column, rows, 16 * rows)
        for batch in batches:
            for place in range(batch.count):
                item = &batch.items[place]
                if not item.flags & (F_WHOLE | F_MORE) or (not ordering and item.flags & F_NULL_KEY):
                    add_bytes(&column, none)
                    continue
                row = row_of(batch, item)
                if ordering:
                    add_bytes(&column, find(row.metadata, row.tags.ordering_key))
                else:
                    add_text(&column, find(row.metadata, row.tags.key))
        return column_done(&column)
    finally:
        drop_column(&column)


cdef bint pairs_are_good(Row row) noexcept nogil:
    cdef mq_cursor c = mq_open(row.metadata.at, row.metadata.at + row.metadata.size)
    cdef mq_field f
    cdef Span pair, key, value
    while mq_next_field(&c, &f):
        if f.tag == row.tags.properties:
            hold(&pair, &f)
            if not read_pair(pair, &key, &value):
                return False
    return True


cdef int32_t add_pairs(Row row, Column *keys, Column *values) except -1:
    """Append the properties of one row; how many there are. None if any of them is malformed."""
    cdef mq_cursor c = mq_open(row.metadata.at, row.metadata.at + row.metadata.size)
    cdef mq_field f
    cdef Span pair, key, value
    cdef int32_t count = 0
    if not pairs_are_good(row):
        return 0
    while mq_next_field(&c, &f):
        if f.tag == row.tags.properties:
            hold(&pair, &f)
            read_pair(pair, &key, &value)
            add_text(keys, key)
            add_text(values, value)
            count += 1
    return count


cdef tuple properties_column(list batches):
    cdef Column keys, values
    cdef mq_writer offsets
    cdef Py_ssize_t place, rows = rows_of(batches)
    cdef int32_t end = 0
    cdef const Item *item
    cdef MessageBatch batch
    offsets.bytes = keys.data.bytes = keys.offsets.bytes = values.data.bytes = values.offsets.bytes = NULL
    keys.nulls = values.nulls = NULL
    try:
        mq_writer_open(&offsets, 4 * rows + 4)
        open_column(&keys, 4 * rows, 32 * rows)
        open_column(&values, 4 * rows, 32 * rows)
        mq_write(&offsets, &end, 4)
        for batch in batches:
            for place in range(batch.count):
                item = &batch.items[place]
                if item.flags & (F_WHOLE | F_MORE):
                    end += add_pairs(row_of(batch, item), &keys, &values)
                mq_write(&offsets, &end, 4)
        key_parts = column_done(&keys)
        value_parts = column_done(&values)
        return None, mq_writer_done(&offsets), key_parts[1], key_parts[2], value_parts[1], value_parts[2]
    finally:
        mq_writer_drop(&offsets)
        drop_column(&keys)
        drop_column(&values)


cdef tuple number_column(list batches, int which):
    """int64, but batch_index is int32."""
    cdef bytes data = new_bytes(rows_of(batches) * (4 if which == C_INDEX else 8))
    cdef int64_t *longs = <int64_t *>PyBytes_AS_STRING(data)
    cdef int32_t *ints = <int32_t *>longs
    cdef Py_ssize_t place, row = 0
    cdef MessageBatch batch
    for batch in batches:
        for place in range(batch.count):
            if which == C_INDEX:
                ints[row] = batch.items[place].index
            elif which == C_SEQUENCE:
                longs[row] = batch.items[place].sequence_id
            elif which == C_PUBLISHED:
                longs[row] = batch.entry.m.published_at
            else:
                longs[row] = batch.items[place].event_time
            row += 1
    return None, data


cdef dict make_columns(list batches, object names):
    """The columns asked for; ConfigError for a name that there is none of."""
    cdef dict found = {}
    cdef object asked = COLUMNS if names is None else names
    for name in asked:
        if name not in COLUMNS:
            raise ConfigError(f"no column is called {name!r}; there are {', '.join(COLUMNS)}")
    for place, name in enumerate(COLUMNS):
        if name in asked:
            found[name] = make_column(batches, 1 << <int>place)
    return found


cdef tuple make_column(list batches, int which):
    if which == C_BODY:
        return body_column(batches)
    if which == C_KEY or which == C_ORDERING:
        return key_column(batches, which == C_ORDERING)
    if which == C_PROPERTIES:
        return properties_column(batches)
    return number_column(batches, which)
