"""Owns what a topic remembers of its producers so that a message sent again is not stored again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqclient.broker.watched import Watched

if TYPE_CHECKING:
    from mqclient.broker.pulsar.policies import Policies
    from mqclient.pulsar.names import TopicName


class Dedup:
    """The highest sequence id stored of each producer name, while deduplication is on.

    >>> dedup = Dedup()
    >>> [dedup.is_new("p", sequence_id) for sequence_id in (0, 3, 3, 2, 4)]
    [True, True, False, False, True]
    >>> dedup.last("p"), dedup.last("q")
    (4, -1)
    """

    __slots__ = ("_decided", "_enabled", "highest")

    def __init__(self) -> None:
        self.highest: Watched[str, int] = Watched()
        self._enabled = False
        self._decided = -1

    def enabled(self, policies: Policies, topic: TopicName) -> bool:
        """Asked for each message: the policies are looked through again only when one has changed."""
        if self._decided != policies.changes:
            self._decided = policies.changes
            self._enabled = bool(policies.value("deduplicationEnabled", topic))
            if not self._enabled:
                self.highest.clear()
        return self._enabled

    def is_new(self, producer: str, sequence_id: int) -> bool:
        """Whether to store it; what is stored is remembered."""
        if sequence_id <= self.highest.get(producer, -1):
            return False
        self.highest[producer] = sequence_id
        return True

    def last(self, producer: str) -> int:
        """The last sequence id stored, -1 if there is none."""
        return self.highest.get(producer, -1)


def is_duplicate(dedup: Dedup, producer: str, sequence_id: int, entry: Any) -> bool:
    """Parts of a chunked message share its sequence id: the last one decides, the others are stored, as upstream."""
    if entry.chunk_id is not None and entry.chunk_id + 1 != (entry.num_chunks or 0):
        return False
    return not dedup.is_new(producer, sequence_id)
