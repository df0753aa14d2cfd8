"""Owns a producer group's sending side: who sends, by which way, to which queue, and the account of what was sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mqclient.core.budget import Budget
from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, gather, run_steps
from mqclient.errors import ClosedError, ConfigError, MQError
from mqclient.hooks import Sent
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import (
    Account,
    Message,
    MessageQueue,
    PartialSendError,
    QueueFullError,
    Receipt,
    check_group,
    check_key,
    check_queue,
)
from mqclient.rocketmq.remoting import requests
from mqclient.rocketmq.remoting.batches import Batching
from mqclient.rocketmq.remoting.client import ClientEngine
from mqclient.rocketmq.remoting.express import express
from mqclient.rocketmq.remoting.faults import Faults
from mqclient.rocketmq.remoting.guards import Guards
from mqclient.rocketmq.remoting.many import Chain, Lone, Many, Part
from mqclient.rocketmq.remoting.outgoing import SAFE, Prepared, Preparer, Stored, check_batch_limits
from mqclient.rocketmq.remoting.producer_options import ProducerOptions
from mqclient.rocketmq.remoting.routes import Route
from mqclient.rocketmq.remoting.sending import Sending
from mqclient.rocketmq.remoting.trace import Trace

if TYPE_CHECKING:
    from mqclient._native.handover import SendFuture

R = TypeVar("R", bound=Any)
_BATCH = Request.SEND_BATCH_MESSAGE
_OK = attrgetter("ok")
MOST_HEADS: Final = 1024
"""So many queues have what their requests begin with kept."""
_FULL = (
    "{} messages of {} bytes are submitted and not yet answered: as many as the producer's limits allow (or its "
    "rate_limit is reached); {}"
)


class ProducerEngine:
    """One producer group's sending side."""

    def __init__(self, client: ClientEngine, group: str, options: ProducerOptions | None = None) -> None:
        check_group(group)
        client.check_open()
        if group in client.producers:
            raise ConfigError(f"group {group!r} has a producer in this client already")
        self.client = client
        self.group = group
        self.options = options or ProducerOptions()
        check_batch_limits(self.options)
        self.remoting = client.impl.remoting
        self.preparer = Preparer(self.remoting, self.options)
        self.faults = Faults()
        self.closed = False
        self.checker: Any = None
        """Who answers brokers' questions about transactions."""
        self.guards = Guards(self.options)
        self._guarded = self.guards.needed
        self.trace: Trace | None = None
        if self.options.message_trace:
            self.trace = Trace(self, ProducerEngine(client, Trace.group(group), Trace.options()))
        self._told_of_ends = self._guarded or self.preparer.hooks.listens or self.trace is not None
        self._plainly = not (self._told_of_ends or client.dresses)
        self._hash = client.impl.digest.java_string_hash
        self._future = client.impl.handover.SendFuture
        self._heads: defaultdict[Request, dict[MessageQueue, Any]] = defaultdict(dict)
        self._begin()
        client.producers[group] = self

    def _begin(self) -> None:
        """With nothing on its way: new, or in a forked child."""
        self.budget = Budget(self.options.max_pending_bytes, self.options.max_pending_messages)
        self._batching = Batching(self)
        self.sendings: dict[Sending, None] = {}
        """Requests on their way, each put here by itself."""
        self._counts = {"stored": 0, "weaker": 0, "failed": 0, "unknown": 0}
        self.express = express(self) if self._plainly else None
        ferry = None if self.express is None else self.express.ferry
        self.at_once: Callable[..., Receipt | None] = nothing if ferry is None else ferry.send
        """`send` by the short way, outside of any entry; None: nothing was done, take the long one."""
        self.many_at_once: Callable[..., list[Any] | None] = nothing if ferry is None else ferry.send_many

    def on_route(self, topic: str) -> None:
        """Routes are looked up for each send; where brokers are, for the first one."""
        if self.express is not None:
            self.express.on_route()

    def on_fork(self) -> None:
        """In a forked child: what is on its way is the parent's, who sends it; here it ends without a try."""
        error = ClosedError("the process was forked: messages submitted before are the parent's")
        batching, sendings = self._batching, self.sendings
        self._begin()
        if self.trace is not None:
            self.trace.forget()
        batching.abandon(error)
        for sending in sendings:
            sending.fail(error)

    # ---- outside of any entry

    def prepare(self, message: Message, key: str | None = None) -> Prepared:
        """Checks and bytes."""
        if key is not None:
            check_key(key)
        # The time of the last entry is good enough for an id.
        client, wall_ms = self.client, self.client.driver.now.wall_ms
        plain = self.preparer.plain(message, client.keys, wall_ms, key)
        return self.preparer.one(message, client.keys.next(wall_ms), key) if plain is None else plain

    def submit_late(self, prepared: Prepared, queue: MessageQueue | None = None) -> SendFuture:
        """There was no room: wait for it where that is wanted and possible, else a QueueFullError."""
        driver: Any = self.client.driver
        if self.options.when_full == "refuse" or not self.client.blocking:
            cure = "`await producer.send(…)` waits" if not self.client.blocking else "when_full='block' waits"
            raise QueueFullError(_FULL.format(self.budget.items, self.budget.bytes, cure))
        slot: Slot[None]
        with driver.enter():
            slot = run_steps(self._turn_steps())
        driver.wait(slot)
        with driver.enter():
            slot = self.budget.reserve(prepared.size)
        try:
            driver.wait(slot, driver.deadline(self.options.send_timeout))
        except TimeoutError:
            with driver.enter():
                self.budget.abandon(slot, prepared.size)
            raise QueueFullError(_FULL.format(self.budget.items, self.budget.bytes, "none was in time")) from None
        except BaseException:
            with driver.enter():
                self.budget.abandon(slot, prepared.size)
            raise
        with driver.enter():
            return self._add(prepared, queue)

    # ---- inside

    def send(
        self, prepared: Prepared, deadline: float | None, queue: MessageQueue | None = None
    ) -> tuple[Slot[Stored], int]:
        """Send one message whose sender waits; where its outcome will be: the slot, and the place in its value.

        A thread that waits gains nothing by company, so there it goes alone; unless its key has company before it.
        """
        if self.closed or self.client.closed:
            self.check_open()
        if queue is not None:
            check_queue(queue, prepared.topic)
        if deadline is None:
            deadline = self.deadline(None)
        if self._guarded:
            now = self.client.driver.now.mono
            pause = self.guards.enter(1, now, deadline)
            if pause:
                return run_steps(self._send_paced_steps(prepared, deadline, queue, pause)), 0
        return self._send(prepared, deadline, queue)

    def _send(self, prepared: Prepared, deadline: float, queue: MessageQueue | None) -> tuple[Slot[Stored], int]:
        alone = self.client.blocking or not self.options.batching
        if alone and ((prepared.key is None and queue is None) or not self._batching.busy(prepared, queue)):
            return Sending(self, prepared, deadline, queue).start(), 0
        if not self.budget.take(prepared.size):
            return run_steps(self._send_late_steps(prepared, deadline, queue)), 0
        batch, index = self._batching.add(prepared, deadline, queue)
        return batch.slot, index

    def submit(self, prepared: Prepared, queue: MessageQueue | None = None) -> SendFuture | None:
        """Take one message; its future, or None while there is no room for it: see `submit_late`."""
        self.check_open()
        if queue is not None:
            check_queue(queue, prepared.topic)
        if self.guards.wait(self.client.driver.now.mono) or not self.budget.take(prepared.size):
            return None
        try:
            self._enter_guards(1, self.deadline(None))
        except MQError:
            self.budget.give(prepared.size)
            raise
        return self._add(prepared, queue)

    def submit_many(self, chains: Sequence[Chain], deadline: float | None) -> Slot[list[Part]]:
        """Send many, in batches where that is legal; see `many.results` for the outcome of each."""
        self.check_open()
        if len(chains) == 1 and len(chains[0]) == 1 and not self._guarded:
            alone: Slot[Any] = Lone(self, chains[0][0], self.deadline(deadline)).start()
            return alone
        many = Many(self, chains, self.deadline(deadline))
        pause = self._enter_guards(sum(len(part.indexes) for chain in chains for part in chain), many.deadline)
        if pause:
            self.client.timers.after(pause, lambda _: many.pump())
        else:
            many.pump()
        return many.slot

    def submit_oneway(self, prepared: Prepared) -> Slot[None]:
        """Send without an answer; done when it is written."""
        self.check_open()
        return run_steps(self._oneway_steps(prepared))

    def flush(self) -> Slot[None]:
        """Nothing gathers any longer; done when everything taken so far has its outcome."""
        self._batching.flush()
        if self.express is not None:
            self.express.give_slots()
        waiting: list[Slot[Any]] = [batch.slot for batch in self._batching.open]
        waiting += list(self.sendings)
        return run_steps(_all_steps(waiting))

    def account(self) -> Account:
        """What became of all messages so far, those of `send_oneway` aside."""
        pending = sum(len(sending.prepared.ids) for sending in self.sendings)
        pending += sum(len(batch.ids) for batch in self._batching.open if batch.first is not None)
        counts = dict(self._counts)
        if self.express is not None:
            pending += self.express.pending
            counts["stored"] += self.express.landed
        return Account(**counts, pending=pending)

    def close(self) -> Slot[Account]:
        """Flush, tell the brokers; the value accounts for every message."""
        return run_steps(self.close_steps())

    def close_steps(self) -> Steps[Account]:
        """Each message has a deadline, so that this ends, too."""
        if self.closed:
            return self.account()
        self.closed = True
        if self.express is not None:
            self.express.close()
        self.budget.close(ClosedError(f"the producer {self.group!r} is closed"))
        if not self.client.closed:
            yield self.flush()
        if self.checker is not None:
            yield from self.checker.close_steps()
        if self.trace is not None:
            yield from self.trace.close_steps()
        self.client.producers.pop(self.group, None)
        if not self.client.closed:
            farewells = []
            for name, address in self.client.routes.masters().items():
                fields = requests.unregister(self.client.client_id, producer=self.group, broker=name)
                farewells.append(self.client.ask(address, Request.UNREGISTER_CLIENT, fields))
            yield gather(farewells)
        return self.account()

    # ---- used by sendings and batches

    def encode(self, opaque: int, prepared: Prepared, queue: MessageQueue, now: int, *, oneway: bool = False) -> bytes:
        """The request's frame; `now`: milliseconds on the wall."""
        head = self._heads[prepared.code].get(queue) or self.head(queue, prepared.code)
        frame: bytes = head.frame(
            opaque, prepared.properties, prepared.body, now, prepared.sys_flag, prepared.flag, oneway
        )
        return frame

    def encode_apart(self, opaque: int, prepared: Prepared, queue: MessageQueue, now: int) -> bytes:
        """The request's frame up to its body, which is sent from where it lies."""
        frame: bytes = self.remoting.encode_send(
            opaque,
            self.group,
            queue.topic,
            queue.queue_id,
            prepared.properties,
            b"",
            born_at=now,
            code=prepared.code,
            sys_flag=prepared.sys_flag,
            flag=prepared.flag,
            batch=prepared.code is _BATCH,
            broker=queue.broker_name,
            default_queues=self.options.new_topic_queues,
            behind=len(prepared.body),
        )
        return frame

    def head(self, queue: MessageQueue, code: Request) -> Any:
        """What requests to this queue have in common, made once."""
        heads = self._heads[code]
        if len(heads) >= MOST_HEADS:
            heads.clear()
        head = heads[queue] = self.remoting.SendHead(
            self.group,
            queue.topic,
            queue.queue_id,
            code=code,
            batch=code is _BATCH,
            broker=queue.broker_name,
            default_queues=self.options.new_topic_queues,
        )
        return head

    def choose(self, route: Route, key: str | None, avoid: str | None) -> MessageQueue:
        """The key's own queue, as Java's selector by hash has it; else the next in turn."""
        if key is None:
            ailing = self.faults.avoided(self.client.driver.now.mono) if self.options.avoid_slow_brokers else ()
            return self.client.routes.pick(route, avoid, ailing)
        # Java's remainder keeps the sign of the hash; its absolute value is what counts.
        index: int = abs(self._hash(key)) % len(route.writable)
        return route.writable[index]

    def other_broker(self, queue: MessageQueue) -> bool:
        """Whether another broker could take what this queue's did not."""
        route = self.client.routes.get(queue.topic)
        return route is not None and route.several

    def ended(self, sending: Sending, outcome: Stored | BaseException) -> None:
        if self.sendings.pop(sending, sending) is not None:  # of before the fork
            return
        safe = type(outcome) is Stored and outcome.status is SAFE
        self._counts["stored" if safe else _verdict(outcome)] += len(sending.prepared.ids)
        if not self._told_of_ends:
            return
        hooks = self.preparer.hooks
        now, error = self.client.driver.now.mono, outcome if isinstance(outcome, BaseException) else None
        self.guards.told(error, now)
        if hooks.listens:
            self.client.driver.run_user(hooks.tell, self._told(sending, outcome, now))
        if self.trace is not None and isinstance(outcome, Stored):
            self.trace.sent(sending.prepared, outcome, sending.where, now - sending.started)

    def _told(self, sending: Sending, outcome: Stored | BaseException, now: float) -> Sent:
        prepared = sending.prepared
        status, error = (outcome.status, None) if isinstance(outcome, Stored) else ("", outcome)
        seconds = now - sending.started
        return Sent(prepared.topic, self.group, prepared.ids, len(prepared.body), seconds, sending.where, status, error)

    def _enter_guards(self, count: int, deadline: float) -> float:
        return self.guards.enter(count, self.client.driver.now.mono, deadline) if self.guards.needed else 0.0

    def _turn_steps(self) -> Steps[None]:
        """Wait until the rate limit lets the next message go."""
        pause = self._enter_guards(1, self.deadline(None))
        if pause:
            yield self.client.timers.sleep(pause)

    def _send_paced_steps(
        self, prepared: Prepared, deadline: float, queue: MessageQueue | None, pause: float
    ) -> Steps[Any]:
        yield self.client.timers.sleep(pause)
        self.check_open()
        slot, index = self._send(prepared, deadline, queue)
        stored = yield slot
        return [stored[index]]

    def deadline(self, deadline: float | None) -> float:
        return self.client.driver.now.mono + self.options.send_timeout if deadline is None else deadline

    def check_open(self) -> None:
        if self.closed or self.client.closed:
            raise ClosedError(f"the producer {self.group!r} is closed")

    def _add(self, prepared: Prepared, queue: MessageQueue | None) -> SendFuture:
        if self.closed:  # while we waited for room
            self.budget.give(prepared.size)
            self.check_open()
        batch, index = self._batching.add(prepared, self.deadline(None), queue)
        future: SendFuture = self._future(batch, index)
        return future

    def _send_late_steps(self, prepared: Prepared, deadline: float, queue: MessageQueue | None) -> Steps[Any]:
        yield self.budget.reserve(prepared.size)
        batch, index = self._batching.add(prepared, deadline, queue)
        stored = yield batch.slot
        return [stored[index]]

    def _oneway_steps(self, prepared: Prepared) -> Steps[None]:
        yield from self._turn_steps()
        route = self.client.routes.get(prepared.topic)
        if route is None or not route.writable:
            route = yield self.client.routes.publish(prepared.topic)
        queue = self.choose(route, prepared.key, None)
        address = self.client.sending_address(queue.broker_name)
        self.client.write(
            address, self.encode(self.client.opaque(), prepared, queue, self.client.driver.now.wall_ms, oneway=True)
        )


def nothing(*_: Any) -> None:
    """Of a producer whose threads do not wait, or whose sends have more to them: all go the long way."""


def _all_steps(slots: Sequence[Slot[Any]]) -> Steps[None]:
    yield gather(list(slots))


def _verdict(outcome: Stored | BaseException) -> str:
    if isinstance(outcome, Stored):
        return "stored" if outcome.status == SAFE else "weaker"
    return "unknown" if getattr(outcome, "outcome_unknown", True) else "failed"


def checked(results: list[R], raise_on_error: bool) -> list[R]:
    """The results of a `send_many`, raised as one error if that was asked for and one of them failed."""
    if raise_on_error and not all(map(_OK, results)):
        raise PartialSendError(results)
    return results
