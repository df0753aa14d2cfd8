# MessageMetadata: what is needed to charge, to route and to show, in one pass.

cdef enum:  # Meta.has
    H_BATCHED = 1
    H_CHUNK_ID = 2
    H_NUM_CHUNKS = 4
    H_CHUNK_SIZE = 8
    H_MARKER = 16
    H_DELIVER_AT = 32
    H_TXN = 64
    H_ENCRYPTED = 128
    H_KEY_B64 = 256
    H_NULL_VALUE = 512
    H_NULL_KEY = 1024
    H_COMPACTED = 2048
    H_BROKER_TIME = 4096
    H_BROKER_INDEX = 8192
    H_EPOCH = 16384
    H_PERMITS = 32768
    H_CORRUPT = 65536
    H_FORGOTTEN = 131072
    H_OF_META = 4095  # what a malformed metadata forgets

cdef struct Meta:
    uint32_t has
    int32_t num_messages, compression, chunk_id, num_chunks, total_chunk_size, marker_type
    uint32_t uncompressed_size
    int64_t sequence_id, highest, published_at, event_time, deliver_at, txn_least, txn_most
    Span producer_name, replicated_from, partition_key, uuid, schema_version, ordering_key


cdef inline void flag(Meta *m, uint32_t bit, bint on) noexcept nogil:
    m.has = m.has | bit if on else m.has & ~bit


cdef void take_number(Meta *m, uint32_t number, int64_t value) noexcept nogil:
    if number == 2:
        m.sequence_id = value
    elif number == 3:
        m.published_at = value
    elif number == 8:
        m.compression = <int32_t>value
    elif number == 9:
        m.uncompressed_size = <uint32_t>value
    elif number == 11:
        m.num_messages = <int32_t>value
        m.has |= H_BATCHED
    elif number == 12:
        m.event_time = value
    elif number == 17:
        flag(m, H_KEY_B64, value != 0)
    elif number == 19:
        m.deliver_at = value
        m.has |= H_DELIVER_AT
    elif number == 20:
        m.marker_type = <int32_t>value
        m.has |= H_MARKER
    elif number == 22:
        m.txn_least = value
        m.has |= H_TXN
    elif number == 23:
        m.txn_most = value
        m.has |= H_TXN
    elif number == 24:
        m.highest = value
    elif number == 25:
        flag(m, H_NULL_VALUE, value != 0)
    elif number == 27:
        m.num_chunks = <int32_t>value
        m.has |= H_NUM_CHUNKS
    elif number == 28:
        m.total_chunk_size = <int32_t>value
        m.has |= H_CHUNK_SIZE
    elif number == 29:
        m.chunk_id = <int32_t>value
        m.has |= H_CHUNK_ID
    elif number == 30:
        flag(m, H_NULL_KEY, value != 0)
    elif number == 31:
        m.has |= H_COMPACTED


cdef void take_data(Meta *m, mq_field *f) noexcept nogil:
    cdef uint32_t number = f.tag >> 3
    if number == 1:
        hold(&m.producer_name, f)
    elif number == 5:
        hold(&m.replicated_from, f)
    elif number == 6:
        hold(&m.partition_key, f)
    elif 13 <= number <= 15:
        m.has |= H_ENCRYPTED
    elif number == 16:
        hold(&m.schema_version, f)
    elif number == 18:
        hold(&m.ordering_key, f)
    elif number == 26:
        hold(&m.uuid, f)
    elif number == 31:
        m.has |= H_COMPACTED


cdef bint read_metadata(Span from_, Meta *m) noexcept nogil:
    """MessageMetadata; False if it is malformed or says that it holds less than one message."""
    cdef mq_cursor c = mq_open(from_.at, from_.at + from_.size)
    cdef mq_field f
    while mq_next_field(&c, &f):
        if f.tag & 7 == NUMBER:
            take_number(m, f.tag >> 3, f.value)
        elif f.tag & 7 == DATA:
            take_data(m, &f)
    return not c.bad and not (m.has & H_BATCHED and m.num_messages < 1)
