# Entries: the checksum and the metadata of what SEND and MESSAGE carry.

cdef enum:
    MAGIC_CHECKSUM = 0x0E01
    MAGIC_BROKER_ENTRY = 0x0E02


cdef bint read_sized(mq_cursor *c, Span *span) noexcept nogil:
    """What follows its own 32-bit size."""
    cdef const uint8_t *size = mq_skip(c, 4)
    cdef int64_t there = 0 if size == NULL else <uint32_t>mq_be32(size)
    span.at = NULL
    if size != NULL:
        span.at = mq_skip(c, there)
    span.size = 0 if span.at == NULL else there
    return span.at != NULL


cdef inline bint has_magic(const mq_cursor *c, uint32_t magic) noexcept nogil:
    return mq_left(c) >= 2 and <uint16_t>mq_be16(c.at) == magic


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class Entry:
    """One stored entry as it came in SEND or MESSAGE: checked, its metadata read, its payload as sent."""

    cdef public str topic
    cdef public object values
    cdef public MessageId first_chunk
    cdef public int64_t epoch
    cdef readonly int64_t consumer_id, ledger, entry
    cdef readonly int32_t partition, batch_index
    cdef readonly uint32_t redelivery_count
    cdef readonly tuple ack_set
    cdef bytes data  # what the spans below point into
    cdef frozenset compacted_left
    cdef int64_t consumer_epoch_, permits, broker_timestamp_, broker_index_
    cdef Meta m
    cdef Span stored_, metadata_, payload_

    def __cinit__(self):
        self.consumer_id = self.ledger = self.entry = self.partition = self.batch_index = -1
        self.m.num_messages = 1

    @staticmethod
    def from_stored(stored, /, int64_t ledger=-1, int64_t entry=-1, int32_t partition=-1):
        """An entry from the bytes that a broker keeps (`stored`)."""
        cdef Entry made = new_entry(bytes(stored), True)
        made.ledger = ledger
        made.entry = entry
        made.partition = partition
        return made

    cdef bint read(self, bint check_crc) except -1:
        """False if there is nothing to read, or checksum or metadata are bad."""
        cdef const uint8_t *at = <const uint8_t *>PyBytes_AS_STRING(self.data)
        cdef mq_cursor c = mq_open(at, at + PyBytes_GET_SIZE(self.data))
        cdef const uint8_t *crc
        cdef Span broker
        cdef bint good = True
        if has_magic(&c, MAGIC_BROKER_ENTRY):
            mq_skip(&c, 2)
            if not read_sized(&c, &broker) or not self.read_broker(broker):
                return False
        self.stored_.at = c.at
        self.stored_.size = mq_left(&c)
        if has_magic(&c, MAGIC_CHECKSUM):
            mq_skip(&c, 2)
            crc = mq_skip(&c, 4)
            if crc == NULL:
                return False
            if check_crc:
                good = mq_crc32c(0, c.at, <size_t>mq_left(&c)) == <uint32_t>mq_be32(crc)
        if not read_sized(&c, &self.metadata_):
            return False
        self.payload_.at = c.at
        self.payload_.size = mq_left(&c)
        if not read_metadata(self.metadata_, &self.m):
            self.forget()
            return False
        return good

    cdef bint read_broker(self, Span broker) noexcept:
        cdef mq_cursor c = mq_open(broker.at, broker.at + broker.size)
        cdef mq_field f
        while mq_next_field(&c, &f):
            if f.tag == 1 << 3:
                self.broker_timestamp_ = f.value
                self.m.has |= H_BROKER_TIME
            elif f.tag == 2 << 3:
                self.broker_index_ = f.value
                self.m.has |= H_BROKER_INDEX
        return not c.bad

    cdef void forget(self) noexcept:
        """The metadata of an entry whose metadata cannot be read."""
        cdef uint32_t kept = self.m.has & ~<uint32_t>H_OF_META
        memset(&self.m, 0, sizeof(Meta))
        self.m.has = kept | H_FORGOTTEN
        self.m.num_messages = 1

    cdef bint read_compacted(self) except -1:
        """The batch indexes that compaction left; False if malformed. Rare, so by a second look."""
        cdef mq_cursor c = mq_open(self.metadata_.at, self.metadata_.at + self.metadata_.size)
        cdef mq_field f
        cdef Span packed
        cdef list found = []
        while mq_next_field(&c, &f):
            if f.tag == 31 << 3:
                found.append(f.value)
            elif f.tag == (31 << 3 | DATA):
                hold(&packed, &f)
                if not add_words(packed, found):
                    return False
        self.compacted_left = frozenset([<int32_t><int64_t>value for value in found])
        return True

    @property
    def consumer_epoch(self):
        return self.consumer_epoch_ if self.m.has & H_EPOCH else None

    @property
    def charged(self):
        """Permits that the broker deducted."""
        return charged_of(self)

    @property
    def corrupt(self):
        return E_CHECKSUM if self.m.has & H_CORRUPT else None

    @property
    def broker_timestamp(self):
        return self.broker_timestamp_ if self.m.has & H_BROKER_TIME else None

    @property
    def broker_index(self):
        return self.broker_index_ if self.m.has & H_BROKER_INDEX else None

    @property
    def num_messages(self):
        return self.m.num_messages

    @property
    def batched(self):
        return self.m.has & H_BATCHED != 0

    @property
    def compression(self):
        return self.m.compression

    @property
    def uncompressed_size(self):
        return self.m.uncompressed_size

    @property
    def encrypted(self):
        return self.m.has & H_ENCRYPTED != 0

    @property
    def chunk_id(self):
        return self.m.chunk_id if self.m.has & H_CHUNK_ID else None

    @property
    def num_chunks(self):
        return self.m.num_chunks if self.m.has & H_NUM_CHUNKS else None

    @property
    def total_chunk_size(self):
        return self.m.total_chunk_size if self.m.has & H_CHUNK_SIZE else None

    @property
    def uuid(self):
        return span_text(self.m.uuid)

    @property
    def marker_type(self):
        return self.m.marker_type if self.m.has & H_MARKER else None

    @property
    def txn(self):
        """(most, least) bits"""
        return (self.m.txn_most, self.m.txn_least) if self.m.has & H_TXN else None

    @property
    def deliver_at(self):
        return self.m.deliver_at if self.m.has & H_DELIVER_AT else None

    @property
    def producer_name(self):
        return span_text(self.m.producer_name) or ""

    @property
    def sequence_id(self):
        return self.m.sequence_id

    @property
    def highest_sequence_id(self):
        return self.m.highest

    @property
    def published_at(self):
        return self.m.published_at

    @property
    def event_time(self):
        return self.m.event_time

    @property
    def partition_key(self):
        return span_text(self.m.partition_key)

    @property
    def key_b64(self):
        return self.m.has & H_KEY_B64 != 0

    @property
    def ordering_key(self):
        return span_bytes(self.m.ordering_key)

    @property
    def schema_version(self):
        return span_bytes(self.m.schema_version)

    @property
    def replicated_from(self):
        return span_text(self.m.replicated_from)

    @property
    def null_value(self):
        return self.m.has & H_NULL_VALUE != 0

    @property
    def properties(self):
        if self.m.has & H_FORGOTTEN:
            return {}
        return read_properties(self.metadata_, 4 << 3 | DATA)

    @property
    def metadata(self):
        """MessageMetadata as sent."""
        return span_bytes(self.metadata_) or b""

    @property
    def payload(self):
        """Compressed and encrypted as sent."""
        return memoryview(self.data or b"")[self.payload_at():self.payload_at() + self.payload_.size]

    cdef inline Py_ssize_t payload_at(self):
        return 0 if self.payload_.at == NULL else self.payload_.at - <const uint8_t *>PyBytes_AS_STRING(self.data)

    @property
    def stored(self):
        """Checksum, metadata and payload: what a broker keeps."""
        if self.data is not None and self.stored_.size == PyBytes_GET_SIZE(self.data):
            return self.data  # nearly always: no copy
        return span_bytes(self.stored_) or b""

    def __repr__(self):
        return f"<Entry {self.ledger}:{self.entry} of {self.m.num_messages} messages>"

    def __reduce__(self):
        raise TypeError("an entry cannot be pickled")


cdef Entry new_entry(bytes data, bint check_crc):
    """The entry in these bytes, corrupt if they are."""
    cdef Entry entry = Entry.__new__(Entry)
    entry.data = data
    if not entry.read(check_crc):
        entry.m.has |= H_CORRUPT
    if entry.m.has & H_COMPACTED and not entry.read_compacted():
        entry.forget()
        entry.m.has |= H_CORRUPT
    return entry


cdef int64_t charged_of(Entry entry) except -1:
    """Messages in the entry minus those that its ack set names as acknowledged."""
    cdef int64_t left = 0, bits, word
    cdef Py_ssize_t place
    if entry.m.has & H_PERMITS:
        return entry.permits
    if entry.ack_set is None:
        return entry.m.num_messages
    for place in range(len(entry.ack_set)):
        bits = entry.m.num_messages - 64 * place
        if bits <= 0:
            break
        word = entry.ack_set[place]
        left += popcount(<uint64_t>word if bits >= 64 else <uint64_t>word & ((<uint64_t>1 << bits) - 1))
    return left


cdef inline int popcount(uint64_t word) noexcept nogil:
    cdef int count = 0
    while word:
        word &= word - 1
        count += 1
    return count
