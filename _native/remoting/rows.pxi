# Rows of Arrow buffers into the body of a batch send.

cdef enum:
    AROUND = 6 + 66 + 11 + 6  # bytes of KEYS, UNIQ_KEY, WAIT and TAGS beside the key's and the tag's value


@cython.final
@cython.internal
cdef class Source:
    """One column of variable size, its buffers held and their sizes known."""
    cdef list held
    cdef const uint8_t *bits  # validity, NULL if every row has a value
    cdef const uint8_t *ends  # 32-bit numbers, aligned or not
    cdef const uint8_t *data
    cdef Py_ssize_t bits_size, entries, data_size

    cdef int open(self, object validity, object ends, object data) except -1:
        cdef Run run
        self.held = []
        if validity is not None:
            self.held.append(hold(validity, &run))
            self.bits, self.bits_size = run.at, run.size
        self.held.append(hold(ends, &run))
        self.ends, self.entries = run.at, run.size // 4 - 1
        if data is not None:
            self.held.append(hold(data, &run))
            self.data, self.data_size = run.at, run.size
        return 0

    cdef int check(self, Py_ssize_t stop, str name) except -1:
        if self.entries < stop or (self.bits != NULL and self.bits_size * 8 < stop):
            raise ConfigError(f"column {name!r} is too short for {stop} rows")
        return 0

    cdef inline int32_t end(self, Py_ssize_t row) noexcept:
        cdef int32_t number
        memcpy(&number, self.ends + 4 * row, 4)
        return number

    cdef Py_ssize_t span(self, Py_ssize_t first, Py_ssize_t last) noexcept:
        """How many bytes lie between these offsets; 0 if they are wrong, which `value` tells."""
        cdef int32_t start, stop
        if not 0 <= first <= last <= self.entries:
            return 0
        start, stop = self.end(first), self.end(last)
        return stop - start if 0 <= start <= stop <= self.data_size else 0

    cdef inline int value(self, Py_ssize_t row, Run *out) except -1:
        """The value of a row below `entries`: size -1 for a null."""
        cdef int32_t start = self.end(row), stop = self.end(row + 1)
        if start < 0 or stop < start or stop > self.data_size:
            raise ConfigError("offsets of a column do not fit its data")
        out.at = self.data + start
        out.size = stop - start
        if self.bits != NULL and not self.bits[row >> 3] >> (row & 7) & 1:
            out.size = -1
        return 0


cdef Source source(object columns, str name, Py_ssize_t stop):
    """A column by name, None if it is not there."""
    cdef Source out
    if name not in columns:
        return None
    out = Source.__new__(Source)
    validity, ends, data = columns[name]
    out.open(validity, ends, data)
    out.check(stop, name)
    return out


@cython.final
@cython.internal
cdef class Maps:
    """The properties column: which entries a row has, their names and values."""
    cdef Source rows, names, values

    cdef Py_ssize_t room(self, Py_ssize_t start, Py_ssize_t stop) noexcept:
        """How many bytes the entries of these rows take, with a separator behind each name and value."""
        cdef int32_t first = self.rows.end(start), last = self.rows.end(stop)
        if not 0 <= first <= last <= self.names.entries:
            return 0
        return self.names.span(first, last) + self.values.span(first, last) + 2 * (last - first)

    cdef int write(self, mq_writer *w, Py_ssize_t row) except -1:
        cdef int32_t entry, start = self.rows.end(row), stop = self.rows.end(row + 1)
        cdef Run name, value
        if start < 0 or stop < start or stop > self.names.entries or stop > self.values.entries:
            raise ConfigError("offsets of column 'properties' do not fit its entries")
        for entry in range(start, stop):
            self.names.value(entry, &name)
            self.values.value(entry, &value)
            if name.size <= 0 or value.size <= 0:
                raise ConfigError("a property name or value is empty")
            check_value(name)
            check_value(value)
            write_entry(w, name, value)
        return 0


cdef Maps maps(object columns, Py_ssize_t stop):
    cdef Maps out
    if "properties" not in columns:
        return None
    out = Maps.__new__(Maps)
    _, rows, name_ends, names, value_ends, values = columns["properties"]
    out.rows, out.names, out.values = Source.__new__(Source), Source.__new__(Source), Source.__new__(Source)
    out.rows.open(None, rows, None)
    out.names.open(None, name_ends, names)
    out.values.open(None, value_ends, values)
    out.rows.check(stop, "properties")
    return out


cdef inline int check_value(Run value) except -1:
    if mq_separates(value.at, value.size):
        raise ConfigError("a property name or value holds the separator 0x01 or 0x02")
    return 0


