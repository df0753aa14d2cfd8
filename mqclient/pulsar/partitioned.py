"""Owns the producer of a partitioned topic: one producer each, who gets which message, and the topic's growth."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mqclient.core.budget import Budget
from mqclient.core.driver import Now
from mqclient.core.slot import Slot, failed
from mqclient.core.steps import Steps, gather, run_steps
from mqclient.core.timers import Timer
from mqclient.errors import ClosedError, ConfigError, MQError
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.columns import Rows
from mqclient.pulsar.gathering import shut_door
from mqclient.pulsar.hooking import hooked, send_hooks
from mqclient.pulsar.names import TopicName
from mqclient.pulsar.options import ProducerOptions
from mqclient.pulsar.outgoing import Mixed, Part, Scattered, as_run, plain, preparing
from mqclient.pulsar.producer import ProducerEngine
from mqclient.pulsar.routing import Routed, key_hash, router

if TYPE_CHECKING:
    from mqclient._native.handover import SendFuture
    from mqclient._native.pulsar import MessageId
    from mqclient.pulsar.schema.base import Schema

log = logging.getLogger("mqclient.pulsar")


class PartitionedProducer:
    """As a `ProducerEngine`, of all partitions together. The order of messages holds within a partition.

    Messages without key stay with a partition as long as its batch gathers: so batches are full, and where nothing
    gathers each message goes to the next partition.
    """

    def __init__(self, client: ClientEngine, topic: TopicName, options: ProducerOptions, count: int) -> None:
        self.client = client
        self.topic = topic
        self.options = options
        self.children: list[ProducerEngine] = []
        self.window = Budget(0, options.max_pending)
        self.failure: MQError | None = None
        self._hash = key_hash(client.impl.digest, options.hashing)
        self._at = client.random.randrange(count)
        self._hooks = send_hooks(options.hooks)
        self._single = options.routing == "single"
        self._growth: Timer | None = None
        self._count = count
        self.prepare = self.preparing(options.schema)

    def preparing(self, schema: Schema[Any] | None) -> Any:
        """What makes messages of values, of this schema instead of the producer's own."""
        make = hooked(preparing(self.options.schema, schema), self._hooks, str(self.topic))
        routing = self.options.routing
        return router(routing, lambda: len(self.children), make) if callable(routing) else make

    # ---- life

    def open_steps(self, deadline: float) -> Steps[None]:
        """All partitions, or none: the first error ends it."""
        self.children = self._make(range(self._count))
        opened = yield gather([child.open(deadline) for child in self.children])
        wrong = next((at for at, slot in enumerate(opened) if slot.error is not None), None)
        if wrong is not None:
            failure = self.children[wrong].failure or opened[wrong].error
            yield gather([run_steps(child.close_steps()) for child in self.children])
            assert failure is not None
            raise failure
        self._later()

    def _make(self, numbers: range) -> list[ProducerEngine]:
        made = [
            ProducerEngine(self.client, self.topic.partitioned(number), self.options, self.window) for number in numbers
        ]
        for child in made:
            child.on_wake = self._on_wake
        return made

    def _on_wake(self) -> None:
        """A forked child, whose timers are gone."""
        if self._growth is not None:
            self._growth.cancel()
        self._later()

    def _later(self) -> None:
        if self.options.partition_refresh and self.failure is None:
            self._growth = self.client.timers.after(self.options.partition_refresh, self._look)

    def _look(self, now: Now) -> None:
        self._growth = None
        run_steps(self._grow_steps()).then(self._looked)

    def _looked(self, slot: Slot[None]) -> None:
        if slot.error is not None:
            log.warning("the partitions of %s: %s; asked again later", self.topic, slot.error)
        self._later()

    def _grow_steps(self) -> Steps[None]:
        """Partitions never become fewer; a producer that cannot be opened now is tried the next time."""
        count = yield run_steps(self.client.partitions_steps(self.topic, self.client.deadline()))
        for child in self._make(range(len(self.children), count)):
            try:
                yield child.open(self.client.deadline())
            except MQError as error:
                child.abandon(error)
                raise
            if self.failure is not None:
                yield run_steps(child.close_steps())
                return
            self.children.append(child)

    def close_steps(self) -> Steps[None]:
        if self.failure is not None:
            return
        self._end(ClosedError(f"the producer of {self.topic} is closed"))
        yield gather([run_steps(child.close_steps()) for child in self.children])

    def give_up(self, error: MQError) -> None:
        """See `ProducerEngine.give_up`; the first error of a partition ends all of them."""
        for child in self.children:
            child.give_up(error)

    def abandon(self, error: MQError) -> None:
        self._end(error)
        for child in self.children:
            child.abandon(error)

    def _end(self, error: MQError) -> None:
        self.failure = error
        if self._growth is not None:
            self._growth.cancel()

    # ---- asked by the face

    @property
    def name(self) -> str:
        return self.children[0].name

    @property
    def published(self) -> int:
        return max(child.published for child in self.children)

    def submit(self, message: Any, reserved: bool = False) -> SendFuture | None:
        child, own = self._route(message)
        return child.submit(own, reserved)

    def door(self, prepare: Any) -> Any:
        """Shut: which partition a message goes to is decided for each."""
        return shut_door(self.client)

    def board(self, message: Any) -> SendFuture | None:
        """A message without key joins what gathers where the last one went. Trains do not gather in this sense: of
        those each message goes to the next partition."""
        if not self.options.batching or type(message) is not tuple or message[1] is not None:
            return None
        return self.children[self._at].board(message)

    def submit_late(self, message: Any) -> SendFuture:
        with self.client.driver.enter():
            child, own = self._route(message)
        return child.submit_late(own)

    def send(self, message: Any) -> Slot[MessageId]:
        child, own = self._route(message)
        return child.send(own)

    def express(self, message: Any) -> Slot[MessageId] | None:
        """A message without key joins what gathers where the last one went."""
        if not self.options.batching or type(message) is not tuple or message[1] is not None:
            return None
        return self.children[self._at].express(message)

    def send_awaited(self, message: Any, timeout: float | None) -> Slot[MessageId]:
        child, own = self._route(message)
        return child.send_awaited(own, timeout)

    def send_many(self, items: Sequence[Any]) -> Slot[list[Part] | Scattered]:
        steps: Steps[Any] = self._send_many_steps(items)
        return run_steps(steps)

    def send_rows(self, columns: Mapping[str, Any], rows: int, first: int | None = None) -> Slot[list[Rows]]:
        """All rows of one call to one partition, the next one: whoever wants them by key makes calls by key."""
        if first is not None:
            return failed(ConfigError("sequence ids are a partition's own: open a producer of the partition"))
        return self._next().send_rows(columns, rows)

    def flush(self) -> Slot[None]:
        return run_steps(self._flush_steps())

    def diagnose(self) -> dict[str, Any]:
        shown = [child.diagnose() for child in self.children]
        sums = ("gathering", "pending", "messages", "batches", "late", "resent")
        states = {child["state"] for child in shown}
        return {
            "topic": str(self.topic),
            "name": self.name,
            "state": "attached" if states == {"attached"} else "closed" if self.failure else "opening",
            "last_sequence_id": self.published,
            **{name: sum(child[name] for child in shown) for name in sums},
            "partitions": shown,
        }

    def _flush_steps(self) -> Steps[None]:
        yield gather([child.flush() for child in self.children])

    def _send_many_steps(self, items: Sequence[Any]) -> Steps[Scattered]:
        ways = [(places, child, child.send_many(own)) for places, child, own in self._divide(items)]
        yield gather([slot for _, _, slot in ways])
        if ways and all(slot.error is not None for _, _, slot in ways):
            ways[0][2].result()  # raises: nothing was taken
        found: list[tuple[Sequence[int], list[Part]]] = []
        for places, child, slot in ways:
            if slot.error is None:
                parts: Any = slot.result()
            else:
                error = slot.error if isinstance(slot.error, MQError) else MQError(str(slot.error))
                parts = [Part(child.refused(error, len(places)), 0, len(places))]
            found.append((places, parts))
        return Scattered(len(items), found)

    # ---- who gets what

    def _route(self, message: Any) -> tuple[ProducerEngine, Any]:
        if type(message) is Routed:
            return self.children[message.partition], message.message
        key = plain(message)[1]
        if key is not None:
            return self.children[self._hash(key) % len(self.children)], message
        return self._next(), message

    def _next(self) -> ProducerEngine:
        """Where messages without key go now."""
        if not self._single and not self.children[self._at].gathers:
            self._at = (self._at + 1) % len(self.children)
        return self.children[self._at]

    def _divide(self, items: Sequence[Any]) -> Iterator[tuple[Sequence[int], ProducerEngine, Sequence[Any]]]:
        """Of each way which messages it takes, as places, and they themselves; bodies go in runs."""
        if type(items) is not Mixed and (not items or all(type(item) is bytes or item[1] is None for item in items)):
            size = len(items) if self._single else self.options.batch_max_messages if self.options.batching else 1
            for start in range(0, len(items), max(size, 1)):
                run = items[start : start + size]
                yield range(start, start + len(run)), self._next(), run
            return
        ways: dict[ProducerEngine, tuple[list[int], list[Any]]] = {}
        for place, message in enumerate(items):
            child, own = (self._next(), message) if type(message) is bytes else self._route(message)
            places, run = ways.setdefault(child, ([], []))
            places.append(place)
            run.append(own)
        for child, (places, run) in ways.items():
            yield places, child, as_run(run)
