"""Owns the requests of one link that wait for a reply: id to slot, with one alarm for the earliest deadline."""

from __future__ import annotations

from heapq import heapify, heappop
from math import inf
from typing import Any, Protocol

from mqclient.core.driver import Now
from mqclient.core.timers import Timer, Timers
from mqclient.errors import DeadlineError, MQError


class Waiting(Protocol):
    """Whoever a reply is for: a slot, or what makes something of it. Told once, inside an entry."""

    def on_reply(self, value: Any) -> None: ...

    def on_failure(self, error: BaseException) -> None: ...


class InFlight:
    """Replies come in any order, late or never; each slot is completed once, by reply, deadline or loss.

    A late or unknown reply is counted, not raised: the peer is right to send it.

    Nearly all requests are answered long before their deadline, so no order of deadlines is kept while they come: the
    alarm is set for the earliest of them, and only when it rings those still waiting are gathered into a heap.
    """

    __slots__ = ("_alarm", "_due", "_earliest", "_slots", "_timers", "late")

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._slots: dict[int, tuple[Waiting, str, float]] = {}
        self._earliest = inf
        """Deadline among the requests that came since the last gathering; an alarm is set for it."""
        self._due: list[tuple[float, int]] = []
        """A heap of those that were there at the last gathering, answered ones among them."""
        self._alarm: Timer | None = None
        self.late = 0

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, request_id: int, slot: Waiting, deadline: float, request: str) -> None:
        self._slots[request_id] = (slot, request, deadline)
        if deadline < self._earliest:
            self._earliest = deadline
        if self._alarm is None or deadline < self._alarm.when:
            self._arm(deadline)

    def complete(self, request_id: int, value: Any) -> bool:
        """The reply came; False if nobody waits for it any more."""
        entry = self._slots.pop(request_id, None)
        if entry is None:
            self.late += 1
            return False
        entry[0].on_reply(value)
        return True

    def fail(self, request_id: int, error: MQError) -> bool:
        entry = self._slots.pop(request_id, None)
        if entry is None:
            self.late += 1
            return False
        entry[0].on_failure(error.about(request=entry[1]))
        return True

    def hold(self, request_id: int) -> None:
        """The peer said that the answer takes as long as it takes: no deadline any more."""
        entry = self._slots.get(request_id)
        if entry is not None:
            self._slots[request_id] = (entry[0], entry[1], inf)

    def fail_all(self, error: MQError, *, sent: bool = True) -> None:
        """The connection is gone: what was sent may or may not have taken effect; if it never was open, nothing was."""
        slots, self._slots = self._slots, {}
        self._due.clear()
        self._earliest = inf
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        for slot, request, _ in slots.values():
            copy = type(error)(*error.args)
            copy.__cause__ = error.__cause__
            slot.on_failure(copy.about(remote=error.remote, request=request, outcome_unknown=sent))

    def _arm(self, when: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._timers.at(when, self._expire)

    def _expire(self, now: Now) -> None:
        self._alarm = None
        if self._earliest <= now.mono:
            self._gather()
        due = self._due
        while due and due[0][0] <= now.mono:
            deadline, request_id = heappop(due)
            slot, request, until = self._slots.get(request_id, _ANSWERED)
            if slot is not None and until == deadline:  # else answered long ago, held, or another one of this id
                del self._slots[request_id]
                slot.on_failure(DeadlineError(f"no answer to {request} in time").about(request=request))
        first = min(self._earliest, due[0][0] if due else inf)
        if first < inf:
            self._arm(first)

    def _gather(self) -> None:
        self._due = [(until, request_id) for request_id, (_, _, until) in self._slots.items() if until < inf]
        heapify(self._due)
        self._earliest = inf


_ANSWERED: tuple[None, str, float] = (None, "", inf)
