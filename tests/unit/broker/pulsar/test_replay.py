"""Entries that come again."""

from __future__ import annotations

from mqclient.broker.pulsar.replay import Replay


def test_what_comes_again_comes_in_order_once() -> None:
    replay = Replay()
    replay.add([5, 3, 5, 4])
    replay.discard(4)
    assert [replay.pop(), replay.pop(), replay.pop()] == [3, 5, None]
    replay.add([1])
    replay.clear()
    assert replay.pop() is None
