# JSON of a header, read in place: strict, as the standard library reads it, and never deeper than DEEPEST.

cdef enum:
    DEEPEST = 32

cdef enum Kind:
    ABSENT, NULL_VALUE, PLAIN, ESCAPED, RAW  # PLAIN, ESCAPED: a string's inside; RAW: anything else as written


cdef struct Span:
    const uint8_t *at
    const uint8_t *end
    Kind kind


cdef inline int peek(mq_cursor *c) noexcept nogil:
    return c.at[0] if c.at < c.end else -1


cdef inline void blanks(mq_cursor *c) noexcept nogil:
    while c.at < c.end and (c.at[0] == 0x20 or c.at[0] == 0x0A or c.at[0] == 0x0D or c.at[0] == 0x09):
        c.at += 1


cdef inline void want(mq_cursor *c, int mark) noexcept nogil:
    blanks(c)
    if peek(c) != mark:
        c.bad = 1
    else:
        c.at += 1


cdef int hex4(const uint8_t *p) noexcept nogil:
    """Four hex digits, -1 if they are none."""
    cdef int number = 0, i, digit
    for i in range(4):
        digit = p[i]
        if 48 <= digit <= 57:
            digit -= 48
        elif 65 <= (digit & 0xDF) <= 70:
            digit = (digit & 0xDF) - 55
        else:
            return -1
        number = number << 4 | digit
    return number


cdef bint escape(mq_cursor *c) noexcept nogil:
    """Step over an escape, its backslash already behind."""
    cdef const uint8_t *p
    cdef const uint8_t *mark = mq_skip(c, 1)
    if mark == NULL:
        return False
    if mark[0] == c'u':
        p = mq_skip(c, 4)
        return p != NULL and hex4(p) >= 0
    return memchr(b"\"\\/bfnrt", mark[0], 8) != NULL


cdef void json_string(mq_cursor *c, Span *out) noexcept nogil:
    """A string, its opening quote already behind."""
    out.at = c.at
    out.kind = PLAIN
    while True:
        c.at = mq_json_plain(c.at, c.end)
        if c.at == c.end or c.at[0] < 0x20:
            break
        c.at += 1
        if (c.at - 1)[0] == c'"':
            out.end = c.at - 1
            return
        out.kind = ESCAPED
        if not escape(c):
            break
    c.bad = 1


cdef void json_digits(mq_cursor *c) noexcept nogil:
    if not 48 <= peek(c) <= 57:
        c.bad = 1
    while 48 <= peek(c) <= 57:
        c.at += 1


cdef void json_number(mq_cursor *c) noexcept nogil:
    if peek(c) == c'-':
        c.at += 1
    if peek(c) == c'0':
        c.at += 1
    else:
        json_digits(c)
    if peek(c) == c'.':
        c.at += 1
        json_digits(c)
    if peek(c) == c'e' or peek(c) == c'E':
        c.at += 1
        if peek(c) == c'+' or peek(c) == c'-':
            c.at += 1
        json_digits(c)


cdef void json_word(mq_cursor *c, const char *word, int size) noexcept nogil:
    cdef const uint8_t *at = mq_skip(c, size)
    if at != NULL and memcmp(at, word, size) != 0:
        c.bad = 1


cdef void json_nested(mq_cursor *c, int closing, int depth) noexcept nogil:
    """An array or an object, its opening bracket already behind; nothing of it is kept."""
    cdef Span span
    if depth > DEEPEST:
        c.bad = 1
        return
    blanks(c)
    if peek(c) == closing:
        c.at += 1
        return
    while not c.bad:
        if closing == c'}':
            want(c, c'"')
            if c.bad:
                return
            json_string(c, &span)
            want(c, c':')
        json_value(c, &span, depth)
        blanks(c)
        if peek(c) != c',':
            break
        c.at += 1
    want(c, closing)


cdef void json_value(mq_cursor *c, Span *out, int depth) noexcept nogil:
    """Any value; `depth` is how many arrays and objects of the value looked at are open."""
    cdef int mark
    if c.bad:
        return
    blanks(c)
    out.at = c.at
    out.kind = RAW
    mark = peek(c)
    if mark == c'"':
        c.at += 1
        json_string(c, out)
        return
    if mark == c'{' or mark == c'[':
        c.at += 1
        json_nested(c, mark + 2, depth + 1)
    elif mark == c't':
        json_word(c, b"true", 4)
    elif mark == c'f':
        json_word(c, b"false", 5)
    elif mark == c'n':
        json_word(c, b"null", 4)
        out.kind = NULL_VALUE
    else:
        json_number(c)
    out.end = c.at


