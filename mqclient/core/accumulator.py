"""Owns the gathering of items into batches by key, and when a batch is sealed."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from mqclient.core.driver import Driver, Now
from mqclient.core.timers import Timer, Timers

K = TypeVar("K", bound=Hashable)
B = TypeVar("B")


class Limits(NamedTuple):
    """A batch is sealed at so many items or bytes, and after so many seconds at the latest.

    `idle_flush`: sealed at once (at the end of the turn) while nothing of its key is in flight, and gathers only while
    something is: so nobody waits for company that does not come.
    """

    items: int = 1000
    bytes: int = 128 * 1024
    linger: float = 0.01
    idle_flush: bool = True


class Accumulator(Generic[K, B]):
    """One open batch for each key. `make(key)` gives an empty one, `ship(key, batch)` gets it sealed.

    All inside entries. Whoever ships calls `landed(key)` when the outcome of a batch is known.
    """

    __slots__ = ("_lanes", "_make", "_ship", "driver", "limits", "timers")

    def __init__(
        self,
        driver: Driver,
        timers: Timers,
        limits: Limits,
        make: Callable[[K], B],
        ship: Callable[[K, B], None],
    ) -> None:
        self.driver = driver
        self.timers = timers
        self.limits = limits
        self._make = make
        self._ship = ship
        self._lanes: dict[K, Lane[K, B]] = {}

    def lane(self, key: K) -> Lane[K, B]:
        """The lane of this key; callers with one key keep it."""
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(self, key, self._make, self._ship)
        return lane

    def known(self, key: K) -> Lane[K, B] | None:
        """The lane of this key, if it has one already."""
        return self._lanes.get(key)

    def room(self, key: K, size: int) -> B:
        """The batch that takes an item of this size; add it at once."""
        return self.lane(key).room(size)

    def landed(self, key: K) -> None:
        lane = self._lanes.get(key)
        if lane is not None:
            lane.landed()

    def flush(self) -> None:
        """Seal all that is open."""
        for lane in list(self._lanes.values()):
            lane.seal()

    def forget(self, key: K) -> B | None:
        """Take the open batch out unsealed and drop the lane: the key is gone."""
        lane = self._lanes.pop(key, None)
        return None if lane is None else lane.take_out()

    def clear(self) -> list[B]:
        """All open batches, taken out unsealed: the owner is closing or starts anew."""
        return [batch for key in list(self._lanes) if (batch := self.forget(key)) is not None]


class Lane(Generic[K, B]):
    """The batches of one key."""

    __slots__ = ("_asked", "_due", "_make", "_owner", "_ship", "_timer", "batch", "bytes", "in_flight", "items", "key")

    def __init__(self, owner: Accumulator[K, B], key: K, make: Callable[[K], B], ship: Callable[[K, B], None]) -> None:
        self._owner = owner
        self._make = make
        self._ship = ship
        self._timer: Timer | None = None
        self._asked = False
        self._due = 0.0
        self.key = key
        self.batch: B | None = None
        self.items = 0
        self.bytes = 0
        self.in_flight = 0

    def room(self, size: int, items: int = 1) -> B:
        """The open batch if these fit, else a new one; they are counted, so add them to it at once.

        Sealing by count happens before the next item or at the end of the turn, when the last one has been added.
        """
        limits = self._owner.limits
        batch = self.batch
        if batch is not None and (self.items + items > limits.items or self.bytes + size > limits.bytes):
            self.seal()
            batch = None
        if batch is None:
            batch = self._open()
        self.items += items
        self.bytes += size
        if (self.items >= limits.items or self.bytes >= limits.bytes) and not self._asked:
            self._ask()
        return batch

    def seal(self) -> None:
        """Ship what is open, if anything is."""
        batch = self.take_out()
        if batch is not None:
            self.in_flight += 1
            self._ship(self.key, batch)

    def ship(self, batch: B) -> None:
        """Ship a batch that never gathered here, behind what is open."""
        self.seal()
        self.in_flight += 1
        self._ship(self.key, batch)

    def landed(self) -> None:
        """The outcome of a batch is known; what has gathered meanwhile goes when it was the last one."""
        self.in_flight -= 1
        assert self.in_flight >= 0, "more batches landed than were shipped"
        if self.batch is not None and not self.in_flight and self._owner.limits.idle_flush:
            self.seal()

    def take_out(self) -> B | None:
        batch, self.batch = self.batch, None
        self.items = 0
        self.bytes = 0
        return batch

    def _open(self) -> B:
        batch = self.batch = self._make(self.key)
        limits = self._owner.limits
        if limits.linger <= 0 or (limits.idle_flush and not self.in_flight):
            self._ask()
        else:
            self._due = self._owner.driver.now.mono + limits.linger
            if self._timer is None:
                self._timer = self._owner.timers.at(self._due, self._lingered)
        return batch

    def _ask(self) -> None:
        if not self._asked:
            self._asked = True
            self._owner.driver.end_of_turn(self._turn_ended)

    def _turn_ended(self) -> None:
        # What was asked for may have been sealed within the turn; what was opened after it has its own reasons.
        self._asked = False
        limits = self._owner.limits
        full = self.items >= limits.items or self.bytes >= limits.bytes
        if full or limits.linger <= 0 or (limits.idle_flush and not self.in_flight):
            self.seal()

    def _lingered(self, now: Now) -> None:
        # The timer of a batch that was sealed before is left to expire: cancelling and arming one for each batch
        # would wake the reader each time.
        self._timer = None
        if self.batch is None:
            return
        if now.mono < self._due:
            self._timer = self._owner.timers.at(self._due, self._lingered)
        else:
            self.seal()
