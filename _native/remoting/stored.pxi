# The stored form of messages: one, and all of a batch send at once.

cdef struct Host:
    uint8_t[20] raw  # address and port
    Py_ssize_t size


cdef struct Form:
    uint8_t[112] head  # a stored message up to its body, without what differs from one to the next
    Py_ssize_t head_size
    Run topic
    bint wide  # the topic's length takes two bytes


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


cdef int open_form(Form *form, str topic, object queue_id, object sys_flag, object born_at, object born_host,
                   object stored_at, object store_host, object attempts, object prepared) except -1:
    """What messages to one queue have in common; the topic's text lives as long as the str."""
    cdef Host born = host_of(born_host), store = host_of(store_host)
    cdef int32_t bits = fit32(sys_flag, "sys_flag") & ~(BORN_IPV6 | STORE_IPV6)
    cdef uint8_t *at = form.head
    form.topic = utf8_of(topic)
    form.wide = form.topic.size > MOST_TOPIC_V1
    if form.topic.size > 0x7FFF:
        raise ConfigError(f"topic of {form.topic.size} bytes does not fit")
    memset(at, 0, AT_BORN)
    mq_put32(at + 4, MAGIC_V2 if form.wide else MAGIC_V1)
    mq_put32(at + AT_QUEUE_ID, fit32(queue_id, "queue_id"))
    mq_put32(at + AT_SYS_FLAG, bits | (BORN_IPV6 if born.size > 8 else 0) | (STORE_IPV6 if store.size > 8 else 0))
    mq_put64(at + AT_BORN, fit64(born_at, "born_at"))
    at += AT_BORN_HOST
    memcpy(at, born.raw, born.size)
    at += born.size
    mq_put64(at, fit64(stored_at, "stored_at"))
    memcpy(at + 8, store.raw, store.size)
    at += 8 + store.size
    mq_put32(at, fit32(attempts, "attempts"))
    mq_put64(at + 4, fit64(prepared, "prepared_transaction_offset"))
    form.head_size = at + 16 - form.head
    return 0


cdef inline Py_ssize_t stored_size(const Form *form, Py_ssize_t body_size, Py_ssize_t text_size) noexcept nogil:
    return form.head_size + body_size + 1 + form.wide + form.topic.size + 2 + text_size


cdef void put_stored(uint8_t *at, Py_ssize_t size, const Form *form, Run body, Run text, int32_t flag, int64_t offset,
                     int64_t physical_offset) noexcept nogil:
    """One message of `size` bytes, as `stored_size` gave it."""
    memcpy(at, form.head, form.head_size)
    mq_put32(at, <int32_t>size)
    mq_put32(at + AT_CRC, <int32_t>(mq_crc32(0, body.at, body.size) & 0x7FFFFFFF))
    mq_put32(at + AT_FLAG, flag)
    mq_put64(at + AT_OFFSET, offset)
    mq_put64(at + AT_PHYSICAL, physical_offset)
    at += form.head_size
    mq_put32(at - 4, <int32_t>body.size)
    memcpy(at, body.at, body.size)
    at += body.size
    if form.wide:
        mq_put16(at, <int16_t>form.topic.size)
    else:
        at[0] = <uint8_t>form.topic.size
    at += 1 + form.wide
    memcpy(at, form.topic.at, form.topic.size)
    at += form.topic.size
    mq_put16(at, <int16_t>text.size)
    memcpy(at + 2, text.at, text.size)


def encode_message(body not None, str topic not None, *, properties not None=b"", queue_id=0, flag=0, offset=0,
                   physical_offset=0, sys_flag=0, born_at=0, born_host not None=("127.0.0.1", 0), stored_at=0,
                   store_host not None=("127.0.0.1", 0), attempts=0, prepared_transaction_offset=0):
    """A message as a broker stores and answers it."""
    cdef Run content, text
    cdef object held = hold(body, &content), held_text = hold(properties, &text)
    cdef Form form
    cdef Py_ssize_t size
    cdef bytes out
    open_form(&form, topic, queue_id, sys_flag, born_at, born_host, stored_at, store_host, attempts,
              prepared_transaction_offset)
    check_text(text.size)
    size = stored_size(&form, content.size, text.size)
    if size > 0x7FFFFFFF:
        raise ConfigError(f"message of {size} bytes does not fit")
    out = PyBytes_FromStringAndSize(NULL, size)
    put_stored(<uint8_t *>PyBytes_AS_STRING(out), size, &form, content, text, fit32(flag, "flag"),
               fit64(offset, "offset"), fit64(physical_offset, "physical_offset"))
    return out


