# Messages to bytes: the elements of a batch send.

cdef enum:
    ELEMENT = 22  # bytes of an element without body and properties
    MOST_TOPIC_V1 = 127


cdef int write_element(mq_writer *w, Run body, Run text, int32_t flag) except -1:
    """One element of a batch body; its magic and crc are 0, the broker makes its own."""
    cdef Py_ssize_t size = ELEMENT + body.size + text.size
    cdef uint8_t *at
    check_text(text.size)
    if size > 0x7FFFFFFF:
        raise ConfigError(f"body of {body.size} bytes does not fit")
    at = mq_room(w, size)
    mq_put32(at, <int32_t>size)
    memset(at + 4, 0, 8)
    mq_put32(at + 12, flag)
    mq_put32(at + 16, <int32_t>body.size)
    memcpy(at + 20, body.at, body.size)
    at += 20 + body.size
    mq_put16(at, <int16_t>text.size)
    memcpy(at + 2, text.at, text.size)
    return 0


@cython.final
cdef class BatchBuilder:
    """Gathers messages into the body of a batch send."""
    cdef mq_writer out
    cdef readonly Py_ssize_t count

    def __dealloc__(self):
        mq_writer_drop(&self.out)

    @property
    def size(self):
        return self.out.size

    def add(self, body not None, properties not None=b"", flag=0):
        """Append one; gives the size so far."""
        cdef Run content, text
        cdef object held = hold(body, &content), held_text = hold(properties, &text)
        if self.out.bytes == NULL:
            mq_writer_open(&self.out, 4096)
        write_element(&self.out, content, text, fit32(flag, "flag"))
        self.count += 1
        return self.out.size

    def add_many(self, bodies not None, properties not None, Py_ssize_t start=0, Py_ssize_t max_size=MOST_FRAME,
                 Py_ssize_t max_count=PY_SSIZE_T_MAX, flags=None):
        """Append messages from `start` on while the batch stays within its limits; gives the first not added."""
        cdef Run content, text
        cdef object held, held_text
        cdef Py_ssize_t place = start, stop = len(bodies)
        if start < 0 or len(properties) != stop or (flags is not None and len(flags) != stop):
            raise ConfigError("as many properties and flags as bodies are wanted, and a place among them")
        if self.out.bytes == NULL:
            mq_writer_open(&self.out, 4096)
        while place < stop and self.count < max_count:
            held, held_text = hold(bodies[place], &content), hold(properties[place], &text)
            if self.count > 0 and self.out.size + ELEMENT + content.size + text.size > max_size:
                break
            write_element(&self.out, content, text, 0 if flags is None else fit32(flags[place], "flag"))
            self.count += 1
            place += 1
        return place

    def seal(self):
        """The body; the builder is empty again."""
        self.count = 0
        return b"" if self.out.bytes == NULL else mq_writer_done(&self.out)
