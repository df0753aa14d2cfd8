# Frames: cutting a byte stream into commands.

cdef enum:
    MOST_FRAME = 16 * 1024 * 1024
    RESPONSE = 1  # bits of `flag`
    ONEWAY = 2
    SMALL_BUFFER = 64 * 1024
    READ_SIZE = 256 * 1024
    KEPT = 4 * 1024 * 1024  # a buffer that grew beyond is given back when it is empty; the largest batches fit

MAX_FRAME = MOST_FRAME


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class Frame:
    """One command, read-only."""
    cdef bytes head  # what the spans of `header` point into
    cdef readonly bytes body
    cdef dict decoded
    cdef Header header
    cdef int form

    @property
    def code(self):
        return self.header.code

    @property
    def flag(self):
        return self.header.flag

    @property
    def opaque(self):
        return self.header.opaque

    @property
    def version(self):
        return self.header.version

    @property
    def language(self):
        cdef Span *span = &self.header.language_text
        if self.form == FORM_ROCKETMQ:
            return LANGUAGES[self.header.language if self.header.language < len(LANGUAGES) else 7]
        if span.kind == ABSENT or span.kind == NULL_VALUE or span.at == span.end:
            return "JAVA"
        return span_text(span)

    @property
    def remark(self):
        cdef Span *span = &self.header.remark
        return None if span.kind == ABSENT or span.kind == NULL_VALUE else span_text(span)

    @property
    def serialize(self):
        return self.form

    @property
    def fields(self):
        if self.decoded is None:
            if self.header.ext == NULL:
                self.decoded = {}
            elif self.form == FORM_JSON:
                self.decoded = json_fields(self.header.ext, self.header.ext_end)
            else:
                self.decoded = binary_fields(self.header.ext, self.header.ext_end)
        return self.decoded

    @property
    def is_response(self):
        return self.header.flag & RESPONSE != 0

    @property
    def is_oneway(self):
        return self.header.flag & ONEWAY != 0

    def field(self, str name not None, default=None):
        """One ext field, without decoding the others."""
        cdef Run run
        cdef str found
        if self.header.ext == NULL:
            return default
        if self.decoded is not None or not PyUnicode_IS_COMPACT_ASCII(name):
            return self.fields.get(name, default)
        run = utf8_of(name)
        if self.form == FORM_JSON:
            found = json_field(self.header.ext, self.header.ext_end, <const char *>run.at, <int>run.size)
        else:
            found = binary_field(self.header.ext, self.header.ext_end, <const char *>run.at, <int>run.size)
        return default if found is None else found

    def pick(self, tuple names not None):
        """Several ext fields, at most eight, in one look at the header: their values in order, None for what is not
        there."""
        cdef Py_ssize_t count = len(names), place
        cdef Run wanted[8]
        cdef Span found[8]
        if count > 8:
            raise ConfigError(f"{count} fields at once: eight are allowed")
        if self.header.ext == NULL or self.form != FORM_JSON or self.decoded is not None:
            return tuple([self.fields.get(name) for name in names])
        for place in range(count):
            wanted[place] = utf8_of(names[place])
            found[place].kind = ABSENT
        find_members(self.header.ext, self.header.ext_end, wanted, found, count)
        return tuple([None if found[place].kind == ABSENT or found[place].kind == NULL_VALUE
                      else span_text(&found[place]) for place in range(count)])

    def __repr__(self):
        kind = "response" if self.is_response else "request"
        return f"<Frame {kind} code={self.code} opaque={self.opaque} body={len(self.body)} bytes>"


not_made_by_hand(<PyTypeObject *>Frame)


cdef object make_frame(const uint8_t *at, Py_ssize_t size):
    """The frame behind a length word of `size`, at least 4; a str says what is wrong with it."""
    cdef Frame frame
    cdef uint32_t mark = <uint32_t>mq_be32(at)
    cdef int form = mark >> 24
    cdef Py_ssize_t head_size = mark & 0xFFFFFF
    cdef const uint8_t *head
    cdef str wrong
    if head_size > size - 4:
        return f"header of {head_size} bytes in a frame of {size}"
    frame = Frame.__new__(Frame)
    frame.form = form
    frame.head = PyBytes_FromStringAndSize(<const char *>at + 4, head_size)
    head = <const uint8_t *>PyBytes_AS_STRING(frame.head)
    if form == FORM_JSON:
        wrong = read_json(head, head + head_size, &frame.header)
    elif form == FORM_ROCKETMQ:
        wrong = read_binary(head, head + head_size, &frame.header)
    else:
        wrong = f"header form {form} is not known"
    if wrong is not None:
        return wrong
    frame.body = PyBytes_FromStringAndSize(<const char *>at + 4 + head_size, size - 4 - head_size)
    return frame


