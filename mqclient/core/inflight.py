"""Owns the requests of one link that wait for a reply: id to slot, with one deadline heap."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
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
    """

    __slots__ = ("_alarm", "_deadlines", "_slots", "_timers", "late")

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._slots: dict[int, tuple[Waiting, str]] = {}
        self._deadlines: list[tuple[float, int]] = []
        self._alarm: Timer | None = None
        self.late = 0

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, request_id: int, slot: Waiting, deadline: float, request: str) -> None:
        self._slots[request_id] = (slot, request)
        if len(self._deadlines) > 2 * len(self._slots) + 64:  # most were answered: do not hold a minute of them
            self._deadlines = [entry for entry in self._deadlines if entry[1] in self._slots]
            heapify(self._deadlines)
        heappush(self._deadlines, (deadline, request_id))
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
        self._deadlines = [entry for entry in self._deadlines if entry[1] != request_id]
        heapify(self._deadlines)

    def fail_all(self, error: MQError, *, sent: bool = True) -> None:
        """The connection is gone: what was sent may or may not have taken effect; if it never was open, nothing was."""
        slots, self._slots = self._slots, {}
        self._deadlines.clear()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        for slot, request in slots.values():
            copy = type(error)(*error.args)
            copy.__cause__ = error.__cause__
            slot.on_failure(copy.about(remote=error.remote, request=request, outcome_unknown=sent))

    def _arm(self, when: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._timers.at(when, self._expire)

    def _expire(self, now: Now) -> None:
        self._alarm = None
        while self._deadlines:
            deadline, request_id = self._deadlines[0]
            if request_id not in self._slots:  # answered long ago
                heappop(self._deadlines)
            elif deadline <= now.mono:
                heappop(self._deadlines)
                slot, request = self._slots.pop(request_id)
                slot.on_failure(DeadlineError(f"no answer to {request} in time").about(request=request))
            else:
                self._arm(deadline)
                return
