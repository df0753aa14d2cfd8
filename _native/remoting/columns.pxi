# Columns of a batch as Arrow buffers, made from the records without making a message.

COLUMNS = (
    "body", "topic", "tag", "keys", "message_id", "properties",
    "offset", "physical_offset", "born_at", "stored_at", "queue_id", "flag", "sys_flag", "attempts",
)

ctypedef int64_t (*Number)(const Record *r) noexcept nogil


cdef int64_t physical_offset_number(const Record *r) noexcept nogil:
    return mq_be64(r.head + AT_PHYSICAL)


cdef int64_t born_at_number(const Record *r) noexcept nogil:
    return mq_be64(r.head + AT_BORN)


cdef int64_t stored_at_number(const Record *r) noexcept nogil:
    return mq_be64(store_of(r))


cdef int64_t queue_id_number(const Record *r) noexcept nogil:
    return mq_be32(r.head + AT_QUEUE_ID)


cdef int64_t flag_number(const Record *r) noexcept nogil:
    return record_flag(r)


cdef int64_t sys_flag_number(const Record *r) noexcept nogil:
    return sys_flag_of(r)


cdef int64_t attempts_number(const Record *r) noexcept nogil:
    return record_attempts(r)


cdef dict make_columns(MessageBatch first, object names, object more):
    cdef list batches = [first, *more]
    for batch in batches:
        if type(batch) is not MessageBatch:
            raise TypeError(f"more columns come of MessageBatches, not of {type(batch).__name__}")
    return {name: column(batches, name) for name in (COLUMNS if names is None else names)}


cdef tuple column(list batches, str name):
    if name == "body":
        return body_column(batches)
    if name == "properties":
        return properties_column(batches)
    if name == "tag":
        return property_column(batches, b"TAGS", 4)
    if name == "keys":
        return property_column(batches, b"KEYS", 4)
    if name == "topic" or name == "message_id":
        return made_column(batches, name == "topic")
    if name == "offset":
        return wide_column(batches, record_offset, True)
    if name == "physical_offset":
        return wide_column(batches, physical_offset_number, False)
    if name == "born_at":
        return wide_column(batches, born_at_number, False)
    if name == "stored_at":
        return wide_column(batches, stored_at_number, False)
    if name == "queue_id":
        return narrow_column(batches, queue_id_number)
    if name == "flag":
        return narrow_column(batches, flag_number)
    if name == "sys_flag":
        return narrow_column(batches, sys_flag_number)
    if name == "attempts":
        return narrow_column(batches, attempts_number)
    raise ConfigError(f"column {name!r} is not known; there are {', '.join(COLUMNS)}")


cdef Py_ssize_t rows_of(list batches) except -1:
    cdef Py_ssize_t rows = 0
    cdef MessageBatch batch
    for batch in batches:
        rows += batch.records.count
    return rows


cdef tuple wide_column(list batches, Number number, bint moved):
    """`moved`: by the delta of each batch."""
    cdef bytes data = PyBytes_FromStringAndSize(NULL, 8 * rows_of(batches))
    cdef int64_t *out = <int64_t *>PyBytes_AS_STRING(data)
    cdef int64_t delta
    cdef Py_ssize_t row
    cdef MessageBatch batch
    for batch in batches:
        delta = batch.delta if moved else 0
        for row in range(batch.records.count):
            out[row] = number(&batch.records.first[row]) + delta
        out += batch.records.count
    return None, data


cdef tuple narrow_column(list batches, Number number):
    cdef bytes data = PyBytes_FromStringAndSize(NULL, 4 * rows_of(batches))
    cdef int32_t *out = <int32_t *>PyBytes_AS_STRING(data)
    cdef Py_ssize_t row
    cdef MessageBatch batch
    for batch in batches:
        for row in range(batch.records.count):
            out[row] = <int32_t>number(&batch.records.first[row])
        out += batch.records.count
    return None, data


@cython.final
@cython.internal
@cython.no_gc
cdef class Texts:
    """A growing column of variable size: where each value ends, and the values."""
    cdef mq_writer ends
    cdef mq_writer data

    def __cinit__(self, Py_ssize_t rows, Py_ssize_t room):
        mq_writer_open(&self.ends, 4 * (rows + 1))
        mq_writer_open(&self.data, room)
        self.end_value()

    def __dealloc__(self):
        mq_writer_drop(&self.ends)
        mq_writer_drop(&self.data)

    cdef inline int end_value(self) except -1:
        cdef int32_t end = <int32_t>self.data.size
        return mq_write(&self.ends, &end, 4)

    cdef inline int add(self, const uint8_t *at, Py_ssize_t size) except -1:
        mq_write(&self.data, at, size)
        return self.end_value()

    cdef int add_text(self, const uint8_t *at, Py_ssize_t size) except -1:
        """As `add`; what is no UTF-8 is replaced."""
        cdef Run run
        if mq_is_ascii(at, size):
            return self.add(at, size)
        text = mq_text(at, size)
        run = utf8_of(text)
        return self.add(run.at, run.size)

    cdef tuple done(self):
        if self.data.size > 0x7FFFFFFF:
            raise ConfigError(f"a column of {self.data.size} bytes is beyond 32-bit offsets: take a smaller slice")
        return mq_writer_done(&self.ends), mq_writer_done(&self.data)