@cython.final
cdef class FrameReader:
    """Cuts a byte stream into frames; stops, with `.error` set, at bytes that are none."""
    cdef uint8_t *buffer
    cdef Py_ssize_t room, start, stop  # what is held is buffer[start:stop]
    cdef Py_ssize_t max_frame
    cdef readonly object error
    cdef public double last_borrow
    cdef bint contended

    def __init__(self, Py_ssize_t max_frame=MOST_FRAME):
        self.max_frame = max_frame

    def __dealloc__(self):
        PyMem_Free(self.buffer)

    @property
    def pending(self):
        """Bytes of a frame that is not yet complete."""
        return self.stop - self.start

    def feed(self, data not None):
        """Take what was read; give every frame that is now complete."""
        cdef Run run
        cdef list frames = []
        cdef object held = hold(data, &run)
        if self.error is not None:
            return frames
        if self.start == self.stop:  # nothing held: cut where it lies, keep only the rest
            self.keep(run.at + self.cut(run.at, run.size, frames), run)
        else:
            self.keep(run.at, run)
            self.cut_held(frames)
        return frames

    def receive_into(self, int fd):
        """One non-blocking recv, the GIL kept; the frames that it completed and the bytes received, 0, or -errno."""
        cdef list frames = []
        cdef int64_t received
        cdef Py_ssize_t room
        self.make_room(SMALL_BUFFER)
        room = self.free_room()
        received = mq_fd_receive(fd, self.buffer + self.stop, room)
        if received > 0 and self.error is None:
            self.stop += received
            self.cut_held(frames)
            if received == room and self.start == self.stop:
                self.make_room(READ_SIZE)  # a busy link: read more at once from now on
        return frames, received

    def vacancy(self):
        """Where bytes may be received; good until `filled`, which must be called next."""
        self.make_room(SMALL_BUFFER)
        return PyMemoryView_FromMemory(<char *>self.buffer + self.stop, self.free_room(), PyBUF_WRITE)

    def filled(self, Py_ssize_t count):
        """So many bytes came into the vacancy; every frame that is now complete."""
        cdef list frames = []
        cdef Py_ssize_t room = self.free_room()
        if not 0 <= count <= room:
            raise ConfigError(f"{count} bytes cannot have come, there is room for {room}")
        if self.error is None:
            self.stop += count
            self.cut_held(frames)
            if count == room and self.start == self.stop:
                self.make_room(READ_SIZE)  # a busy link: read more at once from now on
        return frames

    def wait(self, int fd, int ms, int bell=-1):
        """Without the GIL until there is something to receive, at most `ms` or until the bell is readable."""
        return wait_beside(fd, ms, bell, &self.contended)

    def wait_into(self, int fd, int ms):
        """`wait`, then as `receive_into`."""
        ready = self.wait(fd, ms)
        return self.receive_into(fd) if ready == 0 else ([], ready)

    @staticmethod
    def look_after(int poller, list readers not None, double park, double seconds, /):
        wait_for_parked(poller, readers, park, seconds)

    cdef Py_ssize_t free_room(self) noexcept:
        """How many bytes one read may bring."""
        cdef Py_ssize_t room = self.room - self.stop
        return room if room < READ_SIZE else READ_SIZE

    cdef int keep(self, const uint8_t *at, Run run) except -1:
        """Hold what `run` has from `at` on."""
        cdef Py_ssize_t size = run.at + run.size - at
        if size > 0 and self.error is None:
            self.make_room(size)
            memcpy(self.buffer + self.stop, at, size)
            self.stop += size
        return 0

    cdef int cut_held(self, list frames) except -1:
        self.start += self.cut(self.buffer + self.start, self.stop - self.start, frames)
        if self.error is not None or self.start == self.stop:
            self.start = self.stop = 0
        if self.error is not None or (self.stop == 0 and self.room > KEPT):
            PyMem_Free(self.buffer)
            self.buffer = NULL
            self.room = 0
        return 0

    cdef Py_ssize_t cut(self, const uint8_t *data, Py_ssize_t size, list frames) except -1:
        """Append every complete frame; gives how many bytes they took."""
        cdef mq_cursor c = mq_open(data, data + size)
        cdef const uint8_t *start
        cdef int32_t total
        cdef object frame
        while mq_left(&c) >= 4:
            start = c.at
            total = mq_i32(&c)
            if total < 4 or total > self.max_frame - 4:
                self.error = ProtocolError(f"frame of {total} bytes; from 4 to {self.max_frame - 4} are allowed")
                return size
            if mq_left(&c) < total:
                return start - data
            frame = make_frame(mq_skip(&c, total), total)
            if type(frame) is str:
                self.error = ProtocolError(frame)
                return size
            frames.append(frame)
        return c.at - data

    cdef int make_room(self, Py_ssize_t size) except -1:
        """Room for `size` bytes behind what is held: doubled, so that it follows what was really received."""
        cdef Py_ssize_t held = self.stop - self.start, room = self.room or SMALL_BUFFER
        cdef uint8_t *buffer
        if self.room - self.stop >= size:
            return 0
        while room - held < size:
            room *= 2
        if room > self.room:
            buffer = <uint8_t *>PyMem_Malloc(room)
            if buffer == NULL:
                raise MemoryError
            if held:
                memcpy(buffer, self.buffer + self.start, held)
            PyMem_Free(self.buffer)
            self.buffer = buffer
            self.room = room
        else:
            memmove(self.buffer, self.buffer + self.start, held)
        self.start = 0
        self.stop = held
        return 0
