# Messages, and the batch that makes them when asked.

from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_INCREF

cdef enum:  # Item.flags, Message.flags
    F_NULL_VALUE = 1
    F_NULL_KEY = 2
    F_SEQUENCE = 4
    F_B64 = 8
    F_B64_SAID = 16
    F_GONE = 32
    F_WHOLE = 64  # not batch-framed: the entry's metadata is the message's
    F_ENCRYPTED = 128
    F_COMPRESSED = 256
    F_MORE = 512  # its metadata has keys or properties

cdef struct Item:
    int64_t sequence_id, event_time
    uint32_t metadata_at, metadata_size, body_at, body_size
    int32_t index
    uint16_t flags

cdef struct Tags:  # where key, ordering key and properties stand
    uint32_t key, ordering_key, properties

cdef Tags OF_ENTRY, OF_SINGLE
OF_ENTRY.key, OF_ENTRY.ordering_key, OF_ENTRY.properties = 6 << 3 | 2, 18 << 3 | 2, 4 << 3 | 2
OF_SINGLE.key, OF_SINGLE.ordering_key, OF_SINGLE.properties = 2 << 3 | 2, 7 << 3 | 2, 1 << 3 | 2


cdef Span find(Span metadata, uint32_t tag) noexcept nogil:
    """The last field of bytes with this tag."""
    cdef mq_cursor c = mq_open(metadata.at, metadata.at + metadata.size)
    cdef mq_field f
    cdef Span found
    found.at = NULL
    found.size = 0
    while mq_next_field(&c, &f):
        if f.tag == tag:
            hold(&found, &f)
    return found


@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class Message:
    """One message; made by `decode_messages` only."""

    cdef readonly bytes body
    cdef readonly Entry entry
    cdef bytes single  # SingleMessageMetadata, if it says more than sizes and numbers
    cdef readonly int64_t event_time
    cdef int64_t own_sequence
    cdef readonly int32_t batch_index
    cdef uint16_t flags

    __ack_id__ = PyCapsule_New(<void *>tell_ack_id, ACK_ID_CAPSULE, NULL)
    __class_getitem__ = classmethod(GenericAlias)

    cdef inline Span metadata(self):
        """What key and properties are read from."""
        cdef Span own
        own.at = NULL
        own.size = 0
        if self.flags & F_WHOLE:
            return self.entry.metadata_
        if self.single is not None:
            own.at = <const uint8_t *>PyBytes_AS_STRING(self.single)
            own.size = PyBytes_GET_SIZE(self.single)
        return own

    cdef inline Tags *tags(self) noexcept:
        return &OF_ENTRY if self.flags & F_WHOLE else &OF_SINGLE

    cdef inline Span wire_key(self):
        cdef Span none
        none.at = NULL
        none.size = 0
        return none if self.flags & F_NULL_KEY else find(self.metadata(), self.tags().key)

    @property
    def message_id(self):
        cdef MessageId made = MessageId.__new__(MessageId)
        made.ledger = self.entry.ledger
        made.entry = self.entry.entry
        made.partition = self.entry.partition
        made.batch_index = self.batch_index
        made.batch_size = self.entry.m.num_messages if self.batch_index >= 0 else 0
        made.first_chunk = self.entry.first_chunk
        return made

    @property
    def key(self):
        """The partition key as on the wire."""
        return span_text(self.wire_key())

    @property
    def partition_key(self):
        """Another name of `key`."""
        return span_text(self.wire_key())

    @property
    def key_bytes(self):
        """The key with its base64 undone, if it was given as bytes."""
        cdef Span key = self.wire_key()
        if key.at == NULL:
            return None
        cdef bint b64 = self.flags & F_B64 if self.flags & F_B64_SAID else self.entry.m.has & H_KEY_B64
        cdef bytes undone = base64(key) if b64 else None
        return mq_text(key.at, key.size).encode() if undone is None else undone

    @property
    def ordering_key(self):
        return span_bytes(find(self.metadata(), self.tags().ordering_key))

    @property
    def properties(self):
        """A dict of one's own at each access; of a key that occurs twice the last value."""
        return read_properties(self.metadata(), self.tags().properties)

    @property
    def published_at(self):
        return self.entry.m.published_at

    @property
    def sequence_id(self):
        return self.own_sequence

    @property
    def producer_name(self):
        return self.entry.producer_name

    @property
    def redeliveries(self):
        return self.entry.redelivery_count

    @property
    def null_value(self):
        return self.flags & F_NULL_VALUE != 0

    @property
    def compacted_out(self):
        return self.flags & F_GONE != 0

    @property
    def schema_version(self):
        return self.entry.schema_version

    @property
    def value(self):
        """By the consumer's schema; without one the body, or None for a null value."""
        if self.entry.values is not None:
            return self.entry.values(self)
        return None if self.flags & F_NULL_VALUE else self.body

    @property
    def index(self):
        """From the broker entry metadata, which holds that of the last message."""
        cdef Entry entry = self.entry
        if not entry.m.has & H_BROKER_INDEX:
            return None
        cdef object last = entry.broker_index_  # a Python integer: a peer may have written any 64 bits
        return last if self.batch_index < 0 else last - entry.m.num_messages + self.batch_index + 1

    @property
    def topic(self):
        return self.entry.topic

    @property
    def compression(self):
        return self.entry.m.compression if self.flags & F_COMPRESSED else 0

    @property
    def encrypted(self):
        return self.flags & F_ENCRYPTED != 0

    def __repr__(self):
        return f"<Message {self.entry.ledger}:{self.entry.entry}:{self.batch_index}, {len(self.body)} bytes>"

    def __reduce__(self):
        raise TypeError("a message cannot be pickled")


