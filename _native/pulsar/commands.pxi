# Hot commands: from the bytes of a frame to its event. ProtocolError for bytes that are none.

cdef struct Id:  # MessageIdData, its first chunk left out
    int64_t ledger, entry
    int32_t partition, batch_index, batch_size


cdef void clear_id(Id *id) noexcept nogil:
    id.ledger = id.entry = id.partition = id.batch_index = -1
    id.batch_size = 0


cdef bint read_id(Span from_, Id *id, list words) except -1:
    """False if it is malformed; `words` None: nobody asks for the ack set."""
    cdef mq_cursor c = mq_open(from_.at, from_.at + from_.size)
    cdef mq_field f
    cdef Span packed
    while mq_next_field(&c, &f):
        if f.tag == 1 << 3:
            id.ledger = f.value
        elif f.tag == 2 << 3:
            id.entry = f.value
        elif f.tag == 3 << 3:
            id.partition = <int32_t>f.value
        elif f.tag == 4 << 3:
            id.batch_index = <int32_t>f.value
        elif f.tag == 6 << 3:
            id.batch_size = <int32_t>f.value
        elif f.tag == 5 << 3 and words is not None:
            words.append(f.value)
        elif f.tag == (5 << 3 | DATA):
            hold(&packed, &f)
            if not add_words(packed, [] if words is None else words):
                return False
    return not c.bad


cdef tuple send_event(Span command, Span rest, bint check_crc):
    cdef mq_cursor c = mq_open(command.at, command.at + command.size)
    cdef mq_field f
    cdef int64_t numbers[9]
    cdef uint32_t seen = 0, number
    memset(numbers, 0, sizeof(numbers))
    numbers[3] = 1
    while mq_next_field(&c, &f):
        number = f.tag >> 3
        if f.tag & 7 == NUMBER and number <= 8:
            numbers[number] = f.value
            seen |= <uint32_t>1 << number
    if c.bad or seen & 6 != 6:
        raise ProtocolError("SEND malformed, or without producer_id and sequence_id")
    return (
        T_SEND,
        numbers[1],
        numbers[2],
        <int32_t>numbers[3],
        numbers[6],
        numbers[7] != 0,
        numbers[8] != 0,
        (numbers[5], numbers[4]) if seen & 48 else None,
        new_entry(span_bytes(rest), check_crc),
    )


cdef tuple message_event(Span command, Span rest, bint check_crc):
    cdef mq_cursor c = mq_open(command.at, command.at + command.size)
    cdef mq_field f
    cdef Id id
    cdef Span part
    cdef list words = None
    cdef int64_t consumer = 0, epoch = 0, permits = 0
    cdef uint32_t redelivered = 0, seen = 0
    clear_id(&id)
    while mq_next_field(&c, &f):
        if f.tag == 1 << 3:
            consumer = f.value
            seen |= 1
        elif f.tag == (2 << 3 | DATA):
            hold(&part, &f)
            seen |= 2
            if not read_id(part, &id, None):
                raise ProtocolError("MESSAGE with a malformed message_id")
        elif f.tag == 3 << 3:
            redelivered = <uint32_t>f.value
        elif f.tag == 4 << 3:
            words = words if words is not None else []
            words.append(f.value)
        elif f.tag == (4 << 3 | DATA):
            hold(&part, &f)
            words = words if words is not None else []
            if not add_words(part, words):
                raise ProtocolError("MESSAGE with a malformed ack_set")
        elif f.tag == 5 << 3:
            epoch = f.value
            seen |= 4
        elif f.tag == 6 << 3:
            permits = <uint32_t>f.value
            seen |= 8
    if c.bad or seen & 3 != 3:
        raise ProtocolError("MESSAGE malformed, or without consumer_id and message_id")
    cdef Entry entry = new_entry(span_bytes(rest), check_crc)
    entry.consumer_id = consumer
    entry.ledger = id.ledger
    entry.entry = id.entry
    entry.partition = id.partition
    entry.batch_index = id.batch_index
    entry.redelivery_count = redelivered
    entry.ack_set = tuple(words) if words else None
    entry.consumer_epoch_ = epoch
    entry.permits = permits
    entry.m.has |= (H_EPOCH if seen & 4 else 0) | (H_PERMITS if seen & 8 else 0)
    return T_MESSAGE, entry


cdef tuple receipt_event(Span command):
    cdef mq_cursor c = mq_open(command.at, command.at + command.size)
    cdef mq_field f
    cdef Id id
    cdef Span part
    cdef int64_t producer = 0, sequence = 0, highest = -1
    cdef uint32_t seen = 0
    clear_id(&id)
    while mq_next_field(&c, &f):
        if f.tag == 1 << 3:
            producer = f.value
            seen |= 1
        elif f.tag == 2 << 3:
            sequence = f.value
            seen |= 2
        elif f.tag == (3 << 3 | DATA):
            hold(&part, &f)
            if not read_id(part, &id, None):
                raise ProtocolError("SEND_RECEIPT with a malformed message_id")
        elif f.tag == 4 << 3:
            highest = f.value
    if c.bad or seen != 3:
        raise ProtocolError("SEND_RECEIPT malformed, or without producer_id and sequence_id")
    return T_SEND_RECEIPT, producer, sequence, id.ledger, id.entry, highest


