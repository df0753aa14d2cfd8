"""Owns the memory in flight: the only one that decides on back-pressure; whoever holds bytes reserves them here."""

from __future__ import annotations

from collections import deque

from mqclient.core.slot import Slot, Wake, completed


class Budget:
    """Bytes and items that may be in flight together; 0 means no limit. Called inside entries.

    A reservation that does not fit waits its turn: first come, first served, so a large one is not starved by small
    ones. One larger than the whole budget goes alone, as it would wait for ever.
    """

    __slots__ = ("_queue", "bytes", "items", "max_bytes", "max_items")

    def __init__(self, max_bytes: int = 0, max_items: int = 0) -> None:
        self.max_bytes = max_bytes
        self.max_items = max_items
        self.bytes = 0
        self.items = 0
        self._queue: deque[tuple[Wake, int, int]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def take(self, size: int, items: int = 1) -> bool:
        """Reserve at once, or not at all."""
        if self._queue or not self._fits(size, items):
            return False
        self.bytes += size
        self.items += items
        return True

    def reserve(self, size: int, items: int = 1) -> Slot[None]:
        """Done when it is reserved. Who stops waiting must `abandon`."""
        if self.take(size, items):
            return completed(None)
        wake = Wake()
        self._queue.append((wake, size, items))
        return wake

    def abandon(self, slot: Slot[None], size: int, items: int = 1) -> None:
        """The one who waited was cancelled: leave the queue, or give back what came in the same moment."""
        if slot.error is not None:
            return
        if slot.done:
            self.give(size, items)
            return
        self._queue = deque(entry for entry in self._queue if entry[0] is not slot)
        self._grant()

    def give(self, size: int, items: int = 1) -> None:
        """What was reserved is free again."""
        self.bytes -= size
        self.items -= items
        assert self.bytes >= 0, "more bytes given back than taken"
        assert self.items >= 0, "more items given back than taken"
        if self._queue:
            self._grant()

    def close(self, error: BaseException) -> None:
        """Nobody gets more; who waits gets the error."""
        queue, self._queue = self._queue, deque()
        for wake, _, _ in queue:
            wake.fail(error)

    def _fits(self, size: int, items: int) -> bool:
        if not self.items:
            return True
        return (not self.max_bytes or self.bytes + size <= self.max_bytes) and (
            not self.max_items or self.items + items <= self.max_items
        )

    def _grant(self) -> None:
        while self._queue and self._fits(*self._queue[0][1:]):
            wake, size, items = self._queue.popleft()
            self.bytes += size
            self.items += items
            wake.complete(None)
