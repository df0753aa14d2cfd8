"""The compacted view."""

from __future__ import annotations

from mqclient.broker.pulsar.compacted import Compacted
from mqclient.broker.store import Log


def test_what_is_left() -> None:
    log = Log()
    for record in (b"0", b"1", b"2", b"3"):
        log.append(record, 0)
    view = Compacted(2, {1: b"", 2: b"two"})
    assert [view.leaves_out(entry) for entry in range(4)] == [True, False, False, False]
    assert [bytes(view.record(entry, log)) for entry in (1, 2, 3)] == [b"1", b"two", b"3"]
