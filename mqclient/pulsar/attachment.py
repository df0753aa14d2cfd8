"""Owns being attached to the broker that serves a topic: find it, open there, and again after every loss."""

from __future__ import annotations

import logging
from typing import Protocol

from mqclient.core.backoff import Backoff
from mqclient.core.driver import Address
from mqclient.core.slot import Slot, completed, failed
from mqclient.core.steps import Steps, run_steps
from mqclient.errors import ClosedError, DeadlineError, LinkError, MQError
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.codes import ServerError
from mqclient.pulsar.connection import Connection
from mqclient.pulsar.names import ServiceUrl, TopicName

log = logging.getLogger("mqclient.pulsar")


FINAL = frozenset(
    (
        ServerError.TopicTerminatedError,
        ServerError.ProducerFenced,
        ServerError.IncompatibleSchema,
        ServerError.NotAllowedError,
        ServerError.InvalidTopicName,
        ServerError.TopicNotFound,
    )
)
"""What ends also the later openings. Others pass: a broker that has not yet noticed that our former connection is gone
says ConsumerBusy or ProducerBusy for a while, and a fresh token may be there the next time."""


SOON = 1.0
"""Seconds at most until the next try where a broker answers that the topic is on its way: seen on a real one, several
such answers in a row would else keep a consumer away for a minute from a topic that is back."""


class Opener(Protocol):
    """The producer or consumer that is attached."""

    def open_steps(self, connection: Connection, deadline: float) -> Steps[None]:
        """PRODUCER or SUBSCRIBE on this connection, and what follows from success."""

    def on_failed(self, error: MQError) -> None:
        """It will not be attached any more: the broker refused for good."""


class Attachment:
    """At most one attempt runs at a time. `epoch` counts attempts: what belongs to an older one is dropped.

    The first opening ends at its deadline or at an error that is not worth another try; later ones go on until closed,
    or until the broker refuses for good.
    """

    __slots__ = ("_backoff", "_client", "_cluster", "_dropped", "_hint", "_lane", "_name", "_opener", "_proxy",
                 "_topic", "_waiting", "connection", "epoch", "state")  # fmt: skip

    def __init__(self, client: ClientEngine, topic: TopicName, opener: Opener, name: str) -> None:
        self._client = client
        self._topic = topic
        self._opener = opener
        self._name = name
        self._lane = client.next_lane()
        self._backoff = Backoff(0.1, 60.0)
        self._waiting: list[Slot[None]] = []
        self._cluster: ServiceUrl | None = None
        """Where the topic is, if it has left the client's own cluster."""
        self._hint: str | None = None
        self._proxy: Address | None = None
        """Who led to the last broker."""
        self._dropped = False
        self.connection: Connection | None = None
        self.epoch = 0
        self.state = "new"  # new, opening, attached, closed

    @property
    def attached(self) -> bool:
        return self.state == "attached"

    @property
    def looking(self) -> bool:
        """On its way to the broker, or waiting for the next try."""
        return self.state == "opening" and self.connection is None

    def start(self, deadline: float) -> Slot[None]:
        """Open for the first time."""
        return run_steps(self._attach_steps(deadline))

    def open_later(self) -> None:
        """As `start`, without a deadline: nobody waits for it."""
        self._again(at_once=True)

    def when_attached(self) -> Slot[None]:
        """Done at once or at the next opening; fails if there will be none."""
        if self.state == "attached":
            return completed(None)
        if self.state == "closed":
            return failed(ClosedError(f"{self._name} is closed"))
        slot: Slot[None] = Slot()
        self._waiting.append(slot)
        return slot

    def attached_steps(self, deadline: float) -> Steps[None]:
        """Until it is attached, if that is in time."""
        slot = self.when_attached()
        late = LinkError(f"not connected to the broker of {self._topic} at present")
        alarm = self._client.timers.at(deadline, lambda _: slot.fail(late))
        try:
            yield slot
        finally:
            alarm.cancel()

    def on_lost(self, connection: Connection) -> None:
        """The connection is gone. While opening, the attempt finds out by itself: its request fails."""
        if connection is self.connection and self.state == "attached":
            self._again()

    def on_closed_by_broker(self, connection: Connection, broker_url: str | None) -> None:
        """The topic moves: to the broker named, or to wherever a new lookup says."""
        if connection is not self.connection:
            return
        self._hint = broker_url
        if self.state == "attached":
            self._again()
        elif self.state == "opening":
            # CLOSE may overtake the answer to our opening: that success is then worth nothing.
            self._dropped = True

    def on_migrated(self, connection: Connection, cluster: ServiceUrl) -> bool:
        """The topic is looked up in another cluster from now on; whether that is news."""
        if connection is not self.connection or cluster == self._cluster:
            return False
        log.warning("%s: %s goes to %s", self._name, self._topic, cluster.text)
        self._cluster = cluster
        return True

    def close(self, error: MQError) -> None:
        self.state = "closed"
        self.connection = None
        waiting, self._waiting = self._waiting, []
        for slot in waiting:
            slot.fail(error)

    def _again(self, at_once: bool = False) -> None:
        self.connection = None
        self.state = "opening"
        run_steps(self._again_steps(at_once)).then(self._gave_up)

    def _again_steps(self, at_once: bool) -> Steps[None]:
        if self._hint is None and not at_once:
            yield self._client.timers.sleep(self._backoff.next())
        yield run_steps(self._attach_steps(None))

    def _gave_up(self, slot: Slot[None]) -> None:
        if slot.error is not None and self.state != "closed":
            log.warning("%s: %s", self._name, slot.error)
            error = slot.error if isinstance(slot.error, MQError) else MQError(str(slot.error))
            self.close(error)
            self._opener.on_failed(error)

    def _attach_steps(self, deadline: float | None) -> Steps[None]:
        """`deadline` is None once it was attached before: then it goes on for ever."""
        self.state = "opening"
        while True:
            try:
                yield run_steps(self._attempt_steps(deadline))
                break
            except MQError as error:
                self._detach()
                if isinstance(error, ClosedError) or self.state == "closed":
                    raise ClosedError(f"{self._name} is closed") from error
                if error.code in FINAL or (deadline is not None and not error.retriable):
                    raise
                delay = self._backoff.next()
                if error.code == ServerError.ServiceNotReady:
                    delay = min(delay, SOON)
                if deadline is not None and self._client.driver.now.mono + delay >= deadline:
                    raise
                log.debug("%s: %s; again in %.1f s", self._name, error, delay)
            yield self._client.timers.sleep(delay)
        self.state = "attached"
        waiting, self._waiting = self._waiting, []
        for slot in waiting:
            slot.complete(None)

    def _attempt_steps(self, deadline: float | None) -> Steps[None]:
        client = self._client
        self._check_open()
        limit = client.deadline() if deadline is None else deadline
        hint, self._hint = self._hint, None
        if hint is None or self._cluster is not None:
            found = client.lookup_steps(self._topic, limit, self._cluster, self._lane)
        else:
            found = client.connect_to_steps(hint, limit, self._lane, self._proxy)
        connection: Connection = yield run_steps(found)
        self._check_open()
        self.epoch += 1
        self.connection = connection
        self._proxy = connection.proxy
        self._dropped = False
        yield run_steps(self._opener.open_steps(connection, limit))
        self._backoff.reset()  # even if it was closed meanwhile: that is a new trouble, not the old one again
        if self._dropped:
            raise DeadlineError(f"{self._name}: closed by the broker while it was opened")

    def _detach(self) -> None:
        self.connection = None

    def _check_open(self) -> None:
        if self.state == "closed":
            raise ClosedError(f"{self._name} is closed")
