# What a lane does with its connection: the reading of it is lent to whoever is inside, and what is to be written waits.

from libc.math cimport INFINITY

from common.fdio cimport mq_fd_ring, mq_note, mq_seconds

cdef enum:
    LENT = -1  # of a connection: whoever of those inside reads


cdef class _Way:
    """One connection's, as its `Passage` leads there. All of it with the GIL, which is never let go of in here."""

    cdef readonly bint opened
    cdef object passage, connection, link, acquire, release
    cdef FrameReader reader
    cdef list out  # frames to be written
    cdef int unsent  # how many: also looked at without the GIL
    cdef int inside  # threads
    cdef bint company  # several were at once, since it was opened
    cdef int fd

    def __cinit__(self):
        self.out = []

    cdef int lead_to(self, passage) except -1:
        self.passage = passage
        self.connection = passage.connection
        self.link = passage.link
        self.reader = passage.reader
        self.fd = passage.fd
        self.acquire = passage.reading.acquire
        self.release = passage.reading.release
        self.company = False
        return 0

    cdef bint come_in(self) except -1:
        """Whether the connection is ours to read: as long as somebody is inside, nobody else may."""
        if self.inside:
            self.company = True
        else:
            if not self.acquire(False):
                return False
            taken = not self.connection.lent
            if taken:
                self.connection.lent = LENT
            self.release()
            if not taken:
                return False
            mq_note(&self.reader.last_borrow, INFINITY)
        self.inside += 1
        return True

    cdef int go_out(self) except -1:
        """The last one gives the connection back, and sees to what may have happened to it."""
        if self.inside:  # in a child process nobody is
            self.inside -= 1
        if self.inside:
            return 0
        connection = self.connection
        connection.lent = 0
        mq_note(&self.reader.last_borrow, mq_seconds(False))
        if connection.broken is not None or connection.closing:
            hand(self.passage, self.connection)
        elif not self.opened:
            self.let_go()
        return 0

    cdef int let_go(self) except -1:
        """The lane is shut and nobody is in it: the reader thread reads at once, if not for one thread alone."""
        if self.company:
            mq_note(&self.reader.last_borrow, 0.0)
            mq_fd_ring(self.passage.ring)
        return 0

    cdef bint is_clear(self) except -1:
        return is_clear(self.connection, self.link)

    cdef int write(self) except -1:
        """What is to be written: nobody else writes, the GIL is kept."""
        cdef mq_part parts[MQ_IOV_MOST]
        cdef int count = 0
        cdef int64_t whole = 0, sent
        cdef list out = self.out
        for frame in out:
            if count == MQ_IOV_MOST:
                break
            parts[count].data = PyBytes_AS_STRING(<bytes>frame)
            parts[count].size = <size_t>PyBytes_GET_SIZE(<bytes>frame)
            whole += PyBytes_GET_SIZE(<bytes>frame)
            count += 1
        sent = mq_fd_send(self.fd, parts, count)
        if sent == whole and count == len(out):
            out.clear()
            self.unsent = 0
            return 0
        self.hold_back(sent if sent > 0 else 0)
        return 0

    cdef int hold_back(self, int64_t sent) except -1:
        cdef bytes rest = b"".join(self.out)[sent:]
        self.out.clear()
        self.unsent = 0
        return leave_rest(self.passage, self.connection, self.link, rest)