cdef Py_ssize_t text_bytes(list batches) except -1:
    """Bytes of all property texts."""
    cdef Py_ssize_t row, size = 0
    cdef MessageBatch batch
    for batch in batches:
        for row in range(batch.records.count):
            size += batch.records.first[row].text_size
    return size


cdef tuple body_column(list batches):
    cdef Py_ssize_t row, size = 0
    cdef MessageBatch batch
    for batch in batches:
        size += <Py_ssize_t>batch.size
    cdef Texts out = Texts(rows_of(batches), size)
    cdef const Record *r
    for batch in batches:
        for row in range(batch.records.count):
            r = &batch.records.first[row]
            out.add(r.body, r.body_size)
    return (None, *out.done())


cdef tuple property_column(list batches, const char *name, int size):
    """One property; null where it is absent."""
    cdef Py_ssize_t rows = rows_of(batches), place, row = 0, present = 0
    cdef Texts out = Texts(rows, 16 * rows)
    cdef bytes validity = PyBytes_FromStringAndSize(NULL, (rows + 7) // 8)
    cdef uint8_t *bits = <uint8_t *>PyBytes_AS_STRING(validity)
    cdef mq_entry entry
    cdef MessageBatch batch
    memset(bits, 0, (rows + 7) // 8)
    for batch in batches:
        for place in range(batch.records.count):
            if find(&batch.records.first[place], name, size, &entry):
                out.add_text(entry.value, entry.value_size)
                bits[row >> 3] |= 1 << (row & 7)
                present += 1
            else:
                out.end_value()
            row += 1
    return (None if present == rows else validity, *out.done())


cdef tuple made_column(list batches, bint topic):
    """The topic or the message id: text that is not always just a part of the record."""
    cdef Py_ssize_t rows = rows_of(batches), row
    cdef Texts out = Texts(rows, 32 * rows)
    cdef const Record *r
    cdef mq_entry entry
    cdef str text
    cdef MessageBatch batch
    for batch in batches:
        for row in range(batch.records.count):
            r = &batch.records.first[row]
            if not topic and find(r, b"UNIQ_KEY", 8, &entry):
                out.add_text(entry.value, entry.value_size)
                continue
            text = record_topic(r, batch.retry_topic) if topic else record_offset_id(r)
            out.add(utf8_of(text).at, utf8_of(text).size)
    return (None, *out.done())


cdef tuple properties_column(list batches):
    """A map: where each row's entries end, their names, their values."""
    cdef Py_ssize_t rows = rows_of(batches), row, room = text_bytes(batches)
    cdef Texts names = Texts(8 * rows, room), values = Texts(8 * rows, room)
    cdef mq_writer ends
    cdef int32_t end = 0
    cdef MessageBatch batch
    mq_writer_open(&ends, 4 * (rows + 1))
    try:
        mq_write(&ends, &end, 4)
        for batch in batches:
            for row in range(batch.records.count):
                end += add_entries(&batch.records.first[row], names, values)
                mq_write(&ends, &end, 4)
        return (None, mq_writer_done(&ends), *names.done(), *values.done())
    finally:
        mq_writer_drop(&ends)


cdef int add_entries(const Record *r, Texts names, Texts values) except -1:
    """Add one row; gives its number of entries. A name must come once, so a text that may repeat one goes by a dict."""
    cdef mq_entries entries = mq_open_entries(r.text, r.text_size, scratch)
    cdef mq_entry entry
    cdef Py_ssize_t names_before = names.data.size, values_before = values.data.size, ends_before = names.ends.size
    cdef uint64_t seen = 0, mark
    cdef int count = 0
    cdef bint plain = mq_is_ascii(r.text, r.text_size)
    while mq_next_entry(&entries, &entry):
        mark = <uint64_t>1 << ((entry.name[0] * 7 + entry.name[entry.name_size - 1] * 3 + entry.name_size) & 63)
        if not plain or seen & mark:
            names.data.size, values.data.size = names_before, values_before
            names.ends.size = values.ends.size = ends_before
            return add_dict(text_to_dict(r.text, r.text_size), names, values)
        seen |= mark
        names.add(entry.name, entry.name_size)
        values.add(entry.value, entry.value_size)
        count += 1
    return count


cdef int add_dict(dict properties, Texts names, Texts values) except -1:
    cdef Run run
    for name, value in properties.items():
        run = utf8_of(name)
        names.add(run.at, run.size)
        run = utf8_of(value)
        values.add(run.at, run.size)
    return <int>len(properties)
