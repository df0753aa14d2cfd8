"""What a turn says reaches the transport in order, small parts together, large ones as they are."""

from __future__ import annotations

from typing import Any

from mqclient.broker.outgoing import LARGE, write_parts


class Taking:
    def __init__(self) -> None:
        self.taken: list[Any] = []

    def write(self, data: Any) -> None:
        self.taken.append(data)

    def writelines(self, parts: Any) -> None:
        self.taken.append(b"".join(parts))


def test_small_parts_go_together_and_large_ones_as_they_are() -> None:
    transport: Any = Taking()
    large, view = b"x" * LARGE, memoryview(b"y" * LARGE)
    write_parts(transport, [b"a", bytearray(b"b"), large, view, memoryview(b"c"), b"d"])
    assert transport.taken[0] == b"ab"
    assert transport.taken[1] is large
    assert transport.taken[2] is view
    assert transport.taken[3:] == [b"cd"]


def test_nothing_writes_nothing() -> None:
    transport: Any = Taking()
    write_parts(transport, [])
    assert transport.taken == []
