"""The checked cursor: every read of bytes from a peer goes through it, and none goes beyond its end."""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

from mqclient.errors import ProtocolError

_I16: Final = Struct(">h").unpack_from
_I32: Final = Struct(">i").unpack_from


class Cursor:
    """Reads big-endian numbers and byte runs from `data`, from `at` up to `end`."""

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self.data = data
        self.at = at
        self.end = end

    def skip(self, size: int) -> int:
        """Step over `size` bytes; gives where they begin."""
        at = self.at
        if not 0 <= size <= self.end - at:
            raise ProtocolError(f"{size} bytes wanted at {at}, {self.end - at} are left")
        self.at = at + size
        return at

    def take(self, size: int) -> bytes:
        at = self.skip(size)
        return self.data[at : self.at]

    def narrow(self, start: int, size: int) -> None:
        """Let it end `size` bytes behind `start`, but neither later than it did nor before where it stands."""
        if not self.at - start <= size <= self.end - start:
            raise ProtocolError(f"{size} bytes wanted at {start}, {self.end - start} are left")
        self.end = start + size

    def read(self, form: Struct) -> tuple[Any, ...]:
        """The fields of a run of fixed size."""
        return form.unpack_from(self.data, self.skip(form.size))

    def u8(self) -> int:
        return self.data[self.skip(1)]

    def i16(self) -> int:
        number: int = _I16(self.data, self.skip(2))[0]
        return number

    def i32(self) -> int:
        number: int = _I32(self.data, self.skip(4))[0]
        return number
