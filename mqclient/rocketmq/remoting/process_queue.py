"""Owns one queue while it is ours: its epoch, what of it is here and not yet consumed, and where to pull next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mqclient.core.slot import Slot, Wake
from mqclient.rocketmq.model import MessageQueue


@dataclass(frozen=True, slots=True)
class Limits:
    """When pulling pauses; -1 is no limit."""

    count: int = 1000
    bytes: int = 100 * 1024 * 1024
    span: int = 2000


class ProcessQueue:
    """One queue in one epoch. Dropped, it stays so: a queue that comes back is a new one, and results of the old one
    are told by `dropped` at one place."""

    __slots__ = (
        "_cache",
        "_limits",
        "_room",
        "dropped",
        "end",
        "last_consume_ms",
        "last_pull_ms",
        "next_offset",
        "outstanding",
        "paused",
        "queue",
        "source",
        "started_at",
        "suggested",
        "telling",
        "version",
    )

    def __init__(
        self, queue: MessageQueue, offset: int, version: int, outstanding: Any, limits: Limits, cache: Any = None
    ) -> None:
        self._cache = cache if cache is not None and cache.limited else None
        self.queue = queue
        self.next_offset = offset
        self.started_at = offset
        self.version = version
        """The subscription version that brokers must know before the first pull."""
        self.outstanding = outstanding
        self.dropped = False
        self.paused = False
        self.suggested = 0
        """The broker number that the last answer named for the next pull."""
        self.telling: Slot[Any] | None = None
        """The answer to the last pull, if that told how far we are."""
        self.source: Any = None
        self.end = -1
        """One above the queue's last message, as the last answer said; -1: none came yet."""
        self.last_pull_ms = 0
        self.last_consume_ms = 0
        self._limits = limits
        self._room: Slot[None] | None = None
        if self._cache is not None:
            self._cache.add(self)

    def put(self, batch: Any) -> None:
        """A reply's messages are here."""
        self.outstanding.add_many(batch.offsets, batch.sizes)

    def done(self, offsets: Iterable[int]) -> int:
        """These are consumed; up to where the queue is consumed now, -1 if nothing ever was here."""
        self.outstanding.done_many(offsets)
        self._make_room()
        if self._cache is not None:
            self._cache.freed()
        commit: int = self.outstanding.commit_offset
        return commit

    def full(self) -> bool:
        """Whether pulling pauses: too much is here, or the user said so."""
        limits = self._limits
        if self.paused or self.outstanding.over(limits.count, limits.bytes, limits.span):
            return True
        return self._cache is not None and self._cache.over()

    def wait_for_room(self) -> Slot[None]:
        """Done when pulling may go on, or never will."""
        if self._room is None:
            self._room = Wake()
            if self._cache is not None:
                self._cache.waits(self)
        return self._room

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        self._make_room()

    def drop(self) -> None:
        """Not ours any more."""
        self.dropped = True
        self.outstanding.clear()
        self._make_room()
        if self._cache is not None:
            self._cache.remove(self)

    def look_again(self) -> None:
        """The client's cache has room."""
        self._make_room()
        if self._room is not None and self._cache is not None:
            self._cache.waits(self)  # full by itself

    def _make_room(self) -> None:
        room = self._room
        if room is not None and (self.dropped or not self.full()):
            self._room = None
            room.complete(None)