def store_batch(body not None, str topic not None, *, queue_id=0, offset=0, physical_offset=0, sys_flag=0, born_at=0,
                born_host not None=("127.0.0.1", 0), stored_at=0, store_host not None=("127.0.0.1", 0)):
    """The messages of a batch body in stored form; where each ends; the code of each one's tag."""
    cdef bytes owner = as_bytes(body)
    cdef const uint8_t *start = <const uint8_t *>PyBytes_AS_STRING(owner)
    cdef mq_cursor c = mq_open(start, start + PyBytes_GET_SIZE(owner))
    cdef int64_t at_queue = fit64(offset, "offset"), at_log = fit64(physical_offset, "physical_offset")
    cdef Py_ssize_t count = 0, size = 0
    cdef Form form
    cdef Record r
    cdef bytes out, ends, tags
    open_form(&form, topic, queue_id, sys_flag, born_at, born_host, stored_at, store_host, 0, 0)
    while c.at < c.end:  # first how much it will be: nothing is allocated for what did not arrive
        if not walk_element(&c, &r):
            raise ProtocolError(f"element {count} of a batch is cut off")
        size += stored_size(&form, r.body_size, r.text_size)
        count += 1
    if size > 0x7FFFFFFF or overflows(at_queue, count) or overflows(at_log, size):
        raise ConfigError(f"{count} messages of {size} bytes do not fit, at {offset} and {physical_offset}")
    out = PyBytes_FromStringAndSize(NULL, size)
    ends = PyBytes_FromStringAndSize(NULL, 4 * count)
    tags = PyBytes_FromStringAndSize(NULL, 4 * count)
    fill_batch(owner, &form, at_queue, at_log, <uint8_t *>PyBytes_AS_STRING(out),
               <uint32_t *>PyBytes_AS_STRING(ends), <int32_t *>PyBytes_AS_STRING(tags))
    return out, ends, tags


def is_timed(body not None):
    """Whether a message of a batch body has a property that holds it back, as far as the body is whole."""
    cdef bytes owner = as_bytes(body)
    cdef const uint8_t *start = <const uint8_t *>PyBytes_AS_STRING(owner)
    cdef mq_cursor c = mq_open(start, start + PyBytes_GET_SIZE(owner))
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef Record r
    while c.at < c.end and walk_element(&c, &r):
        at, end = r.text, r.text + r.text_size
        while at != NULL and at < end:
            if end - at >= 5 and memcmp(at, b"DELAY", 5) == 0 or end - at >= 9 and memcmp(at, b"TIMER_DEL", 9) == 0:
                return True
            at = <const uint8_t *>memchr(at, 2, end - at)
            at += at != NULL
    return False


cdef int fill_batch(bytes owner, const Form *form, int64_t at_queue, int64_t at_log, uint8_t *out, uint32_t *ends,
                    int32_t *tags) except -1:
    """Write what was walked before, and found whole."""
    cdef const uint8_t *start = <const uint8_t *>PyBytes_AS_STRING(owner)
    cdef mq_cursor c = mq_open(start, start + PyBytes_GET_SIZE(owner))
    cdef Py_ssize_t count = 0, size, done = 0
    cdef Run content, text
    cdef Record r
    while c.at < c.end and walk_element(&c, &r):
        content.at, content.size = r.body, r.body_size
        text.at, text.size = r.text, r.text_size
        size = stored_size(form, content.size, text.size)
        put_stored(out + done, size, form, content, text, mq_be32(r.body - 8), at_queue + count, at_log + done)
        done += size
        ends[count] = <uint32_t>done
        tags[count] = tag_code(&r)
        count += 1
    return 0


cdef int32_t tag_code(const Record *r) except? -1:
    """Java's hash of the tag, by which brokers filter; 0 without one."""
    cdef mq_entry entry
    cdef uint32_t state = 0
    cdef int32_t place
    cdef Py_UCS4 character
    cdef uint32_t point
    if not find(r, b"TAGS", 4, &entry):
        return 0
    for place in range(entry.value_size):
        if entry.value[place] > 0x7F:
            break
        state = 31 * state + entry.value[place]
    else:
        return <int32_t>state
    state = 0
    for character in tag_text(entry.value, entry.value_size):
        point = <uint32_t>character
        if point > 0xFFFF:
            state = 31 * state + (0xD7C0 + (point >> 10))
            point = 0xDC00 | point & 0x3FF
        state = 31 * state + point
    return <int32_t>state
