# Messages: a batch is the records of one walk; a message is made from its record when asked for.

cdef extern from "crc.h":
    uint32_t mq_crc32(uint32_t crc, const uint8_t *p, size_t n) nogil

cdef extern from *:
    """
    #ifdef _WIN32
    #include <ws2tcpip.h>
    #else
    #include <arpa/inet.h>
    #include <sys/socket.h>
    #endif
    #define MQ_IP_TEXT 64
    """
    enum:
        AF_INET
        AF_INET6
        MQ_IP_TEXT
    const char *inet_ntop(int family, const void *ip, char *out, unsigned int room) nogil
    int inet_pton(int family, const char *text, void *out) nogil

cdef enum:
    MOST_BODIES = 64 * 1024 * 1024

MAX_BODIES = MOST_BODIES

cdef PyObject *topic_memo = NULL


cdef str ip_text(const uint8_t *ip, Py_ssize_t size):
    cdef char[MQ_IP_TEXT] text
    inet_ntop(AF_INET if size == 4 else AF_INET6, ip, text, MQ_IP_TEXT)
    return (<bytes>text).decode()


cdef str host_text(const uint8_t *ip, Py_ssize_t size):
    cdef str text = ip_text(ip, size)
    return f"{text}:{mq_be32(ip + size)}" if size == 4 else f"[{text}]:{mq_be32(ip + size)}"


cdef str record_offset_id(const Record *r):
    cdef uint8_t[28] raw
    cdef uint8_t[56] text
    cdef Py_ssize_t size = store_ip_size(r) + 4
    memcpy(raw, store_of(r) + 8, size)
    memcpy(raw + size, r.head + AT_PHYSICAL, 8)
    mq_hex(text, raw, size + 8)
    return mq_text(text, 2 * (size + 8))


cdef inline bint find(const Record *r, const char *name, int size, mq_entry *entry) noexcept nogil:
    return mq_find_entry(r.text, r.text_size, name, size, entry)


cdef str record_topic(const Record *r, bint retry_topic):
    cdef mq_entry entry
    if retry_topic and find(r, b"RETRY_TOPIC", 11, &entry):
        return mq_text_memo(&topic_memo, entry.value, entry.value_size, 127)
    return mq_text_memo(&topic_memo, r.topic, r.topic_size, 127)


cdef tuple split_keys(const uint8_t *at, const uint8_t *end):
    """The keys of a KEYS value: what is between blanks."""
    cdef const uint8_t *stop = <const uint8_t *>memchr(at, 0x20, end - at)
    cdef list keys
    if stop == NULL:
        return (mq_text(at, end - at),)
    keys = []
    while True:
        if stop > at:
            keys.append(mq_text(at, stop - at))
        if stop == end:
            return tuple(keys)
        at = stop + 1
        stop = <const uint8_t *>memchr(at, 0x20, end - at)
        if stop == NULL:
            stop = end


cdef str record_tag(const Record *r):
    cdef mq_entry entry
    return tag_text(entry.value, entry.value_size) if find(r, b"TAGS", 4, &entry) else None


cdef tuple record_keys(const Record *r):
    cdef mq_entry entry
    return split_keys(entry.value, entry.value + entry.value_size) if find(r, b"KEYS", 4, &entry) else ()


cdef bytes body_of(Message message):
    if message.content is None:
        message.content = PyBytes_FromStringAndSize(<const char *>message.r.body, message.r.body_size)
    return message.content


