# Member lists seen before, with what was worked out from them.

cdef extern from "Python.h":
    object PySequence_Fast(object sequence, const char *message)
    Py_ssize_t PySequence_Fast_GET_SIZE(object sequence)
    PyObject **PySequence_Fast_ITEMS(object sequence)

cdef enum:
    KEPT_LISTS = 16

cdef list kept_lists = []   # most recent first


@cython.final
@cython.internal
cdef class Members:
    """A checked copy of a member list."""

    cdef list ids
    cdef str last_own          # asked for last, with its index
    cdef Py_ssize_t last_index
    cdef dict rings            # by number of virtual nodes; only the last
    cdef uint64_t *scores      # 64-bit hashes, for rendezvous

    def __cinit__(self, object ids):
        self.ids = list(ids)
        self.scores = NULL
        self.rings = {}
        for member in self.ids:
            if not PyUnicode_CheckExact(member):
                raise TypeError(f"member ids are str, not {type(member).__name__}")

    def __dealloc__(self):
        PyMem_Free(self.scores)

    cdef bint same(self, object ids) except -1:
        """Item by item, so that a list changed in place is noticed: by identity, else by content."""
        cdef Py_ssize_t size = PyList_GET_SIZE(self.ids), place
        if size != PySequence_Fast_GET_SIZE(ids):
            return False
        cdef PyObject **items = PySequence_Fast_ITEMS(ids)
        cdef PyObject **known = PySequence_Fast_ITEMS(self.ids)
        # a loop over objects counts references: 5 ns each from CPython 3.12 on, where that cannot be optimized away
        if memcmp(items, known, size * sizeof(PyObject *)) == 0:
            return True
        for place in range(size):
            if items[place] == known[place]:
                continue
            if not PyUnicode_CheckExact(<object> items[place]) or not same_text(
                <object> items[place], <object> known[place]
            ):
                return False
        return True

    cdef Py_ssize_t index(self, str own) except -2:
        """Of the first occurrence; -1 if `own` is no member."""
        cdef Py_ssize_t place
        if own is not self.last_own:
            self.last_index = -1
            for place in range(PyList_GET_SIZE(self.ids)):
                if same_text(<object> PyList_GET_ITEM(self.ids, place), own):
                    self.last_index = place
                    break
            self.last_own = own
        return self.last_index


cdef Members known(object ids):
    """The members seen before, or new ones; the most recent list comes first."""
    cdef object sequence = PySequence_Fast(ids, "members are a list or a tuple of ids")
    cdef Members members
    cdef Py_ssize_t place
    if PySequence_Fast_GET_SIZE(sequence) == 0:
        raise ConfigError("there are no members to share the queues")
    for place in range(PyList_GET_SIZE(kept_lists)):
        members = <Members> PyList_GET_ITEM(kept_lists, place)
        if members.same(sequence):
            if place:
                del kept_lists[place]
                kept_lists.insert(0, members)
            return members
    members = Members(sequence)
    kept_lists.insert(0, members)
    del kept_lists[KEPT_LISTS:]
    return members


def repeated(members, /):
    """The ids that occur more than once, each once, in the order of their first occurrence."""
    cdef dict counts = {}
    for member in members:
        counts[member] = counts.get(member, 0) + 1
    return [member for member, count in counts.items() if count > 1]
