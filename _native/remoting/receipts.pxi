# Where a broker put the messages of one request: a tuple for each of them.

cdef extern from *:
    """
    /* A tuple of a subclass; its items are still to be set. */
    static inline PyObject *mq_tuple_of(PyTypeObject *kind, Py_ssize_t size) { return kind->tp_alloc(kind, size); }
    """
    object mq_tuple_of(PyTypeObject *kind, Py_ssize_t size)

cdef int64_t MOST_OFFSET = 0x4000000000000000
cdef tuple ANSWER = ("queueId", "queueOffset", "msgId", "transactionId", "recallHandle")


cdef inline void set_item(object made, Py_ssize_t place, object item):
    Py_INCREF(item)
    PyTuple_SET_ITEM(made, place, item)


cdef object receipt(PyTypeObject *kind, object queue, object offset, object own, object theirs, object status,
                    object transaction, object handle):
    """As `tuple.__new__(kind, (queue, …))`."""
    cdef object made = mq_tuple_of(kind, 7)
    set_item(made, 0, queue)
    set_item(made, 1, offset)
    set_item(made, 2, own)
    set_item(made, 3, theirs)
    set_item(made, 4, status)
    set_item(made, 5, transaction)
    set_item(made, 6, handle)
    return made


cdef int64_t number_or(object text, int64_t otherwise) except? -1:
    """A number that a broker wrote; `otherwise` where it wrote none, or one that no queue comes near."""
    cdef int overflow
    cdef int64_t number
    if not text:
        return otherwise
    try:
        number = PyLong_AsLongLongAndOverflow(int(text), &overflow)
    except ValueError:
        return otherwise
    return number if overflow == 0 and -MOST_OFFSET < number < MOST_OFFSET else otherwise


def receipts(type kind not None, Frame answer not None, queue not None, ids not None, status not None):
    """One tuple of `kind` for each id: queue, offset, id, the broker's id of it, status, transaction, recall handle."""
    cdef PyTypeObject *made_of = <PyTypeObject *>kind
    cdef Py_ssize_t size = len(ids), place
    cdef object there, first, said, transaction, handle
    cdef list said_ids, made
    cdef int64_t own_queue_id = queue.queue_id, queue_id, offset
    if not issubclass(kind, tuple):
        raise TypeError(f"a kind of tuple is wanted, not {kind.__name__}")
    there, first, said, transaction, handle = answer.pick(ANSWER)
    queue_id, offset = number_or(there, own_queue_id), number_or(first, -1)
    if queue_id != own_queue_id:
        queue = queue._replace(queue_id=queue_id)
    if size == 1:
        return [receipt(made_of, queue, offset, ids[0], said or "", status, transaction, handle)]
    said_ids = (said or "").split(",")
    if len(said_ids) != size:
        said_ids = [""] * size
    made = []
    for place in range(size):
        made.append(receipt(made_of, queue, offset, ids[place], said_ids[place], status, None, None))
        if offset >= 0:
            offset += 1
    return made
