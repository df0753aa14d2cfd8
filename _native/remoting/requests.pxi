# Commands to bytes: any command from its fields, and the two hot requests from their arguments.

cdef extern from *:
    """
    /* Of what `mq_json_plain` stops at: 'u': as \\u00xx; else the letter behind the backslash. */
    static const unsigned char mq_escapes[256] = {
        'u','u','u','u','u','u','u','u','b','t','n','u','f','r','u','u',
        'u','u','u','u','u','u','u','u','u','u','u','u','u','u','u','u',
        ['"'] = '"', ['\\\\'] = '\\\\',
    };
    """
    const uint8_t *mq_escapes


cdef struct Command:
    mq_writer out
    int form
    bint first  # no field was written yet
    Py_ssize_t ext  # binary: where the size of the ext section goes


cdef int write_json_text(mq_writer *w, Run run) except -1:
    """A JSON string with its quotes."""
    cdef uint8_t *out = mq_room(w, 2 + 6 * run.size)
    cdef uint8_t *start = out
    cdef const uint8_t *at = run.at
    cdef const uint8_t *end = run.at + run.size
    cdef uint8_t mark
    cdef const uint8_t *odd
    out[0] = c'"'
    out += 1
    while at < end:
        odd = mq_json_plain(at, end)
        memcpy(out, at, odd - at)
        out += odd - at
        at = odd
        if at == end:
            break
        mark = mq_escapes[at[0]]
        if mark == c'u':
            memcpy(out, b"\\u00", 4)
            out[4] = 48 + (at[0] >> 4)
            out[5] = b"0123456789abcdef"[at[0] & 15]
            out += 6
        else:
            out[0] = c'\\'
            out[1] = mark
            out += 2
        at += 1
    out[0] = c'"'
    w.size -= 2 + 6 * run.size - (out + 1 - start)
    return 0


cdef int begin(Command *c, int form, Py_ssize_t room, int32_t code, int32_t opaque, int32_t flag, str language,
               int32_t version) except -1:
    """What comes before the ext fields of a command without a remark (or, in JSON, with one)."""
    mq_writer_open(&c.out, room)
    c.form = form
    c.first = True
    mq_room(&c.out, 8)
    if form == FORM_JSON:
        mq_write(&c.out, b'{"code":', 8)
        return write_number(&c.out, code)
    if form != FORM_ROCKETMQ:
        raise ConfigError(f"header form {form} is not known")
    if not -0x8000 <= code <= 0x7FFF or not -0x8000 <= version <= 0x7FFF:
        raise ConfigError(f"code {code} or version {version} does not fit the binary header")
    if language not in LANGUAGES:
        language = "OTHER"
    return begin_binary(&c.out, code, opaque, flag, LANGUAGES.index(language), version)


cdef int begin_binary(mq_writer *w, int32_t code, int32_t opaque, int32_t flag, int language,
                      int32_t version) except -1:
    cdef uint8_t *at = mq_room(w, 13)
    mq_put16(at, <int16_t>code)
    at[2] = <uint8_t>language
    mq_put16(at + 3, <int16_t>version)
    mq_put32(at + 5, opaque)
    mq_put32(at + 9, flag)
    return 0


cdef int begin_fields(Command *c, object remark) except -1:
    """Open the ext section; the binary remark comes before it."""
    cdef Run run
    cdef uint8_t *at
    if c.form == FORM_JSON:
        return mq_write(&c.out, b',"extFields":{', 14)
    run = utf8_of(remark or "")
    at = mq_room(&c.out, 4 + run.size + 4)
    mq_put32(at, <int32_t>run.size)
    memcpy(at + 4, run.at, run.size)
    c.ext = c.out.size
    return 0


cdef int put_field(Command *c, Run name, Run value) except -1:
    cdef uint8_t *at
    if c.form == FORM_JSON:
        if not c.first:
            mq_write(&c.out, b",", 1)
        c.first = False
        write_json_text(&c.out, name)
        mq_write(&c.out, b":", 1)
        return write_json_text(&c.out, value)
    if name.size > 0x7FFF:
        raise ConfigError("name of a header field longer than 32767 bytes")
    at = mq_room(&c.out, 6 + name.size + value.size)
    mq_put16(at, <int16_t>name.size)
    memcpy(at + 2, name.at, name.size)
    mq_put32(at + 2 + name.size, <int32_t>value.size)
    memcpy(at + 6 + name.size, value.at, value.size)
    return 0


