# Messages to bytes: elements of a batch send, the stored form, and rows of Arrow columns.

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


# ------------------------------------------------------------------------------------------------------ stored form

cdef struct Host:
    uint8_t[20] raw  # address and port
    Py_ssize_t size


cdef int parse_ip(object text, uint8_t *out) except -1:
    """Gives the size of the address: 4 or 16 bytes."""
    cdef Run run = utf8_of(text)
    cdef bint wide = memchr(run.at, c':', run.size) != NULL
    if memchr(run.at, 0, run.size) != NULL or inet_pton(AF_INET6 if wide else AF_INET, <const char *>run.at, out) != 1:
        raise ConfigError(f"{text!r} is no IP address")
    return 16 if wide else 4


cdef Host host_of(object host) except *:
    cdef Host out
    ip, port = host
    out.size = parse_ip(ip, out.raw)
    mq_put32(out.raw + out.size, fit32(port, "port"))
    out.size += 4
    return out


def encode_message(body not None, str topic not None, *, properties not None=b"", queue_id=0, flag=0, offset=0,
                   physical_offset=0, sys_flag=0, born_at=0, born_host not None=("127.0.0.1", 0), stored_at=0,
                   store_host not None=("127.0.0.1", 0), attempts=0, prepared_transaction_offset=0):
    """A message as a broker stores and answers it."""
    cdef Run content, text, name = utf8_of(topic)
    cdef object held = hold(body, &content), held_text = hold(properties, &text)
    cdef Host born = host_of(born_host), store = host_of(store_host)
    cdef int32_t bits = fit32(sys_flag, "sys_flag") & ~(BORN_IPV6 | STORE_IPV6)
    cdef bint wide = name.size > MOST_TOPIC_V1
    cdef Py_ssize_t size = SMALLEST - 16 + born.size + store.size + content.size + wide + name.size + text.size
    cdef bytes out
    cdef uint8_t *at
    check_text(text.size)
    if name.size > 0x7FFF or size > 0x7FFFFFFF:
        raise ConfigError(f"topic of {name.size} or message of {size} bytes does not fit")
    out = PyBytes_FromStringAndSize(NULL, size)
    at = <uint8_t *>PyBytes_AS_STRING(out)
    mq_put32(at, <int32_t>size)
    mq_put32(at + 4, MAGIC_V2 if wide else MAGIC_V1)
    mq_put32(at + AT_CRC, <int32_t>(mq_crc32(0, content.at, content.size) & 0x7FFFFFFF))
    mq_put32(at + AT_QUEUE_ID, fit32(queue_id, "queue_id"))
    mq_put32(at + AT_FLAG, fit32(flag, "flag"))
    mq_put64(at + AT_OFFSET, fit64(offset, "offset"))
    mq_put64(at + AT_PHYSICAL, fit64(physical_offset, "physical_offset"))
    mq_put32(at + AT_SYS_FLAG, bits | (BORN_IPV6 if born.size > 8 else 0) | (STORE_IPV6 if store.size > 8 else 0))
    mq_put64(at + AT_BORN, fit64(born_at, "born_at"))
    at += AT_BORN_HOST
    memcpy(at, born.raw, born.size)
    at += born.size
    mq_put64(at, fit64(stored_at, "stored_at"))
    memcpy(at + 8, store.raw, store.size)
    at += 8 + store.size
    mq_put32(at, fit32(attempts, "attempts"))
    mq_put64(at + 4, fit64(prepared_transaction_offset, "prepared_transaction_offset"))
    mq_put32(at + 12, <int32_t>content.size)
    memcpy(at + 16, content.at, content.size)
    at += 16 + content.size
    if wide:
        mq_put16(at, <int16_t>name.size)
    else:
        at[0] = <uint8_t>name.size
    at += 1 + wide
    memcpy(at, name.at, name.size)
    mq_put16(at + name.size, <int16_t>text.size)
    memcpy(at + name.size + 2, text.at, text.size)
    return out
