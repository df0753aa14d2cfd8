# Those who wait for the receipts of one lane, in the order of their messages, and who of them reads. All of it but
# `shut` goes without the GIL; `guard` is held for a few steps only, and never while the GIL is waited for.

cdef extern from "pythread.h" nogil:
    ctypedef void *PyThread_type_lock
    ctypedef enum PyLockStatus:
        PY_LOCK_FAILURE
        PY_LOCK_ACQUIRED
        PY_LOCK_INTR
    PyThread_type_lock PyThread_allocate_lock()
    void PyThread_free_lock(PyThread_type_lock lock)
    bint PyThread_acquire_lock(PyThread_type_lock lock, int waits)
    PyLockStatus PyThread_acquire_lock_timed(PyThread_type_lock lock, int64_t microseconds, int signals)
    void PyThread_release_lock(PyThread_type_lock lock)
    unsigned long PyThread_get_thread_ident()

cdef enum:  # why somebody who waited comes back
    ROW_LANDED  # its receipt is there
    ROW_MOVED  # it has a slot: the lane was shut
    ROW_READY  # it is alone, and there is something to read
    ROW_MORE  # what it read was not all
    ROW_OTHER  # it read something else, or needs room to read
    ROW_SIGNAL
    ROW_SOON  # its message may not have been written yet
    ROW_LATE

cdef struct Waits:
    int64_t number, ledger, entry
    Waits *next  # behind it in the row
    Waits *after  # landed with it: whoever has the GIL again wakes the next one, as all at once would fight for it
    PyThread_type_lock bell  # taken, but for the moment between ringing and waking
    void *seat
    double read  # when it read last, if it did
    bint landed, moved, leads, asleep, left, counted


@cython.final
@cython.no_gc
cdef class _Seat:
    """One message without receipt, and the thread that waits for it."""

    cdef Waits it
    cdef bint inside
    cdef bytes frame
    cdef Py_ssize_t size
    cdef object slot

    def __cinit__(self):
        self.it.bell = PyThread_allocate_lock()
        if self.it.bell == NULL:
            raise MemoryError()
        PyThread_acquire_lock(self.it.bell, 1)
        self.it.seat = <void *>self

    def __dealloc__(self):
        if self.it.bell != NULL:
            PyThread_release_lock(self.it.bell)
            PyThread_free_lock(self.it.bell)


cdef struct SeatRow:
    PyThread_type_lock guard
    Waits *head
    Waits *tail
    int64_t producer, published
    double woken  # when receipts were read last
    int count, coming  # those in it, and those whose receipt is there and who have not got the GIL yet
    bint led  # somebody reads, or is told to


cdef void row_begin(SeatRow *row, Waits *it, int64_t number) noexcept nogil:
    """It is the last one in the row from now on."""
    it.number = number
    it.next = it.after = NULL
    it.read = 0
    it.landed = it.moved = it.leads = it.asleep = it.left = it.counted = False
    PyThread_acquire_lock(row.guard, 1)
    if row.tail == NULL:
        row.head = it
    else:
        row.tail.next = it
    row.tail = it
    row.count += 1
    PyThread_release_lock(row.guard)


cdef inline PyThread_type_lock rouse(Waits *it) noexcept nogil:
    """With the guard: the bell that is to be rung when it is let go; NULL: it looks by itself."""
    if it == NULL or not it.asleep:
        return NULL
    it.asleep = False
    return it.bell


cdef inline void ring(PyThread_type_lock bell) noexcept nogil:
    if bell != NULL:
        PyThread_release_lock(bell)


cdef PyThread_type_lock pass_on(SeatRow *row, Waits *it) noexcept nogil:
    """With the guard: it reads no more, the first one that still waits does. As `rouse`."""
    cdef Waits *next = row.head
    it.leads = False
    while next != NULL and next.left:
        next = next.next
    row.led = next != NULL
    if next == NULL:
        return NULL
    next.leads = True
    return rouse(next)