cdef int put_fields(Command *c, object fields) except -1:
    for name, value in fields.items():
        put_field(c, utf8_of(name), utf8_of(value))
    return 0


cdef inline Run literal(const char *text, Py_ssize_t size) noexcept:
    cdef Run run
    run.at = <const uint8_t *>text
    run.size = size
    return run


cdef int put_text(Command *c, const char *name, Py_ssize_t size, str value) except -1:
    return put_field(c, literal(name, size), utf8_of(value))


cdef int put_number(Command *c, const char *name, Py_ssize_t size, int64_t value) except -1:
    cdef uint8_t[24] digits
    cdef uint8_t *at = decimal(value, digits + 24)
    return put_field(c, literal(name, size), literal(<const char *>at, digits + 24 - at))


cdef int put_flag(Command *c, const char *name, bint value) except -1:
    return put_field(c, literal(name, 1), literal(b"true", 4) if value else literal(b"false", 5))


cdef int end_fields(Command *c) except -1:
    if c.form == FORM_JSON:
        return mq_write(&c.out, b"}", 1)
    mq_put32(c.out.start + c.ext - 4, <int32_t>(c.out.size - c.ext))
    return 0


cdef int end_header(Command *c, int32_t opaque, int32_t flag, str language, object remark, int32_t version) except -1:
    """JSON: the members behind the ext fields. Both: the mark word."""
    cdef Py_ssize_t size
    if c.form == FORM_JSON:
        mq_write(&c.out, b',"flag":', 8)
        write_number(&c.out, flag)
        mq_write(&c.out, b',"language":', 12)
        write_json_text(&c.out, utf8_of(language))
        mq_write(&c.out, b',"opaque":', 10)
        write_number(&c.out, opaque)
        if remark is not None:
            mq_write(&c.out, b',"remark":', 10)
            write_json_text(&c.out, utf8_of(remark))
        mq_write(&c.out, b',"serializeTypeCurrentRPC":"JSON","version":', 44)
        write_number(&c.out, version)
        mq_write(&c.out, b"}", 1)
    size = c.out.size - 8
    check_frame(c.out.size)  # so that the header's size fits its 24 bits
    mq_put32(c.out.start + 4, <int32_t>(<uint32_t>c.form << 24 | <uint32_t>size))
    return 0


cdef int check_frame(Py_ssize_t size) except -1:
    if size > MOST_FRAME:
        raise ConfigError(f"frame of {size} bytes; peers take {MAX_FRAME}")
    return 0


cdef bytes finish(Command *c, Py_ssize_t behind):
    """The frame; `behind`: bytes of its body that the caller sends after it."""
    if behind < 0:
        raise ConfigError(f"{behind} bytes behind a frame")
    check_frame(behind)
    check_frame(c.out.size + behind)
    mq_put32(c.out.start, <int32_t>(c.out.size - 4 + behind))
    return mq_writer_done(&c.out)


cdef int put_body(Command *c, object body) except -1:
    cdef Run run
    cdef object held
    if type(body) is list or type(body) is tuple:
        for part in body:
            held = hold(part, &run)
            write_run(&c.out, run)
    else:
        held = hold(body, &run)
        write_run(&c.out, run)
    return 0


def encode_frame(code, opaque, *, flag=0, fields=None, body=b"", remark=None, str language not None="PYTHON",
                 version=479, int serialize=0, Py_ssize_t behind=0):
    """Any command, with its fields in the order given."""
    cdef Command c
    cdef int32_t number = fit32(opaque, "opaque"), marks = fit32(flag, "flag"), release = fit32(version, "version")
    c.out.bytes = NULL
    try:
        begin(&c, serialize, 256, fit32(code, "code"), number, marks, language, release)
        if fields is not None or serialize != FORM_JSON:
            begin_fields(&c, remark)
            if fields is not None:
                put_fields(&c, fields)
            end_fields(&c)
        end_header(&c, number, marks, language, remark, release)
        put_body(&c, body)
        return finish(&c, behind)
    finally:
        mq_writer_drop(&c.out)


