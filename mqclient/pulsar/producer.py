"""Owns one producer: sequence ids, the batch that gathers, entries without receipt in order, their resending."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mqclient.core.driver import Now
from mqclient.core.slot import Slot, completed, failed
from mqclient.core.steps import Steps, run_steps
from mqclient.core.timers import Timer
from mqclient.errors import ClosedError, ConfigError, DeadlineError, LinkError, MQError
from mqclient.pulsar import requests
from mqclient.pulsar.attachment import Attachment
from mqclient.pulsar.batch import Batch
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.codes import ServerError
from mqclient.pulsar.columns import Rows
from mqclient.pulsar.connection import Connection
from mqclient.pulsar.names import TopicName
from mqclient.pulsar.options import ProducerOptions

if TYPE_CHECKING:
    from mqclient._native.handover import SendFuture
    from mqclient._native.pulsar import MessageId

log = logging.getLogger("mqclient.pulsar")

Item = tuple[Any, str | None, Mapping[str, str] | None, int, bytes | None, int, bool]
"""A message as the batch builder takes it: body, key, properties, event time, ordering key, sequence id (-1: the next
one), whether the key is base64. In bulk a message that is nothing but a body may stand there as its bytes."""


def prepare(
    body: Any,
    key: str | bytes | None = None,
    properties: Mapping[str, str] | None = None,
    event_time: int = 0,
    ordering_key: bytes | None = None,
) -> Item:
    """Check a message and put it in the builder's form; outside of any entry. A body of None is a null value."""
    if body is not None and not isinstance(body, (bytes, bytearray, memoryview)):
        cure = ".encode() it" if isinstance(body, str) else "turn it into bytes, e.g. json.dumps(body).encode()"
        raise TypeError(f"a body is bytes-like, not {type(body).__name__}: {cure}")
    if isinstance(key, bytes):
        return body, b64encode(key).decode(), properties, event_time, ordering_key, -1, True
    return body, key, properties, event_time, ordering_key, -1, False


def prepare_many(messages: Sequence[Any]) -> Sequence[Item | bytes]:
    """Bodies stay as they are; a tuple holds the arguments of `prepare`."""
    if set(map(type, messages)) <= {bytes}:
        return messages
    return [prepare(*message) if type(message) is tuple else prepare(message) for message in messages]


_ROWS: Item = (b"", None, None, 0, None, -1, False)
"""Stands for an entry of rows where room is reserved."""


def _item(message: Item | bytes) -> Item:
    return prepare(message) if isinstance(message, bytes) else message


Part = tuple[Batch, int, int]
"""A run of messages in one batch: the batch, the first index, the index after the last."""


def results(parts: list[Part]) -> list[Any]:
    """The outcome of each message, in order: an id or an error. Made outside of any entry."""
    return [outcome for batch, start, stop in parts for outcome in batch.outcomes(start, stop)]


class _Full(Exception):
    """No room for another batch now."""