cdef bint row_land(SeatRow *row, const uint8_t *at, Py_ssize_t *start, Py_ssize_t *end, Waits *reads) noexcept nogil:
    """Receipts of the first ones; False if a frame is something else, which `start` is at then."""
    cdef Receipt receipt
    cdef Waits *it
    cdef Waits *last = NULL
    cdef PyThread_type_lock bell = NULL, leader = NULL
    cdef Waits *first = NULL
    cdef Py_ssize_t length
    cdef bint plain = True
    receipt.producer = receipt.number = -1
    PyThread_acquire_lock(row.guard, 1)
    while end[0] - start[0] >= 4:
        length = 4 + <Py_ssize_t><uint32_t>mq_be32(at + start[0])
        plain = row.head != NULL and 8 <= length <= RECEIPT_MOST
        if not plain or length > end[0] - start[0]:
            break
        plain = read_receipt(at + start[0] + 4, length - 4, &receipt)
        it = row.head
        if not plain or receipt.producer != row.producer or receipt.number != it.number or receipt.ledger < 0:
            plain = False
            break
        start[0] += length
        row.head = it.next
        if row.head == NULL:
            row.tail = NULL
        row.count -= 1
        row.published = it.number
        it.ledger = receipt.ledger
        it.entry = receipt.entry
        it.landed = True
        if it.left:
            continue
        it.counted = True
        row.coming += 1
        if it == reads:
            continue
        if last == NULL:
            first = it
        else:
            last.after = it
        last = it
    if start[0] == end[0]:
        start[0] = end[0] = 0
    # Whoever is told to read may begin once the guard is let go.
    if plain and reads.landed:
        reads.after = first
        leader = pass_on(row, reads)
    else:
        bell = rouse(first)
    PyThread_release_lock(row.guard)
    ring(leader)
    ring(bell)
    return plain


cdef int row_wait(SeatRow *row, Waits *it, double until) noexcept nogil:
    """-1: it reads; else why it comes back."""
    cdef PyLockStatus status
    cdef double left
    PyThread_acquire_lock(row.guard, 1)
    while True:
        if it.landed or it.moved:
            break
        if it.leads or not row.led:
            row.led = it.leads = True
            PyThread_release_lock(row.guard)
            return -1
        left = until - mq_seconds(False)
        if left <= 0:
            PyThread_release_lock(row.guard)
            return ROW_LATE
        it.asleep = True
        PyThread_release_lock(row.guard)
        status = PyThread_acquire_lock_timed(it.bell, <int64_t>(left * 1e6) + 1, 1)
        PyThread_acquire_lock(row.guard, 1)
        if status == PY_LOCK_ACQUIRED:
            continue
        if not it.asleep:  # rung in this very moment
            PyThread_release_lock(row.guard)
            PyThread_acquire_lock(it.bell, 1)
            PyThread_acquire_lock(row.guard, 1)
            continue
        it.asleep = False
        if status == PY_LOCK_INTR:
            PyThread_release_lock(row.guard)
            return ROW_SIGNAL
    PyThread_release_lock(row.guard)
    return ROW_LANDED if it.landed else ROW_MOVED


cdef void row_again(SeatRow *row, Waits *it) noexcept nogil:
    """Its thread left, and is here again."""
    PyThread_acquire_lock(row.guard, 1)
    it.left = False
    PyThread_release_lock(row.guard)


cdef bint row_back(SeatRow *row, Waits *it) noexcept nogil:
    """It has the GIL again. Whether it is the last one of those whose receipts came."""
    cdef PyThread_type_lock bell
    cdef bint last = False
    PyThread_acquire_lock(row.guard, 1)
    if it.counted:
        it.counted = False
        row.coming -= 1
        last = row.coming == 0
    bell = rouse(it.after)
    it.after = NULL
    PyThread_release_lock(row.guard)
    ring(bell)
    return last


cdef void row_leave(SeatRow *row, Waits *it) noexcept nogil:
    """Its thread waits no more; who has no receipt yet stays in the row."""
    cdef PyThread_type_lock bell = NULL, other
    PyThread_acquire_lock(row.guard, 1)
    it.left = True
    if it.leads:
        bell = pass_on(row, it)
    if it.counted:
        it.counted = False
        row.coming -= 1
    other = rouse(it.after)
    it.after = NULL
    PyThread_release_lock(row.guard)
    ring(bell)
    ring(other)


cdef Waits *row_take(SeatRow *row) noexcept nogil:
    """All of them: receipts are looked for elsewhere from now on."""
    cdef Waits *first
    PyThread_acquire_lock(row.guard, 1)
    first = row.head
    row.head = row.tail = NULL
    row.count = 0
    PyThread_release_lock(row.guard)
    return first


cdef void row_move(SeatRow *row, Waits *it) noexcept nogil:
    """It has a slot."""
    cdef PyThread_type_lock bell
    PyThread_acquire_lock(row.guard, 1)
    it.moved = True
    bell = rouse(it)
    PyThread_release_lock(row.guard)
    ring(bell)
