"""Owns what the user took and has not acknowledged yet, and when its time is over."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from mqclient.core.driver import Now
from mqclient.core.timers import Timer

if TYPE_CHECKING:
    from mqclient.pulsar.consumer import ConsumerEngine

Key = tuple[int, int]


class Unacked:
    """Entries with the indexes of messages that are not acknowledged; the time runs from when an entry was opened.

    While messages of an entry still wait behind the one taken last, its time starts anew, and once more when the last
    of them was taken meanwhile: they were not the user's yet.
    `done` and `done_until` are called by faces, outside of entries; the rest inside.
    """

    __slots__ = ("_consumer", "_due", "_in_part", "_left", "_timeout", "_timer")

    def __init__(self, consumer: ConsumerEngine, timeout: float) -> None:
        self._consumer = consumer
        self._timeout = timeout
        self._left: dict[Key, set[int]] = {}
        self._due: deque[tuple[float, Key]] = deque()
        """In the order of opening, hence of time."""
        self._in_part: Key | None = None
        """What was taken in part at the last look."""
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._left)

    def track(self, entry: Any, messages: list[Any]) -> None:
        """These messages of an entry are about to be the user's."""
        key = (entry.ledger, entry.entry)
        self._left[key] = {max(message.batch_index, 0) for message in messages}
        self._due.append((self._consumer.client.driver.now.mono + self._timeout, key))
        self._arm()

    def done(self, message: Any) -> None:
        # Several threads may be here at once: each step on a set or a dict is one, and none of them undoes another.
        key, index = _place(message)
        left = self._left.get(key)
        if left is not None:
            left.discard(index)
            if index < 0 or not left:
                self.drop(key)

    def done_until(self, message: Any) -> None:
        """Cumulatively: this one and everything before it."""
        key, index = _place(message)
        for known in [known for known in list(self._left) if known < key]:
            self.drop(known)
        left = self._left.get(key)
        if left is not None:
            left.difference_update(range(index + 1))
            if index < 0 or not left:
                self.drop(key)

    def drop(self, key: Key) -> None:
        """Asked back already, or acknowledged as a whole."""
        self._left.pop(key, None)

    def clear(self) -> None:
        """A new subscription: the broker brings back by itself what is not acknowledged."""
        self._left.clear()
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is None and self._due:
            self._timer = self._consumer.client.timers.at(self._due[0][0], self._on_timer)

    def _on_timer(self, now: Now) -> None:
        self._timer = None
        expired: list[Key] = []
        taken = self._consumer.intake.taken_in_part
        while self._due and self._due[0][0] <= now.mono:
            key = self._due.popleft()[1]
            if key in self._left and (key == taken or key == self._in_part):
                self._due.append((now.mono + self._timeout, key))
            elif key in self._left:
                self.drop(key)
                expired.append(key)
        self._in_part = taken
        self._arm()
        if expired:
            self._consumer.ask_back(expired)


def _place(message: Any) -> tuple[Key, int]:
    """Ledger and entry, and the batch index, of a message or an id."""
    entry = message.entry
    if isinstance(entry, int):
        return (message.ledger, entry), message.batch_index
    return (entry.ledger, entry.entry), message.batch_index