@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class Message:
    """A stored message, read-only."""
    cdef MessageBatch batch
    cdef const Record *r  # among the batch's
    cdef bytes content
    cdef dict decoded

    def __getattribute__(self, name):
        """What is read of nearly every message is known by the identity of its (interned) name: half the cost of the
        generic lookup, 6 of 12 ns."""
        if name is "body":
            return body_of(self)
        if name is "tag":
            return record_tag(self.r)
        if name is "offset":
            return record_offset(self.r) + self.batch.delta
        if name is "keys":
            return record_keys(self.r)
        if name is "born_at":
            return mq_be64(self.r.head + AT_BORN)
        return PyObject_GenericGetAttr(self, name)

    @property
    def body(self):
        return body_of(self)

    @property
    def view(self):
        cdef const uint8_t *start = <const uint8_t *>PyBytes_AS_STRING(self.batch.owner)
        if self.r.state == DECOMPRESSED:
            return memoryview(self.body)
        return memoryview(self.batch.owner)[self.r.body - start:self.r.body - start + self.r.body_size]

    @property
    def topic(self):
        return record_topic(self.r, self.batch.retry_topic)

    @property
    def queue(self):
        return self.batch.queue

    @property
    def queue_id(self):
        return mq_be32(self.r.head + AT_QUEUE_ID)

    @property
    def offset(self):
        return record_offset(self.r) + self.batch.delta

    @property
    def physical_offset(self):
        return mq_be64(self.r.head + AT_PHYSICAL)

    @property
    def flag(self):
        return record_flag(self.r)

    @property
    def sys_flag(self):
        return sys_flag_of(self.r)

    @property
    def born_at(self):
        return mq_be64(self.r.head + AT_BORN)

    @property
    def stored_at(self):
        return mq_be64(store_of(self.r))

    @property
    def born_host(self):
        cdef Py_ssize_t size = 16 if mq_be32(self.r.head + AT_SYS_FLAG) & BORN_IPV6 else 4
        return host_text(self.r.head + AT_BORN_HOST, size)

    @property
    def store_host(self):
        return host_text(store_of(self.r) + 8, store_ip_size(self.r))

    @property
    def attempts(self):
        return record_attempts(self.r)

    @property
    def prepared_transaction_offset(self):
        return mq_be64(attempts_of(self.r) + 4)

    @property
    def body_crc(self):
        return record_crc(self.r)

    @property
    def size(self):
        return self.r.body_size

    @property
    def stored_size(self):
        return mq_be32(self.r.head)

    @property
    def compressed(self):
        return self.r.state == STILL_COMPRESSED

    @property
    def compression(self):
        return compression_of(mq_be32(self.r.head + AT_SYS_FLAG))

    @property
    def tag(self):
        return record_tag(self.r)

    @property
    def key(self):
        cdef mq_entry entry
        return mq_text(entry.value, entry.value_size) if find(self.r, b"KEYS", 4, &entry) else None

    @property
    def keys(self):
        return record_keys(self.r)

    @property
    def properties(self):
        if self.decoded is None:
            self.decoded = text_to_dict(self.r.text, self.r.text_size)
        return self.decoded

    @property
    def properties_text(self):
        return PyBytes_FromStringAndSize(<const char *>self.r.text, self.r.text_size)

    @property
    def message_id(self):
        cdef mq_entry entry
        if find(self.r, b"UNIQ_KEY", 8, &entry):
            return mq_text(entry.value, entry.value_size)
        return record_offset_id(self.r)

    @property
    def offset_id(self):
        return record_offset_id(self.r)

    @property
    def transaction_id(self):
        cdef mq_entry entry
        if find(self.r, b"__transactionId__", 17, &entry) or find(self.r, b"UNIQ_KEY", 8, &entry):
            return mq_text(entry.value, entry.value_size)
        return None

    def property(self, str name not None, default=None):
        """One property, without building the dict."""
        cdef mq_entry entry
        cdef Run run
        if self.decoded is not None or not PyUnicode_IS_COMPACT_ASCII(name):
            return self.properties.get(name, default)
        run = utf8_of(name)
        if run.size == 0 or run.size > MOST_TEXT or mq_separates(run.at, run.size):
            return default
        if find(self.r, <const char *>run.at, <int>run.size, &entry):
            return mq_text(entry.value, entry.value_size)
        return default

    def __repr__(self):
        where = f"queue_id={self.queue_id} offset={self.offset}"
        return f"<Message topic={self.topic!r} {where} body={self.r.body_size} bytes>"


