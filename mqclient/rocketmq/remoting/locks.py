"""Owns the locks of an orderly member: taken before a queue begins, renewed while we work on it, given up after.

A broker grants a lock to a client id for 60 s and counts anew at each request. We call a lock valid for 30 s, counted
from when we asked for it, so that ours always ends first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

from mqclient.core.driver import Now
from mqclient.core.slot import Slot, completed
from mqclient.core.steps import Steps, gather, run_steps
from mqclient.core.timers import Timer
from mqclient.errors import MQError
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting import requests
from mqclient.rocketmq.remoting.bodies import queue_of, read_body

LOG = logging.getLogger("mqclient.remoting")

RENEW: Final = 20.0
VALID: Final = 30.0
BROKER_KEEPS: Final = 60.0
LOCK_TIMEOUT: Final = 3.0


class QueueLocks:
    """The queues whose lock we have; `lost(queue)` is told of one that a broker gave to somebody else."""

    def __init__(self, client: Any, group: str, lost: Callable[[MessageQueue], None]) -> None:
        self._client = client
        self._group = group
        self._lost = lost
        self._since: dict[MessageQueue, float] = {}
        self._renewal: Slot[Any] = completed(None)
        self._timer: Timer | None = client.timers.after(RENEW, self._renew)

    def valid(self, queue: MessageQueue) -> bool:
        """Whether we may work on it just now."""
        since = self._since.get(queue)
        return since is not None and self._client.driver.now.mono - since < VALID

    def kept(self, queue: MessageQueue) -> bool:
        """Whether nobody else can have had it since we were last granted it."""
        since = self._since.get(queue)
        return since is not None and self._client.driver.now.mono - since < BROKER_KEEPS

    def since_ms(self, queue: MessageQueue) -> int:
        """When it was granted last, as wall time; 0: never."""
        since, now = self._since.get(queue), self._client.driver.now
        return 0 if since is None else now.wall_ms - int((now.mono - since) * 1000)

    def lock_steps(self, queues: Iterable[MessageQueue]) -> Steps[set[MessageQueue]]:
        """Ask each broker for its queues, at the same time; those that are ours now."""
        asked = _by_broker(queues)
        answers = yield gather([run_steps(self._lock_broker_steps(name, mine)) for name, mine in asked.items()])
        granted: set[MessageQueue] = set()
        for (name, mine), answer in zip(asked.items(), answers, strict=True):
            if answer.error is None:
                granted |= answer.result()
            else:
                # Nothing is known: what we have stays ours until its time is over.
                LOG.info("consumer:%s cannot lock %d queues of %s: %s", self._group, len(mine), name, answer.error)
        return granted

    def unlock_steps(self, queues: Iterable[MessageQueue]) -> Steps[None]:
        """Give them up, and wait until the brokers know; one that cannot be told lets them expire.

        Race: a broker works on several requests at once. A renewal that it saw after the unlocking would keep the
        queue from everybody for a minute: so first the renewal's answer, then the unlocking.
        """
        queues = list(queues)
        yield self._renewal
        asked = _by_broker(queue for queue in queues if self._since.pop(queue, None) is not None)
        for name, mine in asked.items():
            body = requests.lock_body(self._group, self._client.client_id, mine)
            try:
                address = self._client.broker_address(name)
                yield from self._client.ask_steps(address, Request.UNLOCK_BATCH_MQ, {}, body, timeout=LOCK_TIMEOUT)
            except MQError as error:
                LOG.info("consumer:%s cannot unlock %d queues of %s: %s", self._group, len(mine), name, error)

    def close_steps(self) -> Steps[None]:
        """No renewal, no lock."""
        self.abandon()
        yield self._renewal
        yield from self.unlock_steps(list(self._since))

    def abandon(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _lock_broker_steps(self, name: str, queues: list[MessageQueue]) -> Steps[set[MessageQueue]]:
        asked_at = self._client.driver.now.mono
        body = requests.lock_body(self._group, self._client.client_id, queues)
        address = self._client.broker_address(name)
        frame = yield from self._client.ask_steps(address, Request.LOCK_BATCH_MQ, {}, body, timeout=LOCK_TIMEOUT)
        granted = {queue_of(queue) for queue in read_body(frame.body).get("lockOKMQSet") or ()}
        for queue in queues:
            if queue in granted:
                self._since[queue] = asked_at
            elif self._since.pop(queue, None) is not None:
                LOG.warning("consumer:%s lost the lock of %s to another member", self._group, queue)
                self._lost(queue)
        return granted & set(queues)

    def _renew(self, now: Now) -> None:
        self._timer = self._client.timers.after(RENEW, self._renew)
        if self._since:
            self._renewal = run_steps(self._renew_steps())

    def _renew_steps(self) -> Steps[None]:
        yield from self.lock_steps(list(self._since))
        for queue in [queue for queue in self._since if not self.kept(queue)]:
            del self._since[queue]
            LOG.warning("consumer:%s could not renew the lock of %s in time", self._group, queue)
            self._lost(queue)


def _by_broker(queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
    found: dict[str, list[MessageQueue]] = {}
    for queue in queues:
        found.setdefault(queue.broker_name, []).append(queue)
    return found
