# The frame reader: owns its buffer, cuts it into frames.

cdef enum:
    READ_SIZE = 65536
    LARGE_READ = 524288  # of a stream that fills smaller ones
    KEPT_ROOM = 1048576  # a buffer that grew beyond goes back to the system when it is empty


@cython.final
cdef class FrameReader:
    """Frames of one connection, either side. Bad bytes put it in an error state; feeding never raises."""

    cdef readonly object error
    cdef public double last_borrow
    cdef uint8_t *buffer
    cdef Py_ssize_t start, end, room, reading
    cdef int64_t most
    cdef bint check_crc, busy, contended

    def __init__(self, int64_t max_frame=5242880 + 10240, *, bint check_crc=True):
        self.max_frame = max_frame
        self.check_crc = check_crc
        self.reading = READ_SIZE

    def __dealloc__(self):
        free(self.buffer)

    @property
    def max_frame(self):
        return self.most

    @max_frame.setter
    def max_frame(self, int64_t value):
        self.most = value if value < 0x7FFFFF00 else 0x7FFFFF00

    @property
    def pending(self):
        """Bytes of a frame that is not complete."""
        return self.end - self.start

    def feed(self, data, /):
        """The events of all frames that are complete now. After an error: nothing."""
        cdef Py_buffer view
        cdef list events = []
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            self.begin()
        except RuntimeError:
            PyBuffer_Release(&view)
            raise
        try:
            if self.error is None:
                self.take(<const uint8_t *>view.buf, view.len, events)
        finally:
            self.busy = False
            PyBuffer_Release(&view)
        return events

    def receive_into(self, int fd, /):
        """One non-blocking recv straight into the buffer, the GIL kept; then as `feed`."""
        cdef list events = []
        cdef int64_t got
        self.begin()
        try:
            self.make_room(self.reading)
            got = mq_fd_receive(fd, self.buffer + self.end, <size_t>(self.room - self.end))
            self.reading = LARGE_READ if got == self.room - self.end else READ_SIZE
            if got > 0 and self.error is None:
                self.end += <Py_ssize_t>got
                self.cut(events)
        finally:
            self.busy = False
        return events, got

    def vacancy(self):
        """Where bytes may be received; good until `filled`, which must be called next."""
        if self.busy:
            raise RuntimeError("the frame reader is fed by two at once")
        self.make_room(4 * READ_SIZE)
        return PyMemoryView_FromMemory(<char *>self.buffer + self.end, self.room - self.end, PyBUF_WRITE)

    def filled(self, Py_ssize_t count, /):
        """So many bytes came into the vacancy; then as `feed`."""
        cdef list events = []
        if not 0 <= count <= self.room - self.end:
            raise ConfigError(f"{count} bytes cannot have come, there is room for {self.room - self.end}")
        self.begin()
        try:
            if self.error is None:
                self.end += count
                self.cut(events)
        finally:
            self.busy = False
        return events

    def wait(self, int fd, int ms, int bell=-1, /):
        """Without the GIL until there is something to receive, at most `ms` or until the bell is readable."""
        return wait_beside(fd, ms, bell, &self.contended)

    def wait_into(self, int fd, int ms, /):
        """`wait`, then as `receive_into`."""
        blocked = self.wait(fd, ms)
        return ([], blocked) if blocked else self.receive_into(fd)

    @staticmethod
    def look_after(int poller, list readers not None, double park, double seconds, /):
        wait_for_parked(poller, readers, park, seconds)

    cdef int begin(self) except -1:
        """A second feeder would move the buffer under the first (a finalizer that runs while events are made)."""
        if self.busy:
            raise RuntimeError("the frame reader is fed by two at once")
        self.busy = True
        return 0

    cdef int take(self, const uint8_t *data, Py_ssize_t size, list events) except -1:
        """Cut frames out of `data` itself if nothing is pending; what is left over is kept."""
        cdef Py_ssize_t used = 0
        if self.start == self.end:
            used = self.cut_from(data, size, events)
        if self.error is None and used < size:
            self.make_room(size - used)
            memcpy(self.buffer + self.end, data + used, <size_t>(size - used))
            self.end += size - used
            if used == 0:
                self.cut(events)
        return 0

    cdef int cut(self, list events) except -1:
        """Cut frames out of the buffer."""
        self.start += self.cut_from(self.buffer + self.start, self.end - self.start, events)
        if self.start == self.end or self.error is not None:
            self.start = self.end = 0
            if self.room > KEPT_ROOM:
                free(self.buffer)
                self.buffer = NULL
                self.room = 0
        return 0

    cdef Py_ssize_t cut_from(self, const uint8_t *data, Py_ssize_t size, list events) except -1:
        """Append the events of the frames that are complete; how many bytes they took."""
        cdef Py_ssize_t used = 0
        cdef int64_t length
        while size - used >= 4:
            length = <uint32_t>mq_be32(data + used)
            if length < 4 or length > self.most:
                self.fail(f"a frame of {length} bytes, at most {self.most} are allowed")
                break
            if length > size - used - 4:
                break
            if not self.read_frame(data + used + 4, length, events):
                break
            used += 4 + <Py_ssize_t>length
        return used

    cdef bint read_frame(self, const uint8_t *at, int64_t length, list events) except -1:
        cdef mq_cursor c = mq_open(at, at + length)
        cdef Span base, rest
        if not read_sized(&c, &base):
            return self.fail(f"a command that does not fit its frame of {length} bytes")
        rest.at = c.at
        rest.size = mq_left(&c)
        try:
            events.append(read_command(base, rest, self.check_crc))
        except ProtocolError as error:
            self.error = error
            return False
        return True

    cdef bint fail(self, str reason) except -1:
        self.error = ProtocolError(reason)
        return False

    cdef int make_room(self, Py_ssize_t wanted) except -1:
        """Room for `wanted` bytes, or for the rest of a frame whose (checked) length is known."""
        cdef Py_ssize_t there = self.end - self.start
        cdef Py_ssize_t length, room
        cdef uint8_t *grown
        if there >= 4:
            length = 4 + <Py_ssize_t><uint32_t>mq_be32(self.buffer + self.start)
            if length - there > wanted and length <= self.most + 4:
                wanted = length - there
        if self.room - self.end >= wanted:
            return 0
        if self.start > 0:
            memmove(self.buffer, self.buffer + self.start, <size_t>there)
            self.start = 0
            self.end = there
        if self.room - there >= wanted:
            return 0
        room = there + wanted if there + wanted > READ_SIZE else READ_SIZE
        grown = <uint8_t *>realloc(self.buffer, <size_t>room)
        if grown == NULL:
            raise MemoryError()
        self.buffer = grown
        self.room = room
        return 0
