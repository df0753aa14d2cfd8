# rendezvous: the member with the highest score for a queue owns it.

cdef inline uint64_t mixed(uint64_t value) noexcept nogil:
    """The finalizer of SplitMix64: every bit of the input moves half of the output."""
    value = (value ^ value >> 30) * <uint64_t> 0xBF58476D1CE4E5B9
    value = (value ^ value >> 27) * <uint64_t> 0x94D049BB133111EB
    return value ^ value >> 31


cdef inline bint wins(const uint64_t *scores, Py_ssize_t count, Py_ssize_t index, uint64_t queue) noexcept nogil:
    """Nobody has a higher score for the queue, nor an equal one further to the front. Most look at few others."""
    cdef uint64_t own = mixed(scores[index] ^ queue), other
    cdef Py_ssize_t place
    for place in range(count):
        other = mixed(scores[place] ^ queue)
        if other > own or (other == own and place < index):
            return False
    return True


cdef int score(Members members) except -1:
    """The 64-bit hash of each id, once."""
    cdef Py_ssize_t place, count = len(members.ids)
    cdef Texts texts = Texts()
    cdef uint64_t *scores = <uint64_t *> PyMem_Malloc(count * sizeof(uint64_t))
    if scores == NULL:
        raise MemoryError
    try:
        for place in range(count):
            texts.add_text(utf8(members.ids[place]))
            if texts.count == MOST or place == count - 1:
                texts.hash()
                memcpy(scores + place + 1 - texts.count, texts.heads, texts.count * sizeof(uint64_t))
                texts.clear()
        members.scores, scores = scores, members.scores
    finally:
        PyMem_Free(scores)
    return 0


cdef list rendezvous(object available, Members members, Py_ssize_t index):
    if members.scores == NULL:
        score(members)
    cdef list queues = list(available)   # ours: a finalizer that runs meanwhile may change the caller's
    cdef Py_ssize_t size = PyList_GET_SIZE(queues), start = 0, count = len(members.ids)
    cdef Texts texts = Texts()
    cdef size_t place
    cdef list share = []
    while start < size:
        texts.clear()
        while texts.count < MOST and start < size:
            texts.add_queue(PyList_GET_ITEM(queues, start))
            start += 1
        texts.hash()
        for place in range(texts.count):
            if wins(members.scores, count, index, texts.heads[place]):
                share.append(<object> PyList_GET_ITEM(queues, start - texts.count + place))
    return share
