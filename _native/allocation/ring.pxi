# consistent_hash: a ring of points, and the stretches of it that are ours.

@cython.final
@cython.internal
cdef class Ring:
    """Points in order, each with the id that owns what lies before it."""

    cdef list points
    cdef list owners
    cdef Arcs arcs      # of the id asked for last

    cdef Arcs arcs_of(self, str own):
        if self.arcs is None or not same_text(self.arcs.own, own):
            self.arcs = Arcs(self, own)
        return self.arcs


@cython.final
@cython.internal
cdef class Arcs:
    """The stretches of the ring of 32-bit points that one id owns, in order; both ends belong to them."""

    cdef str own
    cdef uint32_t *first
    cdef uint32_t *last
    cdef Py_ssize_t count

    def __cinit__(self, Ring ring, str own):
        cdef Py_ssize_t place, size = len(ring.points)
        cdef uint32_t before = 0, point
        self.own = own
        self.count = 0
        self.first = <uint32_t *> PyMem_Malloc((size + 2) * 2 * sizeof(uint32_t))
        if self.first == NULL:
            raise MemoryError
        self.last = self.first + size + 2
        for place in range(size):
            point = ring.points[place]
            if same_text(ring.owners[place], own):
                self.add(before, point)
            before = point + 1
        if size and before and same_text(ring.owners[0], own):    # behind the last point the ring begins anew
            self.add(before, <uint32_t> 0xFFFFFFFF)

    def __dealloc__(self):
        PyMem_Free(self.first)

    cdef void add(self, uint32_t first, uint32_t last) noexcept:
        self.first[self.count] = first
        self.last[self.count] = last
        self.count += 1

    cdef inline bint have(self, uint32_t point) noexcept:
        """The first stretch that ends at the point or later is the only one that can have it."""
        cdef Py_ssize_t low = 0, half, left = self.count
        while left > 0:
            half = left >> 1
            if self.last[low + half] < point:
                low += half + 1
                left -= half + 1
            else:
                left = half
        return low < self.count and self.first[low] <= point


cdef Ring build_ring(list ids, Py_ssize_t virtual_nodes, object point_of):
    """Later points take the place of equal earlier ones; an id that comes again counts on from those it still has."""
    cdef dict owner_at = {}
    cdef set seen = set()
    cdef Texts texts = Texts()
    cdef Py_ssize_t first
    cdef Ring ring = Ring()
    for member in ids:
        first = 0
        if member in seen:
            first = sum([1 for owner in owner_at.values() if owner == member])
        seen.add(member)
        if point_of is None:
            add_points(owner_at, texts, member, first, virtual_nodes)
        else:
            for number in range(first, first + virtual_nodes):
                owner_at[point_of(f"{member}-{number}")] = member
    ring.points = sorted(owner_at)
    ring.owners = [owner_at[point] for point in ring.points]
    return ring


cdef int add_points(dict owner_at, Texts texts, str member, Py_ssize_t first, Py_ssize_t count) except -1:
    cdef bytes start = utf8(member + "-")
    cdef Py_ssize_t number = first, stop = first + count
    cdef size_t place
    while number < stop:
        texts.clear()
        while number < stop and texts.count < MOST:
            texts.add_numbered(start, number, False)
            number += 1
        texts.hash()
        for place in range(texts.count):
            owner_at[texts.heads[place] >> 32] = member
    return 0


cdef list consistent_hash(object available, Members members, str own, Py_ssize_t virtual_nodes, object point_of):
    if point_of is not None:
        return by_callable(available, build_ring(members.ids, virtual_nodes, point_of), own, point_of)
    ring = members.rings.get(virtual_nodes)
    if ring is None:
        ring = build_ring(members.ids, virtual_nodes, None)
        members.rings = {virtual_nodes: ring}
    cdef Arcs arcs = (<Ring> ring).arcs_of(own)
    cdef list queues = list(available)   # ours: a finalizer that runs meanwhile may change the caller's
    cdef Py_ssize_t size = PyList_GET_SIZE(queues), start = 0
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
            if arcs.have(texts.heads[place] >> 32):
                share.append(<object> PyList_GET_ITEM(queues, start - texts.count + place))
    return share


cdef list by_callable(object available, Ring ring, str own, object point_of):
    """With a hash of the caller's, whose numbers may be of any size."""
    cdef Py_ssize_t count = len(ring.points)
    cdef list share = []
    if count == 0:
        return share
    for queue in list(available):
        place = bisect_left(ring.points, point_of(text_of(queue)))
        if ring.owners[place % count] == own:
            share.append(queue)
    return share


cdef str text_of(object queue):
    if not PyTuple_Check(queue) or PyTuple_GET_SIZE(queue) < 3:
        raise TypeError("a queue is a tuple of topic, broker name and queue id")
    cdef long long number = queue[2]
    return "MessageQueue [topic=" + <str?> queue[0] + ", brokerName=" + <str?> queue[1] + f", queueId={number}]"