def encode_send(opaque, str group not None, str topic not None, queue_id, properties, body, *, born_at, code=310,
                sys_flag=0, flag=0, reconsume_times=0, max_reconsume_times=None, bint unit_mode=False, bint batch=False,
                str broker not None="", str default_topic not None="TBW102", default_queues=4, bint oneway=False,
                extra=None, str language not None="PYTHON", version=479, int serialize=0, Py_ssize_t behind=0):
    """SEND_MESSAGE_V2, a batch or a reply, with the short field names."""
    cdef Command c
    cdef Run content, text
    cdef int32_t number = fit32(opaque, "opaque"), release = fit32(version, "version"), marks = ONEWAY if oneway else 0
    cdef object held = hold(body, &content), held_text = hold(properties, &text)
    if not is_utf8(text.at, text.size):
        raise ConfigError("properties are no UTF-8")
    c.out.bytes = NULL
    try:
        begin(&c, serialize, content.size + 6 * text.size + 512, fit32(code, "code"), number, marks, language, release)
        begin_fields(&c, None)
        put_text(&c, b"a", 1, group)
        put_text(&c, b"b", 1, topic)
        put_text(&c, b"c", 1, default_topic)
        put_number(&c, b"d", 1, fit64(default_queues, "default_queues"))
        put_number(&c, b"e", 1, fit64(queue_id, "queue_id"))
        put_number(&c, b"f", 1, fit64(sys_flag, "sys_flag"))
        put_number(&c, b"g", 1, fit64(born_at, "born_at"))
        put_number(&c, b"h", 1, fit64(flag, "flag"))
        put_field(&c, literal(b"i", 1), text)
        put_number(&c, b"j", 1, fit64(reconsume_times, "reconsume_times"))
        put_flag(&c, b"k", unit_mode)
        if max_reconsume_times is not None:
            put_number(&c, b"l", 1, fit64(max_reconsume_times, "max_reconsume_times"))
        put_flag(&c, b"m", batch)
        if broker:
            put_text(&c, b"n", 1, broker)
        if extra is not None:
            put_fields(&c, extra)
        end_fields(&c)
        end_header(&c, number, marks, language, None, release)
        write_run(&c.out, content)
        return finish(&c, behind)
    finally:
        mq_writer_drop(&c.out)


def encode_pull(opaque, str group not None, str topic not None, queue_id, offset, *, max_messages=32, sys_flag=0,
                commit_offset=0, suspend_ms=0, str subscription=None, sub_version=0, str expression_type=None,
                max_bytes=None, str broker not None="", code=11, extra=None, str language not None="PYTHON",
                version=479, int serialize=0):
    """PULL_MESSAGE or LITE_PULL_MESSAGE."""
    cdef Command c
    cdef int32_t number = fit32(opaque, "opaque"), release = fit32(version, "version")
    c.out.bytes = NULL
    try:
        begin(&c, serialize, 512, fit32(code, "code"), number, 0, language, release)
        begin_fields(&c, None)
        put_text(&c, b"consumerGroup", 13, group)
        put_text(&c, b"topic", 5, topic)
        put_number(&c, b"queueId", 7, fit64(queue_id, "queue_id"))
        put_number(&c, b"queueOffset", 11, fit64(offset, "offset"))
        put_number(&c, b"maxMsgNums", 10, fit64(max_messages, "max_messages"))
        put_number(&c, b"sysFlag", 7, fit64(sys_flag, "sys_flag"))
        put_number(&c, b"commitOffset", 12, fit64(commit_offset, "commit_offset"))
        put_number(&c, b"suspendTimeoutMillis", 20, fit64(suspend_ms, "suspend_ms"))
        if subscription is not None:
            put_text(&c, b"subscription", 12, subscription)
        put_number(&c, b"subVersion", 10, fit64(sub_version, "sub_version"))
        if expression_type is not None:
            put_text(&c, b"expressionType", 14, expression_type)
        if max_bytes is not None:
            put_number(&c, b"maxMsgBytes", 11, fit64(max_bytes, "max_bytes"))
        if broker:
            put_text(&c, b"bname", 5, broker)
        if extra is not None:
            put_fields(&c, extra)
        end_fields(&c)
        end_header(&c, number, 0, language, None, release)
        return finish(&c, 0)
    finally:
        mq_writer_drop(&c.out)
