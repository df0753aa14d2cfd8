# The payload of a batch from rows of Arrow buffers.

cdef enum:
    ROW_AROUND = 128  # bytes of a row beside its body, in most cases


cdef class _Source:
    """A column given by Arrow buffers, its views open as long as it lives."""

    cdef str name
    cdef View validity, offsets, data
    cdef bint has_validity, has_offsets, has_data

    def __dealloc__(self):
        if self.has_validity:
            close_view(&self.validity)
        if self.has_offsets:
            close_view(&self.offsets)
        if self.has_data:
            close_view(&self.data)

    cdef bint valid(self, int64_t row) except -1:
        if not self.has_validity:
            return True
        if row >> 3 >= self.validity.size:
            raise ConfigError(f"column {self.name}: no validity bit for row {row}")
        return self.validity.at[row >> 3] >> (row & 7) & 1

    cdef inline int span(self, int64_t row, int64_t *first, int64_t *last) except -1:
        """Two offsets that do not fall."""
        cdef int32_t ends[2]
        if row < 0 or 4 * row + 8 > self.offsets.size:
            raise ConfigError(f"column {self.name}: no offsets for row {row}")
        memcpy(ends, self.offsets.at + 4 * row, 8)
        if ends[0] < 0 or ends[1] < ends[0]:
            raise ConfigError(f"column {self.name}: the offsets of row {row} fall")
        first[0] = ends[0]
        last[0] = ends[1]
        return 0

    cdef inline int get(self, int64_t row, Span *into) except -1:
        """The bytes of a row; absent if it is null."""
        cdef int64_t first, last
        into.at = NULL
        into.size = 0
        if self.has_validity and not self.valid(row):
            return 0
        self.span(row, &first, &last)
        if last > self.data.size:
            raise ConfigError(f"column {self.name}: row {row} ends at {last} of {self.data.size} bytes")
        into.at = self.data.at + first
        into.size = last - first
        return 0

    cdef int64_t number(self, int64_t row) except? -1:
        cdef int64_t value
        if row < 0 or 8 * row + 8 > self.data.size:
            raise ConfigError(f"column {self.name}: no row {row}")
        memcpy(&value, self.data.at + 8 * row, 8)
        return value


cdef _Source source(str name, object validity, object offsets, object data):
    cdef _Source made = _Source.__new__(_Source)
    made.name = name
    if validity is not None:
        open_view(&made.validity, validity)
        made.has_validity = True
    open_view(&made.offsets, b"" if offsets is None else offsets)
    made.has_offsets = True
    open_view(&made.data, b"" if data is None else data)
    made.has_data = True
    if made.data.at == NULL:  # an empty buffer may have no address, and none means null here
        made.data.at = <const uint8_t *>PyBytes_AS_STRING(b"")
    return made


cdef _Source blobs(str name, object column):
    validity, offsets, data = column
    return source(name, validity, offsets, data)


cdef class _Rows:
    """The columns of `encode_columns`."""

    cdef _Source body, key, ordering_key, event_time, pairs, names, values

    def __cinit__(self, columns):
        for name in columns:
            if name not in ("body", "key", "ordering_key", "event_time", "properties"):
                raise ConfigError(f"column {name!r} is none of a batch")
        if "body" not in columns:
            raise ConfigError("the column body is needed")
        self.body = blobs("body", columns["body"])
        if "key" in columns:
            self.key = blobs("key", columns["key"])
        if "ordering_key" in columns:
            self.ordering_key = blobs("ordering_key", columns["ordering_key"])
        if "event_time" in columns:
            self.event_time = source("event_time", None, None, columns["event_time"][1])
        if "properties" in columns:
            validity, offsets, name_offsets, names, value_offsets, values = columns["properties"]
            self.pairs = source("properties", validity, offsets, None)
            self.names = source("properties", None, name_offsets, names)
            self.values = source("properties", None, value_offsets, values)

    cdef Py_ssize_t room(self, int64_t start, int64_t stop, Py_ssize_t most) noexcept:
        """About how many bytes these rows take: their bodies, and a little more for each; no more than `most`."""
        cdef int32_t first, last
        cdef int64_t size = 0
        if stop > start and 4 * stop + 4 <= self.body.offsets.size:
            memcpy(&first, self.body.offsets.at + 4 * start, 4)
            memcpy(&last, self.body.offsets.at + 4 * stop, 4)
            size = last - <int64_t>first + ROW_AROUND * (stop - start)
        return 1024 + (most if size > most else <Py_ssize_t>size if size > 0 else 0)

    cdef int write(self, mq_writer *w, int64_t row, int64_t sequence_id) except -1:
        cdef Single s
        cdef Py_ssize_t begin = w.size
        clear_single(&s)
        s.sequence_id = sequence_id
        self.body.get(row, &s.body)
        s.null_value = s.body.at == NULL
        if self.key is not None:
            self.key.get(row, &s.key)
        if self.ordering_key is not None:
            self.ordering_key.get(row, &s.ordering_key)
        if self.event_time is not None:
            s.event_time = self.event_time.number(row)
        mq_room(w, 4)
        if self.pairs is not None:
            self.write_pairs(w, row)
        return put_single(w, begin, &s)

    cdef int write_pairs(self, mq_writer *w, int64_t row) except -1:
        cdef int64_t place, last
        cdef Span name, value
        if not self.pairs.valid(row):
            return 0
        self.pairs.span(row, &place, &last)
        while place < last:
            self.names.get(place, &name)
            self.values.get(place, &value)
            write_pair(w, 1, name, value)
            place += 1
        return 0


def encode_columns(
    columns, int64_t start, int64_t stop, /, *, int64_t sequence_id=-1, Py_ssize_t max_bytes=131072
):
    """`(batch payload, next row)` of Arrow buffers, layout and names as in `MessageBatch.columns`."""
    if start < 0:
        raise ConfigError(f"rows begin at 0, not at {start}")
    cdef _Rows rows = _Rows(columns)
    cdef mq_writer w
    cdef int64_t row = start
    cdef Py_ssize_t before
    mq_writer_open(&w, rows.room(start, stop, max_bytes))
    try:
        while row < stop and (w.size < max_bytes or row == start):
            before = w.size
            rows.write(&w, row, sequence_id if sequence_id == -1 else sequence_id + row - start)
            if before and w.size > max_bytes:
                w.size = before
                break
            row += 1
        return mq_writer_done(&w), row
    finally:
        mq_writer_drop(&w)
