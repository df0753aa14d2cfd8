"""Owns one send request until it is answered for good: its tries, other brokers by error advice, its deadline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mqclient.core.driver import Now
from mqclient.core.slot import Slot
from mqclient.errors import ClosedError, DeadlineError, MQError
from mqclient.rocketmq.codes import BrokerError, Request, Response
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.advice import SILENT
from mqclient.rocketmq.remoting.outgoing import STORED, SUCCESS, Prepared, Stored
from mqclient.rocketmq.remoting.routes import Route

if TYPE_CHECKING:
    from mqclient.rocketmq.remoting.producer import ProducerEngine

BUSY: Final = frozenset({Response.SYSTEM_BUSY, Response.SERVICE_NOT_AVAILABLE, Response.FLOW_CONTROL})
NAMES: Final = {code: code.name for code in Request}
"""An enum's own `name` costs more than the look-up."""
LARGE: Final = 1 << 15
"""A body of so many bytes goes to the socket from where it lies; a smaller one is copied behind its header."""
PAUSE: Final = 0.02
"""Before a busy broker is asked again, because there is no other; twice as long each time."""
QUEUE_IS_GONE: Final = "request queueId["
"""So begins the remark where a topic has fewer queues than its route says. The codes differ: 29, or 1 of 4.x."""


