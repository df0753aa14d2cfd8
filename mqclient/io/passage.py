"""Owns what a native call may use of an open connection, to send and to read the answer without an entry."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from mqclient.core.link import Link
from mqclient.io.connection import Connection
from mqclient.io.poller import Bell


class Passage:
    """One connection's, for as long as its `link` stays: see `Lane` in mqclient/_native/pulsar.pyi.

    Who goes this way has the connection `lent`, looks whether it is parked, whether somebody writes and whether
    something is to be written, and then writes, all without letting go of the GIL: nobody comes in between. Whatever
    else is read goes to `dispatch`; what could not be written stands in the outbox, and the connection in `handed`.
    """

    __slots__ = (
        "_bells",
        "bell",
        "connection",
        "dispatch",
        "fd",
        "handed",
        "link",
        "mine",
        "reader",
        "reading",
        "ring",
        "taken",
    )

    def __init__(
        self,
        connection: Connection,
        link: Link,
        dispatch: Callable[[Connection, list[Any], int], None],
        handed: deque[Connection],
        ring: Bell,
        bell: Bell,
        mine: Callable[[], bool],
    ) -> None:
        self.connection = connection
        self.link = link
        self.fd = connection.fd
        self.reader = link.reader
        self.reading = connection.reading
        self.dispatch = dispatch
        self.handed = handed
        self.ring = ring.ring_fd
        """The reader thread's bell: it is to look at what was handed to it."""
        self.bell = bell.fd
        """Ends the waiting: the client is being closed."""
        self.mine = mine
        """Whether this thread is inside an entry."""
        self.taken = False
        """Somebody is on his way through: who reads for him may run a callback that wants to go this way, too."""
        self._bells = ring, bell  # or their numbers might become somebody else's
