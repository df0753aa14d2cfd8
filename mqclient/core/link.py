"""Owns one connection: its outbox, the feeding of frames, its epoch, and its end with the cause."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mqclient.core.driver import Address, Driver
from mqclient.core.inflight import InFlight, Waiting
from mqclient.core.timers import Timers
from mqclient.errors import ClosedError, LinkError, MQError, ProtocolError

Buffer = bytes | bytearray | memoryview


class Reader(Protocol):
    """The native frame reader: bytes in, frames out; bad bytes put it in an error state."""

    error: ProtocolError | None
    last_borrow: float
    """The driver's: when a caller read for himself last."""

    def feed(self, data: Buffer, /) -> list[Any]: ...


class Owner(Protocol):
    """Who the link tells; all of it inside an entry."""

    def on_open(self, link: Link) -> None: ...

    def on_frames(self, link: Link, frames: Sequence[Any]) -> None: ...

    def on_lost(self, link: Link, cause: MQError) -> None: ...


class Link:
    """One connection to one address; made anew for each attempt's epoch by `connect`.

    `send` while connecting gathers in the outbox; after the loss it fails. `epoch` counts connections, so whoever
    keeps it can tell an event of an old one.
    """

    __slots__ = (
        "_driver",
        "_lost_by",
        "_make_reader",
        "_owner",
        "address",
        "epoch",
        "handle",
        "inflight",
        "last_read",
        "local",
        "outbox",
        "outbox_bytes",
        "reader",
        "remote",
        "state",
    )

    def __init__(
        self, driver: Driver, timers: Timers, owner: Owner, address: Address, make_reader: Callable[[], Reader]
    ) -> None:
        self._driver = driver
        self._owner = owner
        self._make_reader = make_reader
        self.address = address
        self.inflight = InFlight(timers)
        self.reader: Reader = make_reader()
        self.outbox: list[Buffer] = []
        self.outbox_bytes = 0
        self.epoch = 0
        self.state = "idle"  # idle, connecting, open, lost, closed
        self.last_read = 0.0
        self._lost_by: MQError | None = None
        self.local = ""
        self.remote = str(address)
        self.handle: Any = None
        """The driver's own: its socket or transport."""

    def connect(self, deadline: float) -> None:
        """Idle or lost becomes connecting, in a new epoch with a fresh reader."""
        self.epoch += 1
        self.state = "connecting"
        self._lost_by = None
        self.reader = self._make_reader()
        self.outbox = []
        self.outbox_bytes = 0
        self._driver.connect(self.address, self, deadline)

    @property
    def usable(self) -> bool:
        """Bytes given now will be written, if only once the connection is there."""
        return self.state in ("open", "connecting")

    def write(self, *buffers: Buffer) -> None:
        """Append to the outbox; the driver writes it on leaving."""
        empty = not self.outbox
        self.outbox.extend(buffers)
        for buffer in buffers:
            self.outbox_bytes += len(buffer)
        if empty and self.state == "open":
            self._driver.wants_write(self)

    def send(
        self,
        request_id: int,
        frame: Buffer,
        slot: Waiting,
        deadline: float,
        request: str,
        behind: Buffer | None = None,
    ) -> None:
        """Write a request whose reply, deadline or loss completes the slot. `behind`: the rest of its frame."""
        state = self.state
        if state != "open" and state != "connecting":
            # Race: the connection failed before this request came; what the others were told is of use here, too.
            text = f"not connected to {self.address}{f': {self._lost_by}' if self._lost_by else ''}"
            error = LinkError(text).about(remote=str(self.address), request=request)
            error.__cause__ = self._lost_by and self._lost_by.__cause__
            slot.on_failure(error)
            return
        self.inflight.add(request_id, slot, deadline, request)
        # As `write`, spelled out: this is on every request's way.
        outbox = self.outbox
        if not outbox and state == "open":
            self._driver.wants_write(self)
        outbox.append(frame)
        self.outbox_bytes += len(frame)
        if behind is not None:
            outbox.append(behind)
            self.outbox_bytes += len(behind)

    def expect(self, request_id: int, slot: Waiting, deadline: float, request: str, handle: Any) -> None:
        """As `send`, of a request that was written already, to the connection of this handle."""
        if self.state == "open" and self.handle in (handle, None):  # None: the driver has ended, and tells who waits
            self.inflight.add(request_id, slot, deadline, request)
            return
        lost = self._lost_by
        error = LinkError(*lost.args) if lost is not None else LinkError(f"lost the connection to {self.address}")
        error.__cause__ = lost and lost.__cause__
        slot.on_failure(error.about(remote=str(self.address), request=request, outcome_unknown=True))

    # ---- told by the driver, inside an entry

    def on_open(self, local: str, remote: str) -> None:
        self.state = "open"
        self.local = local
        self.remote = remote
        self.last_read = self._driver.now.mono
        if self.outbox:  # gathered while connecting
            self._driver.wants_write(self)
        self._owner.on_open(self)

    def on_bytes(self, data: Buffer) -> None:
        self.on_frames(self.reader.feed(data))

    def on_frames(self, frames: Sequence[Any]) -> None:
        """What one read held. Frames before bad bytes are good; after them the connection is of no use."""
        self.last_read = self._driver.now.mono
        epoch = self.epoch
        if frames:
            self._owner.on_frames(self, frames)
        error = self.reader.error
        if error is not None and epoch == self.epoch and self.state == "open":
            self.abort(error)

    def on_lost(self, cause: BaseException | None) -> None:
        """The connection ended, or could not be made. Everything in flight fails with the cause."""
        if self.state in ("closed", "lost", "idle"):
            return
        connecting = self.state == "connecting"
        self.state = "lost"
        self._end("could not connect to" if connecting else "lost the connection to", cause, sent=not connecting)

    # ---- told by the owner

    def abort(self, cause: MQError) -> None:
        """End the connection because of what came over it or stayed away."""
        self._driver.disconnect(self)
        self.state = "lost"
        self._end("gave up the connection to", cause)

    def close(self) -> None:
        """End the connection because nobody needs it; what waits fails with ClosedError."""
        if self.state in ("open", "connecting"):
            self._driver.disconnect(self)
        self.state = "closed"
        self.inflight.fail_all(ClosedError(f"closed the connection to {self.address}"))

    def _end(self, what: str, cause: BaseException | None, *, sent: bool = True) -> None:
        where = f"{self.address} ({self.address.source})"
        error = LinkError(f"{what} {where}: {str(cause or '') or 'closed by the other side'}").about(
            remote=str(self.address)
        )
        error.__cause__ = cause
        self._lost_by = error
        self.outbox = []
        self.outbox_bytes = 0
        self.inflight.fail_all(error, sent=sent)
        self._owner.on_lost(self, error)


def unsent(buffers: Sequence[Buffer], sent: int) -> list[Buffer]:
    """What remains of the buffers after so many bytes went out.

    >>> [bytes(part) for part in unsent([b"abc", b"de"], 2)]
    [b'c', b'de']
    """
    for index, buffer in enumerate(buffers):
        if sent < len(buffer):
            head = memoryview(buffer)[sent:] if sent else buffer
            return [head, *buffers[index + 1 :]]
        sent -= len(buffer)
    return []