class Sending(Slot[Stored]):
    """A message or a batch on its way, and the slot of its outcome. Sequence: attempt, reply; by the error's advice
    attempt again elsewhere.

    It stands itself in the link's table of requests: one try at a time is under way, and its reply comes to `on_reply`.
    """

    __slots__ = ("_at", "_attempts", "_avoid", "_began", "_engine", "_queue", "_tries", "_unknown", "_weaker",
                 "deadline", "prepared", "started", "where")  # fmt: skip

    def __init__(
        self,
        engine: ProducerEngine,
        prepared: Prepared,
        deadline: float,
        queue: MessageQueue | None = None,
        attempts: int | None = None,
    ) -> None:
        # As `Slot.__init__`, spelled out: one of these is made for each send.
        self.done = False
        self.error = self._value = None
        self._callbacks = []
        self._attempts = engine.options.attempts if attempts is None else attempts
        self.started = self._began = engine.client.driver.now.mono
        self.where = ""
        """The broker's address of the last try."""
        self._unknown = False
        """Whether a try may have taken effect: a later refusal then does not say that the message is not there."""
        self._engine = engine
        self._avoid: str | None = None
        self._tries = 0
        self._queue = queue
        """The only one that it may go to, if any."""
        self._at = queue
        """Where the last try went."""
        self._weaker: Stored | None = None
        """Stored, but with less safety: the answer if no other broker gives a better one."""
        self.prepared = prepared
        self.deadline = deadline

    def start(self) -> Slot[Stored]:
        self._engine.sendings[self] = None
        self.attempt()
        return self

    def attempt(self) -> None:
        """Send it, as soon as the route is known; every way out completes the slot or comes back here."""
        # One function, for each call less is a hundredth of what a waiting send costs.
        engine, prepared = self._engine, self.prepared
        client, topic = engine.client, prepared.topic
        try:
            route = client.routes.get(topic)
            if route is None or not route.writable:
                self._await_route(topic)
                return
            clock = client.driver.now
            now = clock.mono
            if self.deadline <= now:
                error = DeadlineError(f"no time left to send to {topic}")
                raise error.about(request=prepared.code.name, outcome_unknown=False)
            queue = self._queue or engine.choose(route, prepared.key, self._avoid)
            address = client.sending_address(queue.broker_name)
            opaque = client.opaque()
            apart = len(prepared.body) >= LARGE
            frame = (engine.encode_apart if apart else engine.encode)(opaque, prepared, queue, clock.wall_ms)
            self._tries += 1
            self._at = queue
            self.where = address
            self._began = now
            until = self._cap(now, engine) if route.several and self._tries < self._attempts else self.deadline
            behind = prepared.body if apart else None
            client.send_for(self, address, opaque, frame, until, NAMES[prepared.code], behind)
        except Exception as error:  # whatever it is: its sender hears of it, and nobody else's connection ends by it
            self._end(error)

    def _cap(self, now: float, engine: ProducerEngine) -> float:
        """A silent broker may take a part of what is left, so that another one gets its chance."""
        left, most = self.deadline - now, engine.options.attempt_timeout
        return now + min(left, left / 2 if most is None else most)

    def went(self, queue: MessageQueue, address: str, began: float) -> float:
        """The first try is out already, by the short way; until when its answer is waited for."""
        route = self._engine.client.routes.get(queue.topic)
        self._tries = 1
        self._at = queue
        self.where = address
        self.started = self._began = began
        several = route is not None and route.several and self._attempts > 1
        return self._cap(began, self._engine) if several else self.deadline

    def _await_route(self, topic: str) -> None:
        """The name server has as long as the message has; whichever comes first ends the waiting."""
        client = self._engine.client

        def late(now: Now) -> None:
            asked = f"name server {client.name_servers}" if len(client.name_servers) else "the address server"
            error = DeadlineError(f"no route of {topic} in time: {asked} did not answer ({SILENT})")
            error.outcome_unknown = False
            self._end(error.about(request="GET_ROUTEINFO_BY_TOPIC"))

        timer = client.timers.at(self.deadline, late)

        def found(slot: Slot[Route]) -> None:
            timer.cancel()
            if self.done:
                return
            if slot.error is not None:
                self._end(slot.error)
            else:
                self.attempt()

        client.routes.publish(topic).then(found)

    def on_reply(self, frame: Any) -> None:
        """What the broker says to the last try."""
        code, queue, engine = frame.code, self._at, self._engine
        assert queue is not None
        if code not in STORED:
            self.on_failure(BrokerError(code, frame.remark or "", remote=self.where, request=self.prepared.code.name))
            return
        now = engine.client.driver.now.mono
        engine.faults.answered(queue.broker_name, now - self._began, now)
        stored = Stored(engine.remoting, self.prepared.ids, frame, queue)
        if code == SUCCESS or not engine.options.retry_unless_safe:
            engine.ended(self, stored)
            self.complete(stored)
        else:
            self._weakly(stored, queue)

    def on_failure(self, error: BaseException) -> None:
        """What became of the last try instead of an answer, or by one."""
        queue, engine = self._at, self._engine
        assert queue is not None
        self._unknown = self._unknown or not isinstance(error, MQError) or error.outcome_unknown
        if not isinstance(error, ClosedError):
            engine.faults.failed(queue.broker_name, engine.client.driver.now.mono)
        self._failed(error, queue)

    def _weakly(self, stored: Stored, queue: MessageQueue) -> None:
        engine = self._engine
        if self._tries < self._attempts and engine.other_broker(queue) and not engine.closed:
            self._weaker = self._weaker or stored
            self._avoid = queue.broker_name
            self.attempt()
        else:
            self._end(stored)

    def _failed(self, error: BaseException, queue: MessageQueue) -> None:
        engine, client = self._engine, self._engine.client
        gone = isinstance(error, BrokerError) and error.remark.startswith(QUEUE_IS_GONE)
        if isinstance(error, MQError) and (error.refresh_route or gone) and not client.closed:
            client.routes.fetch(queue.topic)
        if gone and self._queue is None and self._tries < self._attempts and not client.closed:
            self._await_route(queue.topic)  # of what the old route has, most other queues are gone as well
            return
        advice = isinstance(error, MQError) and error.retriable and not isinstance(error, ClosedError)
        left = self.deadline - client.driver.now.mono
        if not advice or self._tries >= self._attempts or left <= 0 or client.closed:
            self._end(error)
            return
        self._avoid = queue.broker_name
        pause = PAUSE * (1 << self._tries - 1)
        if getattr(error, "code", None) in BUSY and pause < left and not engine.other_broker(queue):
            client.timers.after(pause, lambda _: self.attempt())
        else:
            self.attempt()

    def _end(self, outcome: Stored | BaseException) -> None:
        if isinstance(outcome, BaseException) and self._weaker is not None:
            outcome = self._weaker
        if isinstance(outcome, MQError) and self._unknown:
            outcome.about(outcome_unknown=True)
        self._engine.ended(self, outcome)
        if isinstance(outcome, Stored):
            self.complete(outcome)
        else:
            self.fail(outcome)