cdef bint json_member(mq_cursor *c, Span *name, Span *value, int depth, bint first) noexcept nogil:
    """The next member of an object whose opening bracket is behind; False at its end or if it is none."""
    if c.bad:
        return False
    blanks(c)
    if first:
        if peek(c) == c'}':
            c.at += 1
            return False
    elif peek(c) == c',':
        c.at += 1
    else:
        want(c, c'}')
        return False
    want(c, c'"')
    if c.bad:
        return False
    json_string(c, name)
    want(c, c':')
    json_value(c, value, depth)
    return not c.bad


cdef str span_text(Span *span):
    """The text of a value that is there and not null."""
    if span.kind == ESCAPED:
        return unescaped(span)
    return mq_text(span.at, span.end - span.at)


cdef str unescaped(Span *span):
    cdef Py_ssize_t size = span.end - span.at
    cdef uint8_t *out = <uint8_t *>PyMem_Malloc(size + 4)
    if out == NULL:
        raise MemoryError
    try:
        size = unescape(span.at, span.end, out)
        return PyUnicode_DecodeUTF8(<const char *>out, size, "surrogatepass")
    finally:
        PyMem_Free(out)


cdef Py_ssize_t unescape(const uint8_t *at, const uint8_t *end, uint8_t *out) noexcept nogil:
    """A checked string's inside as UTF-8, half surrogate pairs included; never longer than what it was."""
    cdef uint8_t *start = out
    cdef int low
    cdef uint8_t mark
    cdef uint32_t point
    while at < end:
        if at[0] != c'\\':
            out[0] = at[0]
            out += 1
            at += 1
            continue
        mark = at[1]
        at += 2
        if mark != c'u':
            out[0] = unescaped_letter(mark)
            out += 1
            continue
        point = hex4(at)
        at += 4
        if point & 0xFC00 == 0xD800 and end - at >= 6 and at[0] == c'\\' and at[1] == c'u':
            low = hex4(at + 2)
            if low & 0xFC00 == 0xDC00:
                point = 0x10000 + ((point & 0x3FF) << 10) + (low & 0x3FF)
                at += 6
        out = put_point(out, point)
    return out - start


cdef uint8_t unescaped_letter(uint8_t mark) noexcept nogil:
    if mark == c'b':
        return 8
    if mark == c'f':
        return 12
    if mark == c'n':
        return 10
    if mark == c'r':
        return 13
    return 9 if mark == c't' else mark


cdef uint8_t *put_point(uint8_t *out, uint32_t point) noexcept nogil:
    if point < 0x80:
        out[0] = <uint8_t>point
        return out + 1
    if point < 0x800:
        out[0] = <uint8_t>(0xC0 | point >> 6)
        out[1] = <uint8_t>(0x80 | point & 0x3F)
        return out + 2
    if point < 0x10000:
        out[0] = <uint8_t>(0xE0 | point >> 12)
        out[1] = <uint8_t>(0x80 | point >> 6 & 0x3F)
        out[2] = <uint8_t>(0x80 | point & 0x3F)
        return out + 3
    out[0] = <uint8_t>(0xF0 | point >> 18)
    out[1] = <uint8_t>(0x80 | point >> 12 & 0x3F)
    out[2] = <uint8_t>(0x80 | point >> 6 & 0x3F)
    out[3] = <uint8_t>(0x80 | point & 0x3F)
    return out + 4


cdef bint span_int32(Span *span, int32_t *out) noexcept nogil:
    """A whole number of at most ten digits, bare or as a string; absent and null are 0. False for anything else."""
    cdef const uint8_t *at = span.at
    cdef const uint8_t *end = span.end
    cdef uint8_t[72] plain  # eleven characters, each escaped
    cdef int64_t number = 0
    cdef bint minus
    out[0] = 0
    if span.kind == ABSENT or span.kind == NULL_VALUE:
        return True
    if span.kind == ESCAPED:
        if end - at > 66:
            return False
        end = plain + unescape(at, end, plain)
        at = plain
    minus = at < end and at[0] == c'-'
    at += minus
    if not 1 <= end - at <= 10:
        return False
    while at < end:
        if not 48 <= at[0] <= 57:
            return False
        number = number * 10 + (at[0] - 48)
        at += 1
    if minus:
        number = -number
    out[0] = <int32_t>number
    return -0x80000000 <= number <= 0x7FFFFFFF
