"""Owns the three calls on a descriptor: receive, wait, send; what they give is the number of bytes or -errno."""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Sequence

from mqclient._pure.pulsar.wire import Buffer

WOULD_BLOCK = -errno.EAGAIN
READ_SIZE = 65536
MOST_BUFFERS = 64


def _failed(error: OSError) -> int:
    return -(error.errno or errno.EIO)


def receive(fd: int) -> tuple[bytes, int]:
    """What one read of a non-blocking descriptor gives."""
    try:
        data = os.read(fd, READ_SIZE)
    except OSError as error:
        return b"", _failed(error)
    return data, len(data)


def wait(fd: int, ms: int, bell: int = -1) -> int:
    """0 once there is something to read, `WOULD_BLOCK` at the timeout or when only the bell rang."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if bell >= 0:
        poll.register(bell, select.POLLIN)
    try:
        return 0 if any(one != bell for one, _ in poll.poll(ms)) else WOULD_BLOCK
    except OSError as error:
        return _failed(error)


def send_now(fd: int, buffers: Sequence[Buffer], /) -> int:
    """One gathering write to a non-blocking descriptor: bytes written, or -errno."""
    try:
        return os.writev(fd, buffers[:MOST_BUFFERS])
    except OSError as error:
        return _failed(error)
