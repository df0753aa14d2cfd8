"""The pure cursor: no read goes beyond its end, whatever it is asked for."""

from __future__ import annotations

from struct import Struct

import pytest

from mqclient._pure.remoting.cursor import Cursor
from mqclient.errors import ProtocolError


def test_reads_in_order() -> None:
    cursor = Cursor(b"-" + bytes([1, 0xFF, 0xFE, 0, 0, 0, 7, 1, 2]) + b"rest-", 1, 14)
    assert (cursor.u8(), cursor.i16(), cursor.i32()) == (1, -2, 7)
    assert cursor.read(Struct(">bb")) == (1, 2)
    assert (cursor.take(4), cursor.at) == (b"rest", cursor.end)


@pytest.mark.parametrize("size", [-1, 4, 2**62])
def test_nothing_beyond_the_end(size: int) -> None:
    cursor = Cursor(b"abcdef", 1, 4)
    with pytest.raises(ProtocolError):
        cursor.take(size)
    assert cursor.take(3) == b"bcd"
    for read in (cursor.u8, cursor.i16, cursor.i32, lambda: cursor.read(Struct("b"))):
        with pytest.raises(ProtocolError):
            read()


@pytest.mark.parametrize("size", [-1, 1, 6])
def test_the_end_moves_only_between_here_and_itself(size: int) -> None:
    cursor = Cursor(b"abcdef", 0, 5)
    cursor.skip(2)
    with pytest.raises(ProtocolError):
        cursor.narrow(0, size)
    cursor.narrow(0, 3)
    assert cursor.take(1) == b"c"
    with pytest.raises(ProtocolError):
        cursor.u8()
