# Ids of messages: the producer's unique keys and the broker's offset ids.

cdef extern from *:
    """
    #include <time.h>
    #include <stdint.h>
    /* First moment of the local month that holds `now`, and of the next, in seconds. */
    static void mq_month(int64_t now, int64_t *first, int64_t *next) {
        time_t at = (time_t)now;
        struct tm here, day = {0};
    #ifdef _WIN32
        localtime_s(&here, &at);
    #else
        localtime_r(&at, &here);
    #endif
        day.tm_year = here.tm_year; day.tm_mon = here.tm_mon; day.tm_mday = 1; day.tm_isdst = -1;
        *first = (int64_t)mktime(&day);
        memset(&day, 0, sizeof(day));
        day.tm_year = here.tm_year; day.tm_mon = here.tm_mon + 1; day.tm_mday = 1; day.tm_isdst = -1;
        *next = (int64_t)mktime(&day);
    }
    """
    void mq_month(int64_t now, int64_t *first, int64_t *next) nogil

cdef enum:
    LATE = -1000000  # a clock that went back less than this counts as the month's first moment


@cython.final
@cython.no_gc
cdef class UniqueKeys:
    """Makes the unique keys of one process."""
    cdef uint8_t[44] prefix  # address, pid and salt, in hex
    cdef Py_ssize_t prefix_size
    cdef uint64_t counter
    cdef int64_t start, next_month

    def __init__(self, bytes ip not None, pid, salt, counter=0):
        cdef uint8_t[22] raw
        cdef Py_ssize_t size = len(ip)
        if size != 4 and size != 16:
            raise ConfigError(f"an IP address has 4 or 16 bytes, not {size}")
        memcpy(raw, PyBytes_AS_STRING(ip), size)
        mq_put16(raw + size, <int16_t><uint16_t>(pid & 0xFFFF))
        mq_put32(raw + size + 2, <int32_t><uint32_t>(salt & 0xFFFFFFFF))
        self.prefix_size = 2 * (size + 6)
        mq_hex(self.prefix, raw, size + 6)
        self.counter = counter & 0xFFFF
        self.start = self.next_month = 0

    cdef Py_ssize_t put(self, int64_t now_ms, uint8_t *out) noexcept:
        """Write the next key; gives its size, 32 or 56."""
        cdef uint8_t[6] raw
        cdef int64_t since
        if now_ms >= self.next_month:
            mq_month(now_ms // 1000, &self.start, &self.next_month)
            self.start *= 1000
            self.next_month *= 1000
        since = now_ms - self.start
        if LATE < since < 0:
            since = 0
        mq_put32(raw, <int32_t><uint32_t>since)  # no mask: its constant would make it a Python int
        mq_put16(raw + 4, <int16_t><uint16_t>(self.counter & 0xFFFF))
        self.counter += 1
        memcpy(out, self.prefix, self.prefix_size)
        mq_hex(out + self.prefix_size, raw, 6)
        return self.prefix_size + 12

    def next(self, int64_t now_ms):
        """The next key, upper-case hex."""
        cdef uint8_t[56] key
        return mq_text(key, self.put(now_ms, key))


cdef int unhex(object text, str what, uint8_t *out) except -1:
    """Gives the size, 16 or 28 bytes."""
    cdef Run run = utf8_of(text)
    cdef int high
    cdef Py_ssize_t place
    if run.size == 32 or run.size == 56:
        for place in range(0, run.size, 4):
            high = hex4(run.at + place)
            if high < 0:
                break
            mq_put16(out + place // 2, <int16_t><uint16_t>high)
        else:
            return <int>(run.size // 2)
    raise ConfigError(f"{text!r} is no {what}")


def parse_unique_key(text not None):
    """(ip, pid, salt, ms since the month began, counter)."""
    cdef uint8_t[28] raw
    cdef int size = unhex(text, "unique key", raw) - 12
    cdef uint8_t *at = raw + size
    return (
        PyBytes_FromStringAndSize(<const char *>raw, size),
        <uint16_t>mq_be16(at),
        <uint32_t>mq_be32(at + 2),
        <uint32_t>mq_be32(at + 6),
        <uint16_t>mq_be16(at + 10),
    )


def offset_id(str host not None, port, physical_offset):
    """The broker's id of a message."""
    cdef uint8_t[28] raw
    cdef uint8_t[56] text
    cdef int size = parse_ip(host, raw)
    mq_put32(raw + size, fit32(port, "port"))
    mq_put64(raw + size + 4, fit64(physical_offset, "physical_offset"))
    mq_hex(text, raw, size + 12)
    return mq_text(text, 2 * (size + 12))


cdef uint32_t largest(const uint32_t *numbers, Py_ssize_t count) noexcept nogil:
    cdef uint32_t most = 0
    cdef Py_ssize_t place
    for place in range(count):
        most = max(most, numbers[place])
    return most


def offset_ids(str host not None, port, physical_offset, bytes ends not None):
    """The broker's ids of messages that lie in a row from there on, with commas between."""
    cdef uint8_t[28] raw
    cdef int size = parse_ip(host, raw) + 12
    cdef int64_t start = fit64(physical_offset, "physical_offset"), place = start
    cdef const uint32_t *end = <const uint32_t *>PyBytes_AS_STRING(ends)
    cdef Py_ssize_t count = PyBytes_GET_SIZE(ends) // 4, number
    cdef str out
    cdef uint8_t *at
    mq_put32(raw + size - 12, fit32(port, "port"))
    if PyBytes_GET_SIZE(ends) % 4 or overflows(start, 0xFFFFFFFF) and overflows(start, largest(end, count)):
        raise ConfigError(f"{count} messages behind {start}: their ends do not fit offset ids")
    if not count:
        return ""
    out = PyUnicode_New(count * (2 * size + 1) - 1, 127)
    at = <uint8_t *>PyUnicode_1BYTE_DATA(out)
    for number in range(count):
        mq_put64(raw + size - 8, place)
        mq_hex(at, raw, size)
        at += 2 * size
        if number < count - 1:
            at[0] = c','
        at += 1
        place = start + end[number]
    return out


def parse_offset_id(text not None):
    """(host, port, physical offset)."""
    cdef uint8_t[28] raw
    cdef int size = unhex(text, "offset id", raw) - 12
    return ip_text(raw, size), mq_be32(raw + size), mq_be64(raw + size + 4)
