# Many entries at once: what one read brought for one consumer, as long as nothing about it has to be decided.


def take_run(list events not None, Py_ssize_t at, /):
    """The entries of the MESSAGE events from `at` on that are for one consumer and come in a row."""
    cdef list run = []
    cdef int64_t consumer = 0
    cdef Entry entry
    while at < len(events):
        event = events[at]
        if type(event) is not tuple or len(<tuple>event) != 2 or type((<tuple>event)[1]) is not Entry:
            break
        entry = <Entry>(<tuple>event)[1]
        if run and entry.consumer_id != consumer:
            break
        consumer = entry.consumer_id
        run.append(entry)
        at += 1
    return run


def decode_run(list entries not None, Py_ssize_t at, str topic, int64_t epoch, int64_t ledger, int64_t until, /):
    """Messages, permits and following place of the plain entries from `at` on; see the stub."""
    cdef list messages = []
    cdef int64_t charged = 0
    cdef Entry entry
    cdef Py_ssize_t before
    while at < len(entries):
        entry = <Entry?>entries[at]
        if entry.m.has & (H_CORRUPT | H_ENCRYPTED | H_CHUNK_ID | H_PERMITS) or entry.m.compression != 0:
            break
        if entry.ack_set is not None or entry.data is None or (entry.ledger == ledger and entry.entry <= until):
            break
        before = len(messages)
        if entry.m.has & H_BATCHED:
            if not add_batch(entry, messages):
                break
        else:
            messages.append(alone(entry))
        charged += len(messages) - before
        entry.topic = topic
        entry.epoch = epoch
        at += 1
    return messages, charged, at


cdef bint add_batch(Entry entry, list messages) except -1:
    """All messages of a plain batch; False, and none, if there are fewer than were charged."""
    cdef MessageBatch batch = decode_messages(entry)
    if batch.error >= 0 or batch.count != entry.m.num_messages:
        return False
    if messages:
        messages.extend(batch.all())
    else:
        messages[:] = batch.all()
    return True


cdef inline Message alone(Entry entry):
    """The message of a plain entry that is not batch-framed."""
    cdef Message message = Message.__new__(Message)
    message.entry = entry
    message.body = PyBytes_FromStringAndSize(<const char *>entry.payload_.at, <Py_ssize_t>entry.payload_.size)
    message.event_time = entry.m.event_time
    message.own_sequence = entry.m.sequence_id
    message.batch_index = -1
    message.flags = F_WHOLE
    if entry.m.has & H_NULL_VALUE:
        message.flags |= F_NULL_VALUE
    if entry.m.has & H_NULL_KEY:
        message.flags |= F_NULL_KEY
    return message