cdef inline int optional(Source column, Py_ssize_t row, Run *out) except -1:
    """The value of a property that is left out where it is null, empty or has no column: then of size 0."""
    out.size = 0
    if column is not None:
        column.value(row, out)
        if out.size < 0:
            out.size = 0
        check_value(out[0])
    return 0


@cython.final
@cython.internal
cdef class Rows:
    """What `encode_columns` was given."""
    cdef Source bodies, keys, tags
    cdef Maps entries
    cdef UniqueKeys unique
    cdef const uint8_t *flags
    cdef object held_flags
    cdef int64_t now_ms
    cdef bint wait

    cdef int take_flags(self, object columns, Py_ssize_t stop) except -1:
        cdef Run run
        if "flag" in columns:
            _, flags = columns["flag"]
            self.held_flags = hold(flags, &run)
            if run.size < 4 * stop:
                raise ConfigError(f"column 'flag' is too short for {stop} rows")
            self.flags = run.at
        return 0

    cdef Py_ssize_t room(self, Py_ssize_t start, Py_ssize_t stop):
        """About how many bytes the rows take: what their columns hold, and what stands around it."""
        cdef Py_ssize_t size = (ELEMENT + AROUND) * (stop - start)
        if self.bodies is not None:
            size += self.bodies.span(start, stop)
        if self.keys is not None:
            size += self.keys.span(start, stop)
        if self.tags is not None:
            size += self.tags.span(start, stop)
        return size if self.entries is None else size + self.entries.room(start, stop)

    cdef int write(self, mq_writer *w, Py_ssize_t row) except -1:
        """One row: room for all but the map's entries is taken at once, the sizes are put in when they are known."""
        cdef Run body, key, tag
        cdef Py_ssize_t start = w.size, text
        cdef int32_t flag = 0
        cdef uint8_t *at
        self.bodies.value(row, &body)
        if body.size < 0:
            raise ConfigError("a body is null or there is no column of them")
        optional(self.keys, row, &key)
        optional(self.tags, row, &tag)
        if self.flags != NULL:
            memcpy(&flag, self.flags + 4 * row, 4)
        at = mq_room(w, ELEMENT + body.size + key.size + tag.size + AROUND)
        memset(at + 4, 0, 8)
        mq_put32(at + 12, flag)
        mq_put32(at + 16, <int32_t>body.size)
        memcpy(at + 20, body.at, body.size)
        w.size = self.put_text(at + ELEMENT + body.size, &key, &tag) - w.start
        if self.entries is not None:
            self.entries.write(w, row)
        text = w.size - start - ELEMENT - body.size
        check_text(text)
        if w.size - start > 0x7FFFFFFF:
            raise ConfigError(f"body of {body.size} bytes does not fit")
        at = w.start + start
        mq_put32(at, <int32_t>(w.size - start))
        mq_put16(at + 20 + body.size, <int16_t>text)
        return 0

    cdef uint8_t *put_text(self, uint8_t *at, Run *key, Run *tag) noexcept:
        """The properties that are no map entries; gives where they end, at most AROUND bytes behind their values."""
        if key.size > 0:
            at = put_entry(at, b"KEYS", 4, key[0])
        if self.unique is not None:
            memcpy(at, b"UNIQ_KEY\x01", 9)
            at += 9 + self.unique.put(self.now_ms, at + 9)
            at[0] = 2
            at += 1
        memcpy(at, b"WAIT\x01true\x02" if self.wait else b"WAIT\x01false\x02", 11)
        at += 10 if self.wait else 11
        return put_entry(at, b"TAGS", 4, tag[0]) if tag.size > 0 else at


def encode_columns(columns not None, Py_ssize_t start, Py_ssize_t stop, *, UniqueKeys unique=None, int64_t now_ms=0,
                   bint wait=True):
    """Rows start to stop of Arrow buffers as the body of a batch send."""
    cdef Rows rows = Rows.__new__(Rows)
    cdef mq_writer w
    cdef Py_ssize_t row
    if not 0 <= start <= stop:
        raise ConfigError(f"rows {start} to {stop} are no range")
    for name in columns:
        if name not in ("body", "tag", "keys", "properties", "flag"):
            raise ConfigError(f"column {name!r} cannot be sent; body, tag, keys, properties and flag can")
    rows.bodies = source(columns, "body", stop)
    rows.keys = source(columns, "keys", stop)
    rows.tags = source(columns, "tag", stop)
    rows.entries = maps(columns, stop)
    rows.take_flags(columns, stop)
    rows.unique, rows.now_ms, rows.wait = unique, now_ms, wait
    if rows.bodies is None and start < stop:
        raise ConfigError("a body is null or there is no column of them")
    mq_writer_open(&w, rows.room(start, stop))
    try:
        for row in range(start, stop):
            rows.write(&w, row)
        return mq_writer_done(&w)
    finally:
        mq_writer_drop(&w)
