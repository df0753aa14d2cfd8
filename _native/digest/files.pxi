# What a data folder's files hold: frames with a checksum, and the records in them by the thousand.

cdef enum:
    FRAME_HEAD = 12  # mark, size, CRC-32C
    ENTRY_HEAD = 8   # kind, three bytes of nothing, size
    BLOCK_HEAD = 16  # number of the log, number of records, number of the first
    CHANGES = 1
    RECORDS = 2
    SLOTS = 256


cdef struct Gathered:
    uint32_t log
    uint32_t size  # of the records
    uint64_t first, count
    mq_writer records, ends, marks, times


cdef struct Gathering:
    Gathered *runs
    Py_ssize_t count, room
    Py_ssize_t[SLOTS] slots  # log to its last run, where two do not share a slot


cdef inline uint32_t le32(const uint8_t *p) noexcept nogil:
    return p[0] | <uint32_t>p[1] << 8 | <uint32_t>p[2] << 16 | <uint32_t>p[3] << 24


cdef inline uint64_t le64(const uint8_t *p) noexcept nogil:
    return le32(p) | <uint64_t>le32(p + 4) << 32


def split_frames(bytes content not None, bytes mark not None, /):
    """The payloads of the whole frames with which this begins, and where the last of them ends."""
    cdef const uint8_t *start = <const uint8_t *>PyBytes_AS_STRING(content)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(content), at = 0, length
    cdef list payloads = []
    if PyBytes_GET_SIZE(mark) != 4:
        raise ValueError(f"a mark of {len(mark)} bytes")
    while size - at >= FRAME_HEAD and memcmp(start + at, PyBytes_AS_STRING(mark), 4) == 0:
        length = le32(start + at + 4)
        if length > size - at - FRAME_HEAD or mq_crc32c(0, start + at + FRAME_HEAD, length) != le32(start + at + 8):
            break
        at += FRAME_HEAD
        payloads.append(PyBytes_FromStringAndSize(<const char *>start + at, length))
        at += length
    return payloads, at


def take_records(list payloads not None, /):
    """The contents of entries that are changes; and the records of each log in a row: its number, the number of the
    first, then records, ends, marks and times."""
    cdef Gathering gathering
    cdef Py_ssize_t place
    cdef dict known = {}
    cdef list changes = [], runs = []
    cdef bytes payload
    memset(&gathering, 0, sizeof(Gathering))
    try:
        for payload in payloads:
            if payload is None:
                raise TypeError("a payload is bytes")
            take_entries(&gathering, known, changes, payload)
        for place in range(gathering.count):
            runs.append(told(&gathering.runs[place]))
    finally:
        drop(&gathering)
    return changes, runs


cdef tuple told(Gathered *run):
    return (run.log, run.first, mq_writer_done(&run.records), mq_writer_done(&run.ends), mq_writer_done(&run.marks),
            mq_writer_done(&run.times))


cdef void drop(Gathering *gathering) noexcept:
    cdef Py_ssize_t place
    for place in range(gathering.count):
        mq_writer_drop(&gathering.runs[place].records)
        mq_writer_drop(&gathering.runs[place].ends)
        mq_writer_drop(&gathering.runs[place].marks)
        mq_writer_drop(&gathering.runs[place].times)
    PyMem_Free(gathering.runs)


cdef int take_entries(Gathering *gathering, dict known, list changes, bytes payload) except -1:
    cdef const uint8_t *p = <const uint8_t *>PyBytes_AS_STRING(payload)
    cdef const uint8_t *end = p + PyBytes_GET_SIZE(payload)
    cdef uint8_t kind
    cdef Py_ssize_t size
    while p < end:
        if end - p < ENTRY_HEAD or <Py_ssize_t>le32(p + 4) > end - p - ENTRY_HEAD:
            raise ValueError("an entry that is not whole")
        kind, size = p[0], le32(p + 4)
        p += ENTRY_HEAD
        if kind == RECORDS:
            take_block(gathering, known, p, size)
        elif kind == CHANGES:
            changes.append(PyBytes_FromStringAndSize(<const char *>p, size))
        p += size
    return 0


cdef int take_block(Gathering *gathering, dict known, const uint8_t *p, Py_ssize_t size) except -1:
    cdef Py_ssize_t count, columns, place
    cdef uint64_t first
    cdef uint32_t log, behind, before = 0, each
    cdef const uint8_t *ends
    cdef uint8_t *out
    cdef Gathered *run
    if size < BLOCK_HEAD:
        raise ValueError("a block of records without a head")
    log, count, first = le32(p), le32(p + 4), le64(p + 8)
    columns = BLOCK_HEAD + 16 * count
    if columns > size:
        raise ValueError("a block of records that is not whole")
    run = run_of(gathering, known, log, first, size - columns)
    mq_write(&run.times, p + BLOCK_HEAD, 8 * count)
    mq_write(&run.marks, p + BLOCK_HEAD + 8 * count, 4 * count)
    ends = p + BLOCK_HEAD + 12 * count
    out = mq_room(&run.ends, 4 * count)
    for place in range(count):
        memcpy(&each, ends + 4 * place, 4)
        if each < before or each > size - columns:
            raise ValueError("records that do not fit their block")
        before = each
        behind = run.size + each
        memcpy(out + 4 * place, &behind, 4)
    if before != size - columns:
        raise ValueError("records that do not fill their block")
    mq_write(&run.records, p + columns, before)
    run.size += before
    run.count += count
    return 0


cdef Gathered *run_of(Gathering *gathering, dict known, uint32_t log, uint64_t first, Py_ssize_t more) except NULL:
    """The run that this record goes on, or a new one where the numbers, or the sizes, do not."""
    cdef Py_ssize_t place = gathering.slots[log % SLOTS]
    if place >= gathering.count or gathering.runs[place].log != log:
        place = known.get(log, -1)
        gathering.slots[log % SLOTS] = max(place, 0)
    if place >= 0:
        if gathering.runs[place].first + gathering.runs[place].count == first and (
            gathering.runs[place].size + more <= <Py_ssize_t>0xFFFFFFFF
        ):
            return &gathering.runs[place]
    return new_run(gathering, known, log, first)


cdef Gathered *new_run(Gathering *gathering, dict known, uint32_t log, uint64_t first) except NULL:
    cdef Gathered *run
    if gathering.count == gathering.room:
        run = <Gathered *>PyMem_Realloc(gathering.runs, 2 * (gathering.room + 8) * sizeof(Gathered))
        if run == NULL:
            raise MemoryError()
        gathering.runs, gathering.room = run, 2 * (gathering.room + 8)
    run = &gathering.runs[gathering.count]
    memset(run, 0, sizeof(Gathered))
    run.log, run.first = log, first
    known[log] = gathering.slots[log % SLOTS] = gathering.count
    gathering.count += 1  # from here on its writers are dropped with the others
    mq_writer_open(&run.records, 64)
    mq_writer_open(&run.ends, 64)
    mq_writer_open(&run.marks, 64)
    mq_writer_open(&run.times, 64)
    return run
