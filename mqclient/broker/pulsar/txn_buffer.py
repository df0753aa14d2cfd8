"""Owns what transactions have sent to one topic: unseen until they end, never seen if they are aborted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqclient import _schema
from mqclient.broker.watched import Watched

if TYPE_CHECKING:
    from mqclient.broker.pulsar.topics import Topic

Txn = tuple[int, int]
"""Most and least bits of a transaction's id."""
COMMITTED, ABORTED = 21, 22
"""Markers in the log, which nobody sees."""


class TxnBuffer:
    """The entries of transactions that have not ended. Nothing behind the first of them is given to consumers."""

    __slots__ = ("_of", "entries")

    def __init__(self) -> None:
        self.entries: Watched[int, Txn] = Watched()
        """Each with whose it is, in order."""
        self._of: dict[Txn, list[int]] = {}

    def add(self, txn: Txn, entry: int) -> None:
        self.entries[entry] = txn
        self._of.setdefault(txn, []).append(entry)

    @property
    def first(self) -> int | None:
        """The first entry that is not decided yet."""
        return next(iter(self.entries), None)

    def end(self, txn: Txn) -> list[int]:
        """What it sent; nothing of it is undecided any more."""
        found = self._of.pop(txn, [])
        for entry in found:
            del self.entries[entry]
        return found


def end_on_topic(topic: Topic, txn: Txn, commit: bool, impl: Any, now: int) -> None:
    """A marker is stored, what was sent becomes visible or is hidden for good."""
    entries = topic.txns.end(txn)
    if not commit:
        topic.hidden.update(dict.fromkeys(entries, True))
    topic.hidden[topic.end] = True
    topic.append(marker(txn, commit, impl, now))


def marker(txn: Txn, commit: bool, impl: Any, now: int) -> Any:
    """The entry that the broker itself stores at the end of a transaction."""
    make: Any = _schema.message("MessageMetadata")
    metadata = make(producer_name="", sequence_id=0, publish_time=now, txnid_most_bits=txn[0], txnid_least_bits=txn[1])
    metadata.marker_type = COMMITTED if commit else ABORTED
    frame = impl.pulsar.encode_send(0, 0, metadata.SerializeToString(), b"", marker=True)
    [event] = impl.pulsar.FrameReader().feed(frame)
    return event[-1]
