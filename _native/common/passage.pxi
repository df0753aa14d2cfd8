# What lanes do with the connection that a `Passage` (mqclient/io/passage.py) leads to; all of it with the GIL kept.

from common.fdio cimport mq_fd_ring


cdef bint is_clear(object connection, object link) except -1:
    """Whether it is ours to write: nobody else writes, or wants to."""
    if connection.writing or connection.closing or connection.link is not link:
        return False
    return not link.outbox and connection.broken is None


cdef int leave_rest(object passage, object connection, object link, bytes rest) except -1:
    """The reader thread writes what the socket did not take, and meets the error if there is one."""
    link.outbox.append(rest)
    link.outbox_bytes += len(rest)
    connection.writing = connection.handed = True
    return hand(passage, connection)


cdef int hand(object passage, object connection) except -1:
    """To the reader thread, which is to look at it."""
    passage.handed.append(connection)
    mq_fd_ring(passage.ring)
    return 0
