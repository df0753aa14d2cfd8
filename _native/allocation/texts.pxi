# Texts of queues and ring points, hashed many at a time.

cdef extern from "md5.h" nogil:
    enum: MQ_MD5_PADDING
    ctypedef struct mq_md5_text:
        const uint8_t *start
        size_t blocks
    size_t mq_md5_pad(uint8_t *text, size_t size)
    void mq_md5_heads(const mq_md5_text *texts, size_t count, uint64_t *heads)

cdef enum:
    MOST = 16           # texts per call: as many as the widest processor has lanes
    LONGEST_TAIL = 24   # a sign, 19 digits, a bracket


cdef extern from "Python.h":
    int PyUnicode_KIND(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    void *PyUnicode_DATA(object text)
    bint PyUnicode_CheckExact(object text)


cdef inline bint same_text(object one, object other) noexcept:
    """Equality of two texts without the detour over rich comparison."""
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(one)
    cdef int kind = PyUnicode_KIND(one)
    if size != PyUnicode_GET_LENGTH(other) or kind != PyUnicode_KIND(other):
        return False
    return memcmp(PyUnicode_DATA(one), PyUnicode_DATA(other), size * kind) == 0


cdef inline bint same_str(PyObject *one, str other) noexcept:
    return one == <PyObject *> other or (PyUnicode_CheckExact(<object> one) and same_text(<object> one, other))


@cython.final
@cython.internal
cdef class Texts:
    """Up to MOST texts, and the first 64 bits of the MD5 of each."""

    cdef uint64_t heads[MOST]
    cdef mq_md5_text texts[MOST]
    cdef size_t count
    cdef uint8_t *room      # MOST slots side by side
    cdef size_t slot        # bytes of each
    # the start of the texts of consecutive queues, which share topic and broker mostly
    cdef str topic
    cdef str broker
    cdef bytes prefix
    cdef dict prefixes

    def __cinit__(self):
        self.room = NULL
        self.slot = 0
        self.count = 0
        self.prefixes = {}
        self.start("", "")

    def __dealloc__(self):
        PyMem_Free(self.room)

    cdef inline void clear(self) noexcept:
        self.count = 0

    cdef inline void hash(self) noexcept:
        mq_md5_heads(self.texts, self.count, self.heads)

    cdef inline int add_numbered(self, bytes start, long long number, bint bracket) except -1:
        """`start` and then a decimal number, perhaps with a closing bracket."""
        cdef size_t size = len(start)
        if size + LONGEST_TAIL + MQ_MD5_PADDING > self.slot:
            self.grow(size + LONGEST_TAIL + MQ_MD5_PADDING)
        cdef uint8_t *begin = self.room + self.count * self.slot
        memcpy(begin, <const char *> start, size)
        size += decimal(begin + size, number)
        if bracket:
            begin[size] = c"]"
            size += 1
        self.texts[self.count].start = begin
        self.texts[self.count].blocks = mq_md5_pad(begin, size)
        self.count += 1
        return 0

    cdef int grow(self, size_t least) except -1:
        """Larger slots; the texts that are already there move along."""
        cdef size_t place, slot = 2 * least
        cdef uint8_t *room = <uint8_t *> PyMem_Malloc(slot * MOST)
        if room == NULL:
            raise MemoryError
        for place in range(self.count):
            memcpy(room + place * slot, self.texts[place].start, self.slot)
            self.texts[place].start = room + place * slot
        PyMem_Free(self.room)
        self.room = room
        self.slot = slot
        return 0

    cdef int add_text(self, bytes text) except -1:
        cdef size_t size = len(text)
        if size + MQ_MD5_PADDING > self.slot:
            self.grow(size + MQ_MD5_PADDING)
        cdef uint8_t *begin = self.room + self.count * self.slot
        memcpy(begin, <const char *> text, size)
        self.texts[self.count].start = begin
        self.texts[self.count].blocks = mq_md5_pad(begin, size)
        self.count += 1
        return 0

    cdef inline int add_queue(self, PyObject *queue) except -1:
        """Java's toString of a queue."""
        if not PyTuple_Check(<object> queue) or PyTuple_GET_SIZE(<object> queue) < 3:
            raise TypeError("a queue is a tuple of topic, broker name and queue id")
        cdef PyObject *topic = PyTuple_GET_ITEM(<object> queue, 0)
        cdef PyObject *broker = PyTuple_GET_ITEM(<object> queue, 1)
        if not same_str(topic, self.topic) or not same_str(broker, self.broker):
            self.start(<object> topic, <object> broker)
        return self.add_numbered(self.prefix, <object> PyTuple_GET_ITEM(<object> queue, 2), True)

    cdef int start(self, object topic, object broker) except -1:
        cdef object key = (topic, broker)
        if not PyUnicode_CheckExact(topic) or not PyUnicode_CheckExact(broker):
            raise TypeError(f"topic and broker name of a queue are str: {key!r}")
        prefix = self.prefixes.get(key)
        if prefix is None:
            prefix = utf8(f"MessageQueue [topic={topic}, brokerName={broker}, queueId=")
            self.prefixes[key] = prefix
        self.topic = topic
        self.broker = broker
        self.prefix = prefix
        return 0


cdef bytes utf8(str text):
    """As Java encodes: a lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace")


cdef inline size_t decimal(uint8_t *begin, long long number) noexcept:
    cdef uint8_t digits[20]
    cdef size_t count = 0, size = 0
    cdef unsigned long long rest = <unsigned long long> number
    if number < 0:
        rest = 0 - rest
        begin[0] = c"-"
        size = 1
    while True:
        digits[count] = <uint8_t> (c"0" + rest % 10)
        count += 1
        rest //= 10
        if rest == 0:
            break
    while count:
        count -= 1
        begin[size] = digits[count]
        size += 1
    return size
