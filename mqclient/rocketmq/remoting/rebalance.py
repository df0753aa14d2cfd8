"""Owns who is here and what is mine: revokes first, then grants, then lets the brokers know before the first pull."""

from __future__ import annotations

import logging
from typing import Any

from mqclient.core.coalesce import Coalesce
from mqclient.core.driver import Now
from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, gather, run_steps
from mqclient.core.timers import Timer
from mqclient.errors import MQError
from mqclient.rocketmq.codes import BrokerError, Request, Response
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.assign import Assignment
from mqclient.rocketmq.remoting.joining import start_offset_steps

LOG = logging.getLogger("mqclient.remoting")

SOON = 1.0
"""The next try when a round could not finish."""
LOCKED = 0.5
"""The next try when another member still has the lock of a queue that is ours."""


class Rebalance:
    """At most one round at a time; a poke during one causes exactly one more."""

    def __init__(self, member: Any, assignment: Assignment) -> None:
        self._member = member
        self._client = member.client
        self._assignment = assignment
        self._rounds = Coalesce(self._run_steps, self._failed)
        self._timer: Timer | None = None
        self.rounds = 0

    def poke(self) -> Slot[None]:
        """Something may have changed; done when a round that began after this is over."""
        return self._rounds.poke()

    @property
    def idle(self) -> Slot[None]:
        """Done when the round that goes on now, if any, is over."""
        return self._rounds.idle

    def soon(self) -> None:
        """Poke in a moment, unless a round comes earlier anyway."""
        if self._timer is None or self._timer.when > self._client.driver.now.mono + LOCKED:
            self._arm(LOCKED)

    def close(self) -> None:
        self._rounds.close()
        if self._timer is not None:
            self._timer.cancel()

    def _failed(self, error: BaseException) -> None:
        if not self._member.closed:
            LOG.error("a rebalance of %s failed", self._member.group, exc_info=error)

    def _run_steps(self) -> Steps[None]:
        complete = False
        try:
            complete = yield from self._round_steps()
        finally:
            if not self._member.closed:
                waiting = LOCKED if self._member.locks is not None else SOON
                self._arm(self._client.options.rebalance_interval if complete else waiting)

    def _arm(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._client.timers.after(seconds, self._due)

    def _due(self, now: Now) -> None:
        self._timer = None
        self.poke()

    def _round_steps(self) -> Steps[bool]:
        """Every topic once; whether all could be settled. A list without us settles nothing: others reckon with us, so
        our share would be nobody's until the next round."""
        self.rounds += 1
        complete = True
        for topic in self._member.subscriptions.topics():
            try:
                complete &= yield from self._topic_steps(topic)
            except MQError as error:
                complete = False
                if not self._member.closed and not self._member.is_retry(topic):
                    line = f"consumer:{self._member.group} cannot rebalance {topic}: {error}"
                    self._member.folds.warn(("rebalance", topic), line)
        for process_queue in list(self._member.queues.values()):
            if process_queue.queue.topic not in self._member.subscriptions:
                self._member.revoke(process_queue)
        return complete

    def _topic_steps(self, topic: str) -> Steps[bool]:
        route, listed = self._client.routes.get(topic), True
        if route is None:
            route = yield self._client.routes.fetch(topic)
        if self._member.broadcasting:
            mine = list(route.readable)
        else:
            members = yield from self._members_steps(route)
            if members is None:
                return False
            listed = self._client.client_id in members
            mine = self._assignment.share(self._member.group, self._client.client_id, route.readable, members)
        if self._member.closed or topic not in self._member.subscriptions:
            return True
        return (yield from self._apply_steps(topic, mine)) and listed

    def _members_steps(self, route: Any) -> Steps[list[str] | None]:
        """The group's ids; None if the broker has none, because our heartbeat has not arrived there."""
        group = self._member.group
        name = self._client.random.choice(sorted(route.brokers)) if route.brokers else ""
        address = self._client.routes.address(name)
        if address is None:
            return None
        try:
            body = yield from self._client.ask_body_steps(
                address, Request.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": group, "bname": name}
            )
        except BrokerError as error:
            if error.code != Response.SYSTEM_ERROR:
                raise
            yield self._client.heartbeats.beat(address)
            return None
        members = [str(member) for member in body.get("consumerIdList") or ()]
        if self._client.client_id in self._client.impl.allocation.repeated(members):
            self._member.suspect(address)
        if members and self._client.client_id not in members:  # our heartbeat is on its way, or it forgot us
            yield self._client.heartbeats.beat(address)
        return members or None

    def _start_steps(self, queue: MessageQueue, beats: dict[str, Slot[bool]]) -> Steps[int]:
        """Where to begin with a queue that is newly ours.

        Race: the member that had it hears of the change when we do, and then tells how far it came. So we ask only
        after our heartbeat was answered, which the first pull waits for anyway: by then its word is there, and nothing
        comes twice.
        """
        beat = beats.get(self._client.routes.address(queue.broker_name) or "")
        if beat is not None:
            yield beat
        offset: int = yield from start_offset_steps(self._member, queue)
        return offset

    def _apply_steps(self, topic: str, mine: list[MessageQueue]) -> Steps[bool]:
        """Sequence: revoke, lock (orderly), raise the version, let it be told, learn where to start, grant.

        The loops of what is granted wait until their broker acknowledged the raised version; the others go on with the
        one before (story 1).
        """
        member = self._member
        held = {queue for queue in member.queues if queue.topic == topic}
        granted = [queue for queue in mine if queue not in held]
        for queue in held - set(mine):
            member.revoke(member.queues[queue])
        if held == set(mine):
            return True
        admitted = yield from member.admit_steps(granted)
        complete = len(admitted) == len(granted)
        if not admitted and held <= set(mine):
            return complete
        version = member.subscriptions.raise_version(topic, self._client.driver.now.wall_ms)
        beats = self._client.heartbeats.beat_each()
        granted = [queue for queue in granted if queue in admitted]
        starts = yield gather([run_steps(self._start_steps(queue, beats)) for queue in granted])
        if member.closed or topic not in member.subscriptions:
            return True
        for queue, start in zip(granted, starts, strict=True):
            if start.error is None:
                member.grant(queue, start.result(), version)
            else:
                complete = False
                member.folds.warn(("start", queue), f"consumer:{member.group} cannot start {queue}: {start.error}")
                yield from member.dismiss_steps(queue)
        member.on_assigned(topic)
        return complete
