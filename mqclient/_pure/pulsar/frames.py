"""Owns the frame reader: bytes of a connection in, events out."""

from __future__ import annotations

from typing import final

from mqclient._pure.parked import look_after
from mqclient._pure.pulsar.commands import Event, read_command
from mqclient._pure.pulsar.fdio import READ_SIZE, receive, wait
from mqclient._pure.pulsar.wire import Buffer, Malformed, u32
from mqclient.errors import ConfigError, ProtocolError

MAX_MESSAGE = 5242880
FRAME_PADDING = 10240


@final
class FrameReader:
    """Frames of one connection, either side. Bad bytes put it in an error state; feeding never raises."""

    __slots__ = ("_buffer", "_check_crc", "_vacancy", "error", "last_borrow", "max_frame")

    look_after = staticmethod(look_after)

    def __init__(self, max_frame: int = MAX_MESSAGE + FRAME_PADDING, *, check_crc: bool = True) -> None:
        self.max_frame = max_frame
        self.error: ProtocolError | None = None
        self.last_borrow = 0.0
        self._check_crc = check_crc
        self._buffer = bytearray()
        self._vacancy = memoryview(b"")

    @property
    def pending(self) -> int:
        """Bytes of a frame that is not complete."""
        return len(self._buffer)

    def feed(self, data: Buffer, /) -> list[Event]:
        """The events of all frames that are complete now. After an error: nothing."""
        events: list[Event] = []
        if self.error is not None:
            return events
        self._buffer += data
        at = 0
        try:
            while (end := self._frame_end(at)) is not None:
                events.append(self._read(at, end))
                at = end
        except Malformed as error:
            self.error = ProtocolError(str(error))
            self._buffer.clear()
        else:
            del self._buffer[:at]
        return events

    def receive_into(self, fd: int, /) -> tuple[list[Event], int]:
        """One non-blocking recv, then as `feed`; the bytes received, 0 at end of stream, or -errno."""
        data, got = receive(fd)
        return self.feed(data), got

    def vacancy(self) -> memoryview:
        """Where bytes may be received; good until `filled`, which must be called next."""
        if not self._vacancy:
            self._vacancy = memoryview(bytearray(READ_SIZE))
        return self._vacancy

    def filled(self, count: int, /) -> list[Event]:
        """So many bytes came into the vacancy; then as `feed`."""
        if not 0 <= count <= len(self._vacancy):
            raise ConfigError(f"{count} bytes cannot have come, there is room for {len(self._vacancy)}")
        data, self._vacancy = self._vacancy[:count], memoryview(b"")  # else each idle connection would hold one
        return self.feed(data)

    def wait(self, fd: int, ms: int, bell: int = -1, /) -> int:
        """0 once there is something to receive; `WOULD_BLOCK` after `ms`, or when only the bell is readable."""
        return wait(fd, ms, bell)

    def wait_into(self, fd: int, ms: int, /) -> tuple[list[Event], int]:
        """`wait`, then as `receive_into`."""
        blocked = wait(fd, ms)
        return ([], blocked) if blocked else self.receive_into(fd)

    def _frame_end(self, at: int) -> int | None:
        """Where the frame that begins here ends; None if it is not all there."""
        there = len(self._buffer) - at
        if there < 4:
            return None
        size: int = u32.unpack_from(self._buffer, at)[0]
        if size < 4 or size > self.max_frame:
            raise Malformed(f"a frame of {size} bytes, at most {self.max_frame} are allowed")
        return at + 4 + size if there - 4 >= size else None

    def _read(self, at: int, end: int) -> Event:
        size: int = u32.unpack_from(self._buffer, at + 4)[0]
        if size > end - at - 8:
            raise Malformed(f"a command of {size} bytes in a frame of {end - at - 4}")
        split = at + 8 + size
        with memoryview(self._buffer) as view:
            command, rest = bytes(view[at + 8 : split]), bytes(view[split:end])
        return read_command(command, rest, self._check_crc)