cdef enum:
    RECEIPT_MOST = 256  # bytes of a frame: none of a broker's is half so large


cdef struct Receipt:
    int64_t producer, number, ledger, entry


cdef bint read_receipt(const uint8_t *at, Py_ssize_t size, Receipt *receipt) noexcept nogil:
    """What follows a frame's size, if it is a SEND_RECEIPT as nearly all are; False: `read_command` says what it is."""
    cdef mq_cursor c = mq_open(at, at + size), inner
    cdef mq_field f
    cdef Span base, command, part
    cdef Id id
    cdef int32_t type
    cdef uint32_t seen = 0
    if not read_sized(&c, &base) or mq_left(&c) or not read_base(base, &type, &command) or type != T_SEND_RECEIPT:
        return False
    clear_id(&id)
    c = mq_open(command.at, command.at + command.size)
    while mq_next_field(&c, &f):
        if f.tag == 1 << 3:
            receipt.producer = f.value
            seen |= 1
        elif f.tag == 2 << 3:
            receipt.number = f.value
            seen |= 2
        elif f.tag == (3 << 3 | DATA):
            hold(&part, &f)
            inner = mq_open(part.at, part.at + part.size)
            while mq_next_field(&inner, &f):
                if f.tag == 1 << 3:
                    id.ledger = f.value
                elif f.tag == 2 << 3:
                    id.entry = f.value
                elif f.tag >> 3 == 5:
                    return False
            if inner.bad:
                return False
    receipt.ledger = id.ledger
    receipt.entry = id.entry
    return not c.bad and seen == 3


cdef tuple ack_event(Span command):
    cdef mq_cursor c = mq_open(command.at, command.at + command.size)
    cdef mq_field f
    cdef Id id
    cdef Span part
    cdef list ids = [], words
    cdef int64_t numbers[9]
    cdef uint32_t seen = 0, number
    memset(numbers, 0, sizeof(numbers))
    while mq_next_field(&c, &f):
        number = f.tag >> 3
        if f.tag & 7 == NUMBER and number <= 8:
            numbers[number] = f.value
            seen |= <uint32_t>1 << number
        elif f.tag == (3 << 3 | DATA):
            hold(&part, &f)
            clear_id(&id)
            words = []
            if not read_id(part, &id, words):
                raise ProtocolError("ACK with a malformed message_id")
            ids.append(
                (id.ledger, id.entry, id.partition, id.batch_index, tuple(words) if words else None, id.batch_size)
            )
    if c.bad or seen & 6 != 6:
        raise ProtocolError("ACK malformed, or without consumer_id and ack_type")
    return (
        T_ACK,
        numbers[1],
        <int32_t>numbers[2],
        ids,
        <int32_t>numbers[4] if seen & 16 else None,
        (numbers[7], numbers[6]) if seen & 192 else None,
        numbers[8] if seen & 256 else None,
    )


cdef tuple flow_event(Span command):
    cdef mq_cursor c = mq_open(command.at, command.at + command.size)
    cdef mq_field f
    cdef int64_t consumer = 0
    cdef uint32_t permits = 0, seen = 0
    while mq_next_field(&c, &f):
        if f.tag == 1 << 3:
            consumer = f.value
            seen |= 1
        elif f.tag == 2 << 3:
            permits = <uint32_t>f.value
            seen |= 2
    if c.bad or seen != 3:
        raise ProtocolError("FLOW malformed, or without consumer_id and messagePermits")
    return T_FLOW, consumer, permits


cdef bint read_base(Span base, int32_t *type, Span *command) noexcept nogil:
    """BaseCommand: its type, and the bytes of the field with the type's number; False if malformed."""
    cdef mq_cursor c = mq_open(base.at, base.at + base.size)
    cdef mq_field f
    type[0] = 0
    while mq_next_field(&c, &f):
        if f.tag == 1 << 3:
            type[0] = <int32_t>f.value
    if c.bad or type[0] < 2:
        return False
    command.at = base.at
    command.size = 0
    c = mq_open(base.at, base.at + base.size)
    while mq_next_field(&c, &f):
        if f.tag == (<uint32_t>type[0] << 3 | DATA):
            hold(command, &f)
    return True


cdef tuple read_command(Span base, Span rest, bint check_crc):
    """The event of a BaseCommand and of the bytes behind it in its frame."""
    cdef int32_t type
    cdef Span command
    if not read_base(base, &type, &command):
        raise ProtocolError("a frame that holds no command")
    if type == T_MESSAGE:
        return message_event(command, rest, check_crc)
    if type == T_SEND:
        return send_event(command, rest, check_crc)
    if type == T_SEND_RECEIPT:
        return receipt_event(command)
    if type == T_ACK:
        return ack_event(command)
    if type == T_FLOW:
        return flow_event(command)
    if type == T_PING or type == T_PONG:
        return (type,)
    return type, span_bytes(command)
