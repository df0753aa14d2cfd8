# Walking a pull reply's body: every length checked once, every message noted as a record of pointers.

cdef enum:
    MAGIC_V1 = -626843481
    MAGIC_V2 = -626843477  # topic length takes two bytes
    COMPRESSED = 0x1  # bits of sysFlag
    BORN_IPV6 = 0x10
    STORE_IPV6 = 0x20
    INNER_BATCH = 0xC0
    COMPRESSION_SHIFT = 8
    ZLIB = 3
    SMALLEST = 91  # bytes of a message without body, topic and properties
    AT_CRC = 8  # byte positions in a stored message
    AT_QUEUE_ID = 12
    AT_FLAG = 16
    AT_OFFSET = 20
    AT_PHYSICAL = 28
    AT_SYS_FLAG = 36
    AT_BORN = 40
    AT_BORN_HOST = 48

cdef enum State:
    AS_STORED, STILL_COMPRESSED, DECOMPRESSED


cdef enum:
    MOST_SPARE = 4096


cdef struct Record:
    const uint8_t *head  # the stored message, 91 bytes or more
    const uint8_t *body
    const uint8_t *topic
    const uint8_t *text  # properties
    uint32_t body_size
    uint16_t topic_size
    uint16_t text_size
    int32_t element  # place in an inner batch; -1: a message of its own
    int32_t state


cdef struct Records:
    Record *first
    Py_ssize_t count
    Py_ssize_t room


cdef Record *spare = NULL  # the records of a batch that is gone: mostly as many as the next one needs
cdef Py_ssize_t spare_room = 0


cdef void drop_records(Records *records) noexcept:
    global spare, spare_room
    if records.room > spare_room and records.room <= MOST_SPARE:
        PyMem_Free(spare)
        spare = records.first
        spare_room = records.room
    else:
        PyMem_Free(records.first)


cdef int first_records(Records *records, Py_ssize_t room) except -1:
    """Room for the first records."""
    global spare, spare_room
    if spare_room < room:
        return more_records(records, room)
    records.first = spare
    records.room = spare_room
    spare = NULL
    spare_room = 0
    return 0


cdef int more_records(Records *records, Py_ssize_t room) except -1:
    cdef Record *first = <Record *>PyMem_Realloc(records.first, room * sizeof(Record))
    if first == NULL:
        raise MemoryError
    records.first = first
    records.room = room
    return 0


cdef bint walk_message(mq_cursor *c, Record *r) noexcept nogil:
    """Note the next message and step over it; False if it is none."""
    cdef mq_cursor m = c[0]
    cdef const uint8_t *start = mq_skip(&m, AT_BORN)
    cdef const uint8_t *to_body
    cdef int32_t magic, sys_flag, size
    if start == NULL:
        return False
    mq_narrow(&m, start, mq_be32(start))
    magic = mq_be32(start + 4)
    sys_flag = mq_be32(start + AT_SYS_FLAG)
    size = 48 + (12 if sys_flag & BORN_IPV6 else 0) + (12 if sys_flag & STORE_IPV6 else 0)
    to_body = mq_skip(&m, size)  # times, hosts, attempts, transaction offset, size of the body
    if to_body == NULL:
        return False
    r.head = start
    r.body_size = mq_be32(to_body + size - 4)
    r.body = mq_skip(&m, <int32_t>r.body_size)
    r.topic_size = mq_i16(&m) if magic == MAGIC_V2 else mq_u8(&m)
    r.topic = mq_skip(&m, <int16_t>r.topic_size)
    r.text_size = mq_i16(&m)
    r.text = mq_skip(&m, <int16_t>r.text_size)
    r.element = -1
    r.state = STILL_COMPRESSED if sys_flag & COMPRESSED else AS_STORED
    c.at = m.end
    return not m.bad and (magic == MAGIC_V1 or magic == MAGIC_V2)


cdef bint walk_element(mq_cursor *c, Record *r) noexcept nogil:
    """Note the next element of a batch body and step over it; False if it is none."""
    cdef mq_cursor m = c[0]
    cdef const uint8_t *start = c.at
    cdef int32_t size = mq_i32(&m)
    mq_narrow(&m, start, size)
    mq_skip(&m, 12)  # magic, crc, flag
    r.body_size = mq_i32(&m)
    r.body = mq_skip(&m, <int32_t>r.body_size)
    r.text_size = mq_i16(&m)
    r.text = mq_skip(&m, <int16_t>r.text_size)
    c.at = m.end
    return not m.bad


cdef inline int32_t sys_flag_of(const Record *r) noexcept nogil:
    cdef int32_t sys_flag = mq_be32(r.head + AT_SYS_FLAG)
    return sys_flag & ~COMPRESSED if r.state == DECOMPRESSED else sys_flag


cdef int compression_of(int32_t sys_flag) noexcept nogil:
    """The kind a body is or was compressed with; a compressed one without a kind is an old client's zlib."""
    cdef int kind = sys_flag >> COMPRESSION_SHIFT & 7
    return ZLIB if kind == 0 and sys_flag & COMPRESSED else kind


cdef inline const uint8_t *store_of(const Record *r) noexcept nogil:
    """Where the store time is: behind the born host."""
    return r.head + (AT_BORN_HOST + (20 if mq_be32(r.head + AT_SYS_FLAG) & BORN_IPV6 else 8))


cdef inline Py_ssize_t store_ip_size(const Record *r) noexcept nogil:
    return 16 if mq_be32(r.head + AT_SYS_FLAG) & STORE_IPV6 else 4


cdef inline const uint8_t *attempts_of(const Record *r) noexcept nogil:
    return store_of(r) + 12 + store_ip_size(r)


cdef inline int32_t record_flag(const Record *r) noexcept nogil:
    return mq_be32(r.head + AT_FLAG) if r.element < 0 else mq_be32(r.body - 8)


cdef inline int32_t record_crc(const Record *r) noexcept nogil:
    return mq_be32(r.head + AT_CRC) if r.element < 0 else mq_be32(r.body - 12)


cdef inline int64_t record_offset(const Record *r) noexcept nogil:
    return mq_be64(r.head + AT_OFFSET) + (r.element if r.element > 0 else 0)


cdef inline int32_t record_attempts(const Record *r) noexcept nogil:
    return mq_be32(attempts_of(r)) if r.element < 0 else 0