class ProducerEngine:
    """One producer of one topic or partition. Receipts come in the order of sending; so do resends."""

    def __init__(self, client: ClientEngine, topic: TopicName, options: ProducerOptions) -> None:
        self.client = client
        self.topic = topic
        self.options = options
        self.name = options.name or ""
        self.producer_id = client.next_producer_id()
        self.attachment = Attachment(client, topic, self, f"producer of {topic}")
        self._codec = client.impl.pulsar
        self._future = client.impl.handover.SendFuture
        self._builder = self._codec.BatchBuilder(options.batch_max_messages, options.batch_max_bytes)
        self._gathering: Batch | None = None
        self._pending: deque[Batch] = deque()
        self._next_sequence = 0 if options.initial_sequence_id is None else options.initial_sequence_id + 1
        self._named = False
        self._idle_asked = False
        self._late = 0
        self._linger: Timer | None = None
        self._expiry: Timer | None = None
        self._failure: MQError | None = None
        self.published = -1
        self.counts = {"messages": 0, "batches": 0, "late": 0, "resent": 0}

    # ---- asked by the face

    def open(self, deadline: float) -> Slot[None]:
        self.client.join(self)
        return self.attachment.start(deadline)

    def submit(self, item: Item, reserved: bool = False) -> SendFuture | None:
        """Take one message; its future, or None while there is no room for it: see `submit_late`."""
        try:
            batch = self._add(item, reserved)
        except _Full:
            return None
        future: SendFuture = self._future(batch, batch.count - 1)
        return future

    def submit_late(self, item: Item) -> SendFuture:
        """Outside of any entry: wait for room, where waiting is possible."""
        driver: Any = self.client.driver
        if not self.client.blocking:
            raise MQError("more is in flight than memory_limit allows: `await producer.send(…)` waits, submit cannot")
        future = None
        while future is None:
            with driver.enter():
                slot = self._reserve(item)
            driver.wait(slot)
            with driver.enter():
                future = self.submit(item, reserved=True)
        return future

    def send(self, item: Item) -> Slot[MessageId]:
        """Take one message; a slot for its id."""
        try:
            return self._watch_last(self._add(item))
        except _Full:
            return run_steps(self._send_late_steps(item))
        except MQError as error:
            return failed(error)

    def send_many(self, items: Sequence[Item | bytes]) -> Slot[list[Part]]:
        """Take many in one go; done when each has its outcome, see `results`."""
        return run_steps(self._send_many_steps(items))

    def send_rows(self, columns: Mapping[str, Any], rows: int) -> Slot[list[Rows]]:
        """Take rows of Arrow columns, in entries of their own; done when each has its outcome."""
        if not self.options.batching:
            return failed(ConfigError("rows travel in batches: send_arrow needs a producer with batching=True"))
        return run_steps(self._send_rows_steps(columns, rows))

    def _send_late_steps(self, item: Item) -> Steps[MessageId]:
        while True:
            yield self._reserve(item)
            try:
                batch = self._add(item, reserved=True)
                break
            except _Full:  # the room was for a batch that somebody else had begun, and which is full
                continue
        message_id: MessageId = yield self._watch_last(batch)
        return message_id

    def _send_many_steps(self, items: Sequence[Item | bytes]) -> Steps[list[Part]]:
        parts: list[Part] = []
        start, reserved = 0, False
        while start < len(items):
            try:
                start = self._add_run(items, start, parts, reserved)
                reserved = False
            except _Full:
                yield self._reserve(_item(items[start]))
                reserved = True
            except MQError as error:
                if not parts:
                    raise
                parts.append((self._refused(error, len(items) - start), 0, len(items) - start))
                break
        for batch in dict.fromkeys(part[0] for part in parts):
            done: Slot[None] = Slot()
            batch.then(lambda _, done=done: done.complete(None))  # type: ignore[misc]
            yield done
        return parts

    def _send_rows_steps(self, columns: Mapping[str, Any], rows: int) -> Steps[list[Rows]]:
        parts: list[tuple[Batch, int, int]] = []
        start, reserved = 0, False
        while start < rows:
            try:
                batch, following = self._take_rows(columns, start, rows, reserved)
            except _Full:
                yield self._reserve(_ROWS)
                reserved = True
            except MQError as error:
                if not parts:
                    raise
                parts.append((self._refused(error, rows - start), start, rows))
                break
            else:
                parts.append((batch, start, following))
                start, reserved = following, False
        for batch, _, _ in parts:
            done: Slot[None] = Slot()
            batch.then(lambda _, done=done: done.complete(None))  # type: ignore[misc]
            yield done
        return [Rows(start, stop, batch.outcome(0)) for batch, start, stop in parts]

    def _take_rows(self, columns: Mapping[str, Any], start: int, stop: int, reserved: bool) -> tuple[Batch, int]:
        """One entry of rows, behind what gathers; the row after its last."""
        self._check(_ROWS, reserved)
        if self._gathering is not None:
            self._seal()
        portion = self._take_room(_ROWS, reserved)
        batch = self._new_batch(_ROWS)
        options = self.options
        most = min(stop, start + options.batch_max_messages)
        try:
            payload, following = self._codec.encode_columns(
                columns, start, most, sequence_id=batch.sequence_id, max_bytes=options.batch_max_bytes
            )
        except MQError:
            self.client.budget.give(*portion)
            raise
        batch.count = following - start
        self._next_sequence += batch.count
        metadata = self._codec.encode_metadata(
            self.name, batch.sequence_id, batch.published_at, num_messages=batch.count
        )
        batch.held = (min(len(payload), portion[0]), 1)
        self._frame(batch, metadata, payload, batch.count)
        self.client.budget.give(portion[0] - batch.held[0], 0)
        return batch, following

    def _refused(self, error: MQError, count: int) -> Batch:
        """Messages that were never taken, because the producer ended before it was their turn."""
        batch = Batch(self.client, self.topic.partition, self._next_sequence, 0.0)
        batch.count = count
        batch.fail(error)
        return batch

    @staticmethod
    def _watch_last(batch: Batch) -> Slot[MessageId]:
        # Refused at once, for its size, it has its outcome already.
        return failed(batch.error) if batch.error is not None else batch.watch(batch.count - 1)

    def flush(self) -> Slot[None]:
        """Send what gathers; done when everything taken so far has its outcome."""
        if self._gathering is not None:
            self._seal()
        if not self._pending:
            return completed(None)
        slot: Slot[None] = Slot()
        self._pending[-1].then(lambda _: slot.complete(None))
        return slot

    def close_steps(self) -> Steps[None]:
        """Flush, say goodbye, and account for what is left."""
        if self.attachment.state == "closed":
            return
        yield self.flush()
        connection = self.attachment.connection
        if connection is not None and self.attachment.attached:
            connection.producers.pop(self.producer_id, None)
            try:
                yield connection.request(requests.close_producer(self.producer_id), self.client.deadline())
            except MQError as error:
                log.debug("closing the producer of %s: %s", self.topic, error)
        self.abandon(ClosedError(f"the producer of {self.topic} is closed"))

    def abandon(self, error: MQError) -> None:
        """Now, without a word to the broker: what has no receipt fails, its outcome unknown."""
        self.attachment.close(error)
        self.on_failed(error)

    def diagnose(self) -> dict[str, Any]:
        return {
            "topic": str(self.topic),
            "name": self.name,
            "state": self.attachment.state,
            "gathering": self._builder.count,
            "pending": sum(batch.count for batch in self._pending),
            "last_sequence_id": self.published,
            **self.counts,
        }

    # ---- told by attachment and connection

    def open_steps(self, connection: Connection, deadline: float) -> Steps[None]:
        connection.producers[self.producer_id] = self
        command = requests.producer(
            str(self.topic),
            self.producer_id,
            name=self.name or None,
            user_provided=self.options.name is not None,
            epoch=self.attachment.epoch - 1,
            metadata=self.options.properties,
        )
        try:
            reply = yield connection.request(command, deadline)
        except MQError as error:
            connection.producers.pop(self.producer_id, None)
            if isinstance(error, DeadlineError):  # the broker may have made it meanwhile: it would be busy for ever
                connection.tell(requests.close_producer(self.producer_id))
            raise
        self.name = reply.producer_name
        if not self._named and self.options.initial_sequence_id is None:
            self._next_sequence = reply.last_sequence_id + 1
        self._named = True
        # Not attached yet, so sealing only queues: what is resent and what is new go out once, in order.
        if self._gathering is not None:
            self._seal()
        self.counts["resent"] += len(self._pending)
        connection.write(*[batch.frame for batch in self._pending])

    def on_lost(self, connection: Connection, cause: MQError) -> None:
        self.attachment.on_lost(connection)

    def on_closed_by_broker(self, connection: Connection, broker_url: str | None) -> None:
        self.attachment.on_closed_by_broker(connection, broker_url)

    def on_failed(self, error: MQError) -> None:
        self._failure = error
        self.client.leave(self)
        if self._gathering is not None:
            self._seal()
        for timer in (self._linger, self._expiry):
            if timer is not None:
                timer.cancel()
        pending, self._pending = self._pending, deque()
        for batch in pending:
            batch.fail(error)

    def on_receipt(self, sequence_id: int, ledger: int, entry: int) -> None:
        pending = self._pending
        if not pending or sequence_id < pending[0].sequence_id:
            self.counts["late"] += 1
            return
        head = pending[0]
        if sequence_id > head.last_sequence_id:
            # The receipt of an entry that we sent later came first: only sending anew tells what the broker has.
            self._restart(f"receipt {sequence_id} while {head.sequence_id} is the next of {self.topic}")
            return
        pending.popleft()
        self.published = head.last_sequence_id
        head.complete(ledger, entry)
        if not pending and self._gathering is not None:
            self._seal()

    def on_send_error(self, sequence_id: int, error: MQError) -> None:
        if error.code == ServerError.TopicTerminatedError:
            self.abandon(error)
        elif error.code in (ServerError.ChecksumError, ServerError.NotAllowedError):
            if self._pending and self._pending[0].sequence_id <= sequence_id <= self._pending[0].last_sequence_id:
                self._pending.popleft().fail(error)
        else:
            self._restart(f"{self.topic}: {error}")

    def _restart(self, why: str) -> None:
        connection = self.attachment.connection
        if connection is not None:
            connection.link.abort(LinkError(why))

    # ---- gathering and sealing

    def _portion(self, item: Item) -> tuple[int, int]:
        """What is reserved before an entry begins. A batch reserves its limit; sealed, it gives back what it did not
        need."""
        return (self.options.batch_max_bytes if self.options.batching else len(item[0] or b""), 1)

    def _reserve(self, item: Item) -> Slot[None]:
        """Room for the entry that begins with this message, when it is our turn; then add it, with `reserved`."""
        self._late += 1
        return self.client.budget.reserve(*self._portion(item))

    def _take_room(self, item: Item, reserved: bool) -> tuple[int, int]:
        portion = self._portion(item)
        if not reserved and not self.client.budget.take(*portion):
            raise _Full
        return portion

    def _check(self, item: Item, reserved: bool) -> bool:
        """Whether what was reserved is needed: not if somebody else has begun a batch meanwhile. The rest is given
        back *after* the message was added, for it wakes the next one, who must not overtake it."""
        if reserved:
            self._late -= 1
        if self._failure is not None:
            if reserved:
                self.client.budget.give(*self._portion(item))
            raise self._failure
        if self._late and not reserved:
            raise _Full  # others wait already: no message overtakes them
        return reserved and (self._gathering is None or self._overflows(item))

    def _overflows(self, item: Item) -> bool:
        """Whether the message does not fit into the batch that gathers."""
        size = 0 if item[0] is None else len(item[0])
        return bool(self._builder.count) and self._builder.size + size > self.options.batch_max_bytes

    def _add(self, item: Item, reserved: bool = False) -> Batch:
        needed = self._check(item, reserved)
        if not self.options.batching:
            return self._add_alone(item, reserved)
        unused = self._make_room(item, needed)
        batch = self._gathering or self._gather(item, needed)
        body, key, properties, event_time, ordering_key, _, key_b64 = item
        sequence_id = batch.sequence_id + batch.count
        size = self._builder.add(body, key, properties, event_time, ordering_key, sequence_id, key_b64)
        batch.count += 1
        self._next_sequence = sequence_id + 1
        if batch.count >= self.options.batch_max_messages or size >= self.options.batch_max_bytes:
            self._seal()
        self._give_back(item, unused, reserved and not needed)
        return batch

    def _add_alone(self, item: Item, reserved: bool) -> Batch:
        """An entry that is not batch-framed."""
        body, key, properties, event_time, ordering_key, _, key_b64 = item
        portion = self._take_room(item, reserved)
        batch = self._new_batch(item)
        batch.held = portion
        batch.batched = False
        batch.count = 1
        self._next_sequence += 1
        metadata = self._codec.encode_metadata(
            self.name,
            batch.sequence_id,
            batch.published_at,
            properties=properties,
            partition_key=key,
            key_b64=key_b64 or None,
            ordering_key=ordering_key,
            event_time=event_time,
            null_value=body is None,
        )
        self._frame(batch, metadata, b"" if body is None else body, 0)
        return batch

    def _add_run(self, items: Sequence[Item | bytes], start: int, parts: list[Part], reserved: bool) -> int:
        """One crossing: what fits into the gathering batch, or one entry; the index of what comes next."""
        first = _item(items[start])
        needed = self._check(first, reserved)
        if not self.options.batching:
            parts.append((self._add_alone(first, reserved), 0, 1))
            return start + 1
        unused = self._make_room(first, needed)
        batch = self._gathering or self._gather(first, needed)
        following: int = self._builder.add_many(items, start, self._next_sequence)
        parts.append((batch, batch.count, batch.count + following - start))
        batch.count += following - start
        self._next_sequence += following - start
        if following < len(items) or batch.count >= self.options.batch_max_messages:
            self._seal()
        self._give_back(first, unused, reserved and not needed)
        return following

    def _gather(self, item: Item, reserved: bool) -> Batch:
        """A new batch. While nothing is in flight it leaves as soon as this turn ends; else a receipt sends it."""
        portion = self._take_room(item, reserved)
        batch = self._new_batch(item)
        batch.held = portion
        self._gathering = batch
        if not self._pending and not self._idle_asked:
            self._idle_asked = True
            self.client.driver.end_of_turn(self._on_idle)
        elif self._linger is None:
            self._linger = self.client.timers.after(self.options.linger, self._on_linger)
        return batch

    def _new_batch(self, item: Item) -> Batch:
        deadline = self.client.driver.now.mono + self.options.send_timeout
        batch = Batch(self.client, self.topic.partition, self._next_sequence, deadline)
        batch.first = item
        return batch

    def _on_idle(self) -> None:
        self._idle_asked = False
        if self._gathering is not None and not self._pending:
            self._seal()

    def _on_linger(self, now: Now) -> None:
        """One alarm for all batches: it looks when the present one is due, and comes again."""
        self._linger = None
        if self._gathering is None:
            return
        due = self._gathering.deadline - self.options.send_timeout + self.options.linger
        if due <= now.mono:
            self._seal()
        else:
            self._linger = self.client.timers.at(due, self._on_linger)

    def _make_room(self, item: Item, reserved: bool) -> int:
        """Close the gathering batch if the message does not fit. With room reserved for the next one, what this one did
        not need is given back later; without, at once, for the next one may need it."""
        if not self._overflows(item):
            return 0
        unused = self._close_batch()
        if not reserved:
            self.client.budget.give(unused, 0)
        return unused if reserved else 0

    def _give_back(self, item: Item, unused: int, portion: bool) -> None:
        if unused:
            self.client.budget.give(unused, 0)
        if portion:
            self.client.budget.give(*self._portion(item))

    def _seal(self) -> None:
        """The gathering batch becomes an entry; room that it did not need may wake somebody who adds the next one."""
        self.client.budget.give(self._close_batch(), 0)

    def _close_batch(self) -> int:
        """The gathering batch becomes an entry; how many bytes it had reserved and did not need."""
        batch, self._gathering = self._gathering, None
        assert batch is not None
        payload, count = self._builder.seal()
        _, key, _, _, ordering_key, _, key_b64 = batch.first
        metadata = self._codec.encode_metadata(
            self.name,
            batch.sequence_id,
            batch.published_at,
            partition_key=key,
            key_b64=key_b64 or None,
            ordering_key=ordering_key,
            num_messages=count,
        )
        reserved, _ = batch.held
        batch.held = (min(len(payload), reserved), 1)
        self._frame(batch, metadata, payload, count)
        return int(reserved - min(len(payload), reserved))

    def _frame(self, batch: Batch, metadata: bytes, payload: Any, num_messages: int) -> None:
        """In order from here on; written at once if the producer is attached."""
        size = len(metadata) + len(payload)
        connection = self.attachment.connection
        limit = connection.max_message_size if connection is not None else self._codec.MAX_MESSAGE
        if size > limit:
            batch.fail(ConfigError(f"a message of {len(payload)} bytes: the broker takes {limit} with its metadata"))
            return
        batch.frame = self._codec.encode_send(
            self.producer_id, batch.sequence_id, metadata, payload, num_messages=num_messages
        )
        self.counts["messages"] += batch.count
        self.counts["batches"] += 1
        if not self._pending:
            self._watch(batch.deadline)
        self._pending.append(batch)
        if connection is not None and self.attachment.attached:
            connection.write(batch.frame)

    # ---- the send timeout

    def _watch(self, when: float) -> None:
        # An earlier alarm than needed looks again; a later one does not exist, for deadlines only grow.
        if self._expiry is None:
            self._expiry = self.client.timers.at(when, self._on_expiry)

    def _on_expiry(self, now: Now) -> None:
        self._expiry = None
        while self._pending and self._pending[0].deadline <= now.mono:
            batch = self._pending.popleft()
            seconds = self.options.send_timeout
            batch.fail(DeadlineError(f"no receipt from {self.topic} in {seconds} s").about(request="CommandSend"))
        if self._pending:
            self._watch(self._pending[0].deadline)
