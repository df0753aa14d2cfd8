# Messages as users make them, into the body of a batch send: one crossing for as many as fit.

cdef bint plain(Outgoing message, Run *body, Py_ssize_t most, object reserved) except -1:
    """Whether a message needs no other care: not delayed, neither empty nor larger than `most`, of its own properties
    only."""
    if message.own_properties and not reserved.isdisjoint(message.own_properties):
        return False
    if message.delay_level or message.deliver_at is not None or message.deliver_after is not None:
        return False
    return 0 < body.size <= most


cdef object joined(object words):
    """Words with blanks between."""
    if type(words) is list and len(words) == 1:
        return (<list>words)[0]
    return words[0] if len(words) == 1 else " ".join(words)


cdef Py_ssize_t put_message(mq_writer *w, Outgoing message, Run body, UniqueKeys unique, int64_t now_ms,
                            uint8_t *key) except -1:
    """One element: its frame, the body, its properties; writes its id to `key`, too, and gives the size of that."""
    cdef Py_ssize_t start = w.size, text
    cdef int32_t flag = fit32(message.flag, "flag")
    cdef uint8_t *at = mq_room(w, ELEMENT + body.size)
    cdef Py_ssize_t key_size
    memset(at + 4, 0, 8)
    mq_put32(at + 12, flag)
    mq_put32(at + 16, <int32_t>body.size)
    memcpy(at + 20, body.at, body.size)
    key_size = put_properties(w, message, unique, now_ms, key)
    text = w.size - start - ELEMENT - body.size
    check_text(text)
    at = w.start + start
    mq_put32(at, <int32_t>(w.size - start))
    mq_put16(at + 20 + body.size, <int16_t>text)
    return key_size


cdef Py_ssize_t put_properties(mq_writer *w, Outgoing message, UniqueKeys unique, int64_t now_ms,
                               uint8_t *key) except -1:
    """Id, WAIT, then tag, keys and the user's own properties; the id as in `put_message`."""
    cdef object tag = message.tag, keys = message.own_keys, held  # held: joining keys may run code of theirs
    cdef Run label = property_part(tag) if tag else literal(b"", 0), words = literal(b"", 0)
    cdef Py_ssize_t key_size
    cdef uint8_t *at
    if keys:
        held = joined(keys)
        words = property_part(held)
    key_size = unique.put(now_ms, key)
    at = mq_room(w, words.size + label.size + AROUND)
    at = put_entry(at, b"UNIQ_KEY", 8, literal(<const char *>key, key_size))
    memcpy(at, b"WAIT\x01true\x02", 10)
    at += 10
    if label.size > 0:
        at = put_entry(at, b"TAGS", 4, label)
    if words.size > 0:
        at = put_entry(at, b"KEYS", 4, words)
    w.size = at - w.start
    if message.own_properties:
        for name, value in message.own_properties.items():
            write_entry(w, property_part(name), property_part(value))
    return key_size


def message_text(message not None, UniqueKeys unique not None, int64_t now_ms, reserved not None,
                 Py_ssize_t most=MOST_FRAME, kind=None):
    """Of a message that goes alone: its properties as they are sent, and its id; None if it needs other care."""
    cdef Outgoing fields = fields_of(message, own_kind(kind))
    cdef Run body
    cdef mq_writer w
    cdef uint8_t[56] key
    cdef Py_ssize_t key_size
    cdef object held = hold(fields.body, &body)
    if not plain(fields, &body, most, reserved):
        return None
    mq_writer_open(&w, 256)
    try:
        key_size = put_properties(&w, fields, unique, now_ms, key)
        check_text(w.size)
        return mq_writer_done(&w), mq_text(key, key_size)
    finally:
        mq_writer_drop(&w)


def add_messages(BatchBuilder builder not None, messages not None, Py_ssize_t start, str topic not None,
                 UniqueKeys unique not None, int64_t now_ms, list ids not None, reserved not None, *,
                 Py_ssize_t max_size=MOST_FRAME, Py_ssize_t max_count=PY_SSIZE_T_MAX, Py_ssize_t most=MOST_FRAME,
                 kind=None):
    """Append messages from `start` on; gives the place of the first that was not added."""
    cdef Py_ssize_t place = start, stop = len(messages), before
    cdef Run body
    cdef Outgoing fields
    cdef object held, own = own_kind(kind)
    cdef uint8_t[56] key
    cdef Py_ssize_t key_size
    if builder.out.bytes == NULL:
        mq_writer_open(&builder.out, 4096)
    while place < stop and builder.count < max_count:
        fields = fields_of(messages[place], own)
        held = hold(fields.body, &body)
        if not ((fields.topic is topic or fields.topic == topic) and plain(fields, &body, most, reserved)):
            break
        before = builder.out.size
        try:
            key_size = put_message(&builder.out, fields, body, unique, now_ms, key)
        except BaseException:
            builder.out.size = before  # the half of a message must not go along with the others
            raise
        if builder.count > 0 and builder.out.size > max_size:
            builder.out.size = before
            break
        ids.append(mq_text(key, key_size))
        builder.count += 1
        place += 1
    return place
