# The command header in its two forms: checked and taken apart when its frame arrives, ext fields decoded when asked.

cdef enum:
    FORM_JSON = 0
    FORM_ROCKETMQ = 1

JSON = FORM_JSON
ROCKETMQ = FORM_ROCKETMQ

cdef tuple LANGUAGES = (
    "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY",
    "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST", "NODE_JS",
)  # a language's binary code is its place here


cdef struct Header:
    int32_t code
    int32_t flag
    int32_t opaque
    int32_t version
    int32_t language  # binary only
    Span language_text  # JSON only
    Span remark
    const uint8_t *ext  # JSON: the object's inside, up to the header's end; binary: the entries
    const uint8_t *ext_end


cdef bint is_utf8(const uint8_t *at, Py_ssize_t size) except -1:
    if mq_is_ascii(at, size):
        return True
    try:
        PyUnicode_DecodeUTF8(<const char *>at, size, NULL)
    except UnicodeDecodeError:
        return False
    return True


# ------------------------------------------------------------------------------------------------------------- JSON

cdef bint named(Span *name, const char *text, int size) except -1:
    """Whether a member has this name, escaped or not."""
    if name.kind == ESCAPED:
        return unescaped(name) == text[:size].decode()
    return name.end - name.at == size and memcmp(name.at, text, size) == 0


cdef Span *place(Span *name, Span *spans) except? NULL:
    """Where a top-level member of the header belongs, NULL if it is none that we know."""
    if named(name, b"code", 4):
        return &spans[0]
    if named(name, b"flag", 4):
        return &spans[1]
    if named(name, b"opaque", 6):
        return &spans[2]
    if named(name, b"version", 7):
        return &spans[3]
    if named(name, b"language", 8):
        return &spans[4]
    if named(name, b"remark", 6):
        return &spans[5]
    return &spans[6] if named(name, b"extFields", 9) else NULL


cdef str read_json(const uint8_t *at, const uint8_t *end, Header *out):
    """Take a JSON header apart; None, or what is wrong with it. Of a member that comes twice the last one counts."""
    cdef mq_cursor c = mq_open(at, end)
    cdef Span[7] spans
    cdef Span name, value
    cdef Span *known
    cdef bint first = True
    memset(spans, 0, sizeof(spans))
    if not is_utf8(at, end - at):
        return "header is not UTF-8"
    want(&c, c'{')
    while json_member(&c, &name, &value, 0, first):
        first = False
        known = place(&name, spans)
        if known != NULL:
            known[0] = value
    blanks(&c)
    if c.bad or c.at != c.end:
        return f"header is no JSON at {c.at - at}"
    if spans[0].kind == ABSENT or spans[0].kind == NULL_VALUE:
        return "header without a code"
    return settle(spans, out)


cdef str settle(Span *spans, Header *out):
    """What the members say."""
    cdef Span *ext = &spans[6]
    if not (span_int32(&spans[0], &out.code) and span_int32(&spans[1], &out.flag)
            and span_int32(&spans[2], &out.opaque) and span_int32(&spans[3], &out.version)):
        return "header's code, flag, opaque or version is no 32-bit integer"
    out.language_text = spans[4]
    out.remark = spans[5]
    out.ext = out.ext_end = NULL
    if ext.kind == RAW and ext.at[0] == c'{':
        out.ext = ext.at + 1
        out.ext_end = ext.end
    elif ext.kind != ABSENT and ext.kind != NULL_VALUE:
        return "extFields is no object"
    return None


cdef dict json_fields(const uint8_t *at, const uint8_t *end):
    cdef mq_cursor c = mq_open(at, end)
    cdef Span name, value
    cdef dict fields = {}
    cdef bint first = True
    while json_member(&c, &name, &value, 1, first):
        first = False
        if value.kind == NULL_VALUE:
            fields.pop(span_text(&name), None)
        else:
            fields[span_text(&name)] = span_text(&value)
    return fields


cdef int find_members(const uint8_t *at, const uint8_t *end, const Run *wanted, Span *found,
                      Py_ssize_t count) except -1:
    """Of a member that comes twice the last one counts."""
    cdef mq_cursor c = mq_open(at, end)
    cdef Span name, value
    cdef bint first = True
    cdef Py_ssize_t place
    while json_member(&c, &name, &value, 1, first):
        first = False
        for place in range(count):
            if named(&name, <const char *>wanted[place].at, <int>wanted[place].size):
                found[place] = value
    return 0


cdef str json_field(const uint8_t *at, const uint8_t *end, const char *wanted, int size):
    cdef mq_cursor c = mq_open(at, end)
    cdef Span name, value, found
    cdef bint first = True
    found.kind = ABSENT
    while json_member(&c, &name, &value, 1, first):
        first = False
        if named(&name, wanted, size):
            found = value
    return None if found.kind == ABSENT or found.kind == NULL_VALUE else span_text(&found)


# ----------------------------------------------------------------------------------------------------------- binary

cdef str read_binary(const uint8_t *at, const uint8_t *end, Header *out):
    """Take a binary header apart; None, or what is wrong with it."""
    cdef mq_cursor c = mq_open(at, end)
    cdef int64_t size
    out.code = mq_i16(&c)
    out.language = mq_u8(&c)
    out.version = mq_i16(&c)
    out.opaque = mq_i32(&c)
    out.flag = mq_i32(&c)
    size = mq_i32(&c)
    out.remark.kind = PLAIN if size > 0 else ABSENT
    out.remark.at = mq_skip(&c, size)
    out.remark.end = c.at
    size = mq_i32(&c)
    out.ext = mq_skip(&c, size)
    out.ext_end = c.at
    if c.bad:
        return "header ends too early"
    if not is_utf8(out.remark.at, out.remark.end - out.remark.at):
        return "header is not UTF-8"
    return check_entries(out.ext, out.ext_end)


cdef bint binary_entry(mq_cursor *c, Run *name, Run *value) noexcept nogil:
    """The next ext entry; False at the end, or with `bad` set where it does not fit."""
    if c.bad or c.at == c.end:
        return False
    name.size = mq_i16(c)
    name.at = mq_skip(c, name.size)
    value.size = mq_i32(c)
    value.at = mq_skip(c, value.size)
    return not c.bad


cdef str check_entries(const uint8_t *at, const uint8_t *end):
    cdef mq_cursor c = mq_open(at, end)
    cdef Run name, value
    cdef bint plain = mq_is_ascii(at, end - at)
    while binary_entry(&c, &name, &value):
        if not plain and not (is_utf8(name.at, name.size) and is_utf8(value.at, value.size)):
            return "header is not UTF-8"
    return "ext fields do not fit the header" if c.bad else None


cdef dict binary_fields(const uint8_t *at, const uint8_t *end):
    """Empty names and values are what Java reads back as null."""
    cdef mq_cursor c = mq_open(at, end)
    cdef Run name, value
    cdef dict fields = {}
    while binary_entry(&c, &name, &value):
        if name.size > 0 and value.size > 0:
            fields[mq_text(name.at, name.size)] = mq_text(value.at, value.size)
        else:
            fields.pop(mq_text(name.at, name.size), None)
    return fields


cdef str binary_field(const uint8_t *at, const uint8_t *end, const char *wanted, int size):
    cdef mq_cursor c = mq_open(at, end)
    cdef Run name, value, found
    found.size = 0
    while binary_entry(&c, &name, &value):
        if name.size == size and memcmp(name.at, wanted, size) == 0:
            found = value
    return mq_text(found.at, found.size) if size > 0 and found.size > 0 else None