not_made_by_hand(<PyTypeObject *>Message)


cdef Message make_message(MessageBatch batch, const Record *r):
    cdef Message message = Message.__new__(Message)
    message.batch = batch
    message.r = r
    return message


@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class MessageBatch:
    """The messages of one reply; holds what they point into."""
    cdef bytes owner
    cdef list kept  # decompressed bodies
    cdef readonly object queue
    cdef readonly Py_ssize_t scanned
    cdef Records records
    cdef int64_t delta
    cdef bint retry_topic

    def __dealloc__(self):
        drop_records(&self.records)

    def __len__(self):
        return self.records.count

    def __getitem__(self, index):
        cdef Py_ssize_t place
        if isinstance(index, slice):
            return self.part(index)
        place = index
        if place < 0:
            place += self.records.count
        if not 0 <= place < self.records.count:
            raise IndexError("batch index out of range")
        return make_message(self, &self.records.first[place])

    def __iter__(self):
        cdef MessageIterator iterator = MessageIterator.__new__(MessageIterator)
        iterator.batch = self
        return iterator

    cdef MessageBatch part(self, slice index):
        cdef MessageBatch batch = MessageBatch.__new__(MessageBatch)
        cdef Py_ssize_t start, stop, step, at
        start, stop, step = index.indices(self.records.count)
        batch.owner, batch.kept, batch.queue = self.owner, self.kept, self.queue
        batch.scanned, batch.delta, batch.retry_topic = self.scanned, self.delta, self.retry_topic
        for at in range(start, stop, step):
            if batch.records.count == batch.records.room:
                more_records(&batch.records, 2 * batch.records.room + 16)
            batch.records.first[batch.records.count] = self.records.first[at]
            batch.records.count += 1
        return batch

    def index(self, value, Py_ssize_t start=0, Py_ssize_t stop=PY_SSIZE_T_MAX, /):
        """Sequence's, for completeness: a message is equal to nothing but itself, and made anew each time."""
        return list(self).index(value, start, stop)

    def count(self, value, /):
        """Sequence's, as `index`."""
        return list(self).count(value)

    @property
    def size(self):
        cdef Py_ssize_t at, size = 0
        for at in range(self.records.count):
            size += self.records.first[at].body_size
        return size

    @property
    def first_offset(self):
        cdef Py_ssize_t at
        cdef int64_t offset, lowest = -1
        for at in range(self.records.count):
            offset = record_offset(&self.records.first[at]) + self.delta
            if at == 0 or offset < lowest:
                lowest = offset
        return lowest

    @property
    def last_offset(self):
        cdef Py_ssize_t at
        cdef int64_t offset, highest = -1
        for at in range(self.records.count):
            offset = record_offset(&self.records.first[at]) + self.delta
            if at == 0 or offset > highest:
                highest = offset
        return highest

    @property
    def offsets(self):
        cdef Py_ssize_t at
        return [record_offset(&self.records.first[at]) + self.delta for at in range(self.records.count)]

    @property
    def sizes(self):
        cdef Py_ssize_t at
        return [self.records.first[at].body_size for at in range(self.records.count)]

    def columns(self, names=None, more=()):
        """As Arrow buffers; then the rows of `more` batches."""
        return make_columns(self, names, more)

    def to_arrow(self, names=None):
        return record_batch(self.columns(names), len(self))

    def __repr__(self):
        return f"<MessageBatch of {len(self)} messages, {self.size} bytes of bodies>"


not_made_by_hand(<PyTypeObject *>MessageBatch)


@cython.final
@cython.internal
@cython.no_gc
@cython.freelist(16)
cdef class MessageIterator:
    cdef MessageBatch batch
    cdef Py_ssize_t at

    def __iter__(self):
        return self

    def __next__(self):
        if self.at >= self.batch.records.count:
            raise StopIteration
        self.at += 1
        return make_message(self.batch, &self.batch.records.first[self.at - 1])

    def __length_hint__(self):
        return self.batch.records.count - self.at