cdef void tell_ack_id(PyObject *message, ack_id *into) noexcept:
    """See common/ack_id.pxd."""
    cdef Message one = <Message><object>message
    cdef Entry entry = one.entry
    into.ledger = entry.ledger
    into.entry = entry.entry
    into.batch_index = one.batch_index
    into.batch_size = entry.m.num_messages
    into.holder = <PyObject *>entry if entry.ack_set is not None else NULL


cdef int base64_digit(uint8_t c) noexcept nogil:
    if c'A' <= c <= c'Z':
        return c - c'A'
    if c'a' <= c <= c'z':
        return c - c'a' + 26
    if c'0' <= c <= c'9':
        return c - c'0' + 52
    return 62 if c == c'+' else 63 if c == c'/' else -1


cdef bytes base64(Span text):
    """What standard base64 stands for; None if it is not that."""
    cdef int64_t digits = text.size, place, at = 0
    cdef int digit, bits = 0
    cdef uint32_t gathered = 0
    if text.size % 4:
        return None
    while digits > 0 and text.size - digits < 2 and text.at[digits - 1] == c'=':
        digits -= 1
    cdef bytes out = PyBytes_FromStringAndSize(NULL, digits * 3 // 4)
    cdef uint8_t *into = <uint8_t *>PyBytes_AS_STRING(out)
    for place in range(digits):
        digit = base64_digit(text.at[place])
        if digit < 0:
            return None
        gathered = gathered << 6 | <uint32_t>digit
        bits += 6
        if bits >= 8:
            bits -= 8
            into[at] = <uint8_t>(gathered >> bits)
            at += 1
    return out


@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class MessageBatch:
    """The messages of one entry that are to be delivered, made when asked for."""

    cdef readonly Entry entry
    cdef readonly int64_t compacted, lost
    cdef bytes data  # what the items point into
    cdef const uint8_t *base
    cdef Item *items
    cdef Item one  # `items` of what is not batch-framed
    cdef Py_ssize_t count
    cdef int error  # -1 or a ValidationError

    def __cinit__(self):
        self.error = -1

    def __dealloc__(self):
        if self.items != &self.one:
            free(self.items)

    @property
    def corrupt(self):
        """None, or the ValidationError with which to acknowledge the entry."""
        return None if self.error < 0 else self.error

    def __len__(self):
        return self.count

    def __getitem__(self, index, /):
        if isinstance(index, slice):
            return self.some(index)
        cdef Py_ssize_t place = index
        if place < 0:
            place += self.count
        if not 0 <= place < self.count:
            raise IndexError("the batch has no such message")
        return self.make(&self.items[place])

    def __iter__(self):
        return iter(self.all())

    cdef list some(self, part):
        start, stop, step = part.indices(self.count)
        if start == 0 and stop == self.count and step == 1:
            return self.all()
        return [self.make(&self.items[<Py_ssize_t>place]) for place in range(start, stop, step)]

    cdef list all(self):
        cdef list made = PyList_New(self.count)
        cdef Py_ssize_t place
        cdef Message message
        for place in range(self.count):
            message = self.make(&self.items[place])
            Py_INCREF(message)
            PyList_SET_ITEM(made, place, message)
        return made

    cdef inline Message make(self, Item *item):
        cdef Message message = Message.__new__(Message)
        message.entry = self.entry
        message.body = PyBytes_FromStringAndSize(<const char *>self.base + item.body_at, item.body_size)
        message.event_time = item.event_time
        message.own_sequence = item.sequence_id
        message.batch_index = item.index
        message.flags = item.flags
        if item.flags & F_MORE:
            message.single = PyBytes_FromStringAndSize(
                <const char *>self.base + item.metadata_at, item.metadata_size
            )
        return message

    def columns(self, names=None, more=()):
        """The columns asked for (all: `COLUMNS`) as Arrow buffers, one row a message; then those of `more` batches."""
        cdef list batches = [self, *more]
        for batch in batches:
            if type(batch) is not MessageBatch:
                raise TypeError(f"more columns come of MessageBatches, not of {type(batch).__name__}")
        return make_columns(batches, names)
