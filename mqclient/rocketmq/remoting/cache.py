"""Owns what all consumers of one client may hold together: how much is here, and who waits until it is less."""

from __future__ import annotations

from typing import Any

from mqclient.rocketmq.remoting.process_queue import Limits, ProcessQueue

UNLIMITED = Limits(count=-1, bytes=-1, span=-1)


class Cache:
    """The queues of a client; each asks before it pulls, and is told when another one made room."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.limited = limits != UNLIMITED
        self._queues: set[ProcessQueue] = set()
        self._waiting: set[ProcessQueue] = set()

    def add(self, process_queue: ProcessQueue) -> None:
        self._queues.add(process_queue)

    def remove(self, process_queue: ProcessQueue) -> None:
        self._queues.discard(process_queue)
        self._waiting.discard(process_queue)
        self.freed()

    def held(self) -> dict[str, int]:
        """What is here: messages, the bytes of their bodies, and the sum of the queues' spans."""
        accounts: list[Any] = [process_queue.outstanding for process_queue in self._queues]
        return {
            "count": sum(account.count for account in accounts),
            "bytes": sum(account.bytes for account in accounts),
            "span": sum(account.span for account in accounts),
        }

    def over(self) -> bool:
        if not self.limited:
            return False
        held, limits = self.held(), self._limits
        pairs = ((held["count"], limits.count), (held["bytes"], limits.bytes), (held["span"], limits.span))
        return any(0 <= limit < here for here, limit in pairs)

    def waits(self, process_queue: ProcessQueue) -> None:
        self._waiting.add(process_queue)

    def freed(self) -> None:
        """Something is done with: whoever waits looks again."""
        if self._waiting and not self.over():
            waiting, self._waiting = self._waiting, set()
            for process_queue in waiting:
                process_queue.look_again()
