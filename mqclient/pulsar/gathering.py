"""Owns the batch that gathers: room reserved for it, when it is sealed, what travels in an entry of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from mqclient.core.budget import Budget
from mqclient.core.driver import Now
from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, run_steps
from mqclient.core.timers import Timer
from mqclient.errors import ConfigError, MQError
from mqclient.pulsar.batch import Batch
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.framing import Framer
from mqclient.pulsar.lots import Introductions, Told
from mqclient.pulsar.outgoing import Item, Part, Special, as_item, plain, size_of

if TYPE_CHECKING:
    from mqclient._native.handover import SendFuture
    from mqclient.pulsar.options import ProducerOptions


class Full(Exception):
    """No room now: `reserve`, then add with `reserved`."""


class Owner(Told, Protocol):
    """The producer."""

    @property
    def failure(self) -> MQError | None: ...

    @property
    def idle(self) -> bool:
        """Nothing is on its way to the broker."""

    @property
    def limit(self) -> int:
        """The largest entry that the broker takes."""

    def ship(self, batch: Batch) -> None:
        """An entry in order: written at once or when the producer is attached."""

    def uncouple(self) -> None:
        """Something else is added: nobody joins the train any more, see `producer.py`."""


class Gathering:
    """Messages become entries here, in the order in which they are added.

    Two accounts: `client.budget` of bytes, in which a batch reserves its limit and gives back what it did not need when
    it is sealed, and `window` of messages.
    """

    def __init__(
        self, client: ClientEngine, owner: Owner, framer: Framer, options: ProducerOptions, window: Budget
    ) -> None:
        self.client = client
        self.options = options
        self.framer = framer
        self.window = window
        self._partition = owner.topic.partition
        self.next_sequence = 0 if options.initial_sequence_id is None else options.initial_sequence_id + 1
        self.batch: Batch | None = None
        self._owner = owner
        self._codec = client.impl.pulsar
        self._limits = options.batch_max_messages, options.batch_max_bytes
        self._builder = self._codec.BatchBuilder(*self._limits)
        self._size = 0
        """Of what the builder holds."""
        self._door: tuple[Batch, int] | None = None
        """The batch that may be joined without an entry, and the token for that; `_shut` counts who did."""
        self.door = self._codec.Door(client.impl.handover.SendFuture)
        """The same for a face, in one native call."""
        self._join = self._builder.join
        self._future = client.impl.handover.SendFuture
        self._batching = bool(options.batching)
        self._counting = window.max_items > 0
        self._careful = self._counting
        """A message that joins the batch has to be looked at: it is counted, or what gathers is of a lot."""
        self._introductions = Introductions(client, owner)
        self.told: Callable[[Batch], None] | None = None
        """Who wants to know what came of each entry."""
        self._idle_asked = False
        self._late = 0
        self._linger: Timer | None = None

    @property
    def count(self) -> int:
        """Messages that gather."""
        return int(self._builder.count) if self.batch is not None else 0

    @property
    def late(self) -> int:
        """Messages that wait for room."""
        return self._late

    # ---- room

    def reserve(self, message: Any) -> Slot[None]:
        """Room for this message, when it is our turn; then add it, with `reserved`."""
        self._shut()
        self._late += 1
        return run_steps(self._reserve_steps(message))

    def _reserve_steps(self, message: Any) -> Steps[None]:
        transaction = message.txn if type(message) is Special else None
        try:
            yield from self._introductions.steps(message)
        except MQError:
            self._late -= 1
            raise
        try:
            if self._counting:
                counted = self.window.reserve(0, 1)
                if not counted.done:
                    self.seal()  # what gathers takes up the window, too
                yield counted
            yield self.client.budget.reserve(*self._portion(message))
        except MQError as error:
            if transaction is not None:
                transaction.ended(error)
            raise

    def _portion(self, message: Any) -> tuple[int, int]:
        """What is reserved before an entry begins."""
        if self._joins(message):
            return self.options.batch_max_bytes, 1
        return size_of(plain(message)), 1

    def _joins(self, message: Any) -> bool:
        """Whether it travels in company."""
        return self._batching and (type(message) is tuple or message.joins)

    def _take_room(self, message: Any, reserved: bool) -> tuple[int, int]:
        portion = self._portion(message)
        if not reserved and not self.client.budget.take(*portion):
            self._uncount()
            raise Full
        return portion

    def _check(self, message: Any, reserved: bool) -> bool:
        """Whether what was reserved is needed: not if somebody else has begun a batch meanwhile. The rest is given
        back *after* the message was added, for it wakes the next one, who must not overtake it."""
        self._owner.uncouple()
        self._shut()
        if reserved:
            self._late -= 1
        if self._owner.failure is not None:
            if reserved:
                self.client.budget.give(*self._portion(message))
                self._uncount()
            raise self._owner.failure
        if not reserved and (self._late or (self._counting and not self.window.take(0, 1))):
            raise Full  # nobody overtakes those who wait already
        return reserved and (self.batch is None or self._overflows(message))

    def _overflows(self, message: Any) -> bool:
        """Whether the message does not fit into the batch that gathers, or is of another lot."""
        batch = self.batch
        if batch is None:
            return False
        if (batch.lot or type(message) is Special) and batch.lot != self._introductions.lot(message):
            return True
        item = plain(message)
        if -1 < item[5] <= batch.last_sequence_id:
            return True  # sequence ids grow within an entry
        return self._size + size_of(item) > self.options.batch_max_bytes

    def _more(self, count: int) -> int:
        """How many of so many further messages the window has room for."""
        most = self.window.max_items
        return count if not most else 0 if self.window.waiting else min(count, most - self.window.items)

    # ---- adding

    def add(self, message: Any, reserved: bool = False) -> Batch:
        """The batch in which the message is the last one."""
        if self._door is not None:
            self._shut()
        batch = self.batch
        # The common case first: it goes to the batch that gathers (whose producer has not failed, or it would have been
        # sealed), and nobody waits.
        if batch is not None and type(message) is tuple and not (reserved or self._late or self._careful):
            body = message[0]
            size = self._size if body is None else self._size + len(body)
            if size <= self.options.batch_max_bytes and message[5] < 0:
                return self._append(batch, message)
        if type(message) is not tuple:
            return self._add_special(message, reserved)
        if not self._batching:
            return self._add_alone(message, reserved) if reserved else self._add_plain(message)
        return self._add_slowly(message, reserved)

    def join(self, message: Any) -> Batch | None:
        """As `add`, of a message about which nothing is to be decided, since the batch that gathers has room for it and
        for more; None: add it. Nothing is sealed or told, so where one thread does all, no entry is needed."""
        if self._door is not None:
            self._shut()
        batch = self.batch
        if batch is None or type(message) is not tuple or self._late or self._careful:
            return None
        body, key, properties, event_time, ordering_key, own_id, _ = message
        if type(body) is not bytes or key is not None or properties is not None or ordering_key is not None:
            return None
        most, most_bytes = self._limits
        if own_id >= 0 or batch.count + 1 >= most or self._size + len(body) + AROUND >= most_bytes:
            return None
        self._size = self._builder.add(body, None, None, event_time, None, self.next_sequence)
        batch.count += 1
        self.next_sequence += 1
        return batch

    def board(self, message: Any) -> SendFuture | None:
        """Outside of any entry: add a message about which nothing is to be decided to the batch that gathers, if it has
        room for it and for more; None: add it."""
        door = self._door
        if door is None:
            return None
        batch, token = door
        index = self._join(message, token)
        if index < 0:
            return None
        future: SendFuture = self._future(batch, index)
        return future

    def open(self) -> None:
        """Others may `board` the batch that gathers now, until something else happens to it."""
        if self.batch is not None and self._door is None and not (self._late or self._careful):
            token = self._builder.open(self.next_sequence)
            self._door = self.batch, token
            self.door.open(self._builder, self.batch, token)

    def _shut(self) -> None:
        door, self._door = self._door, None
        if door is not None:
            self.door.shut()
            self.next_sequence = self._builder.shut()
            self._size = self._builder.size
            door[0].count = self._builder.count

    def _add_slowly(self, message: Any, reserved: bool) -> Batch:
        needed = self._check(message, reserved)
        unused = self._make_room(message, needed)
        batch = self.batch or self._gather(message, needed)
        try:
            return self._append(batch, plain(message))
        except BaseException:
            self._refused(batch)
            raise
        finally:
            self._give_back(message, unused, reserved and not needed)

    def _add_special(self, message: Special, reserved: bool) -> Batch:
        """In a batch of its lot, or alone, when the broker knows what it has to know first."""
        if not reserved and self._introductions.needed(message):
            raise Full
        add = self._add_slowly if self._joins(message) else self._add_alone
        if message.txn is None or not reserved:
            return add(message, reserved)
        failure: MQError | None = None
        try:
            return add(message, reserved)
        except MQError as error:
            failure = error
            raise
        finally:
            message.txn.ended(failure)  # what it travels in counts from now on

    def _append(self, batch: Batch, item: Item) -> Batch:
        body, key, properties, event_time, ordering_key, own_id, key_b64 = item
        sequence_id = self.next_sequence
        if own_id >= 0:
            if batch.count:
                batch.gaps += own_id - sequence_id
            sequence_id = own_id
        size = self._builder.add(body, key, properties, event_time, ordering_key, sequence_id, key_b64)
        self._size = size
        batch.count += 1
        self.next_sequence = sequence_id + 1
        if batch.count >= self._limits[0] or size >= self._limits[1]:
            self.seal()
        return batch

    def _add_plain(self, item: Item) -> Batch:
        """An entry of its own, where nothing gathers."""
        owner = self._owner
        self._check(item, False)
        body = item[0]
        size = 0 if body is None else len(body)
        if not self.client.budget.take(size, 1):
            self._uncount()
            raise Full
        batch = self._new_batch(item)
        batch.held = (size, 1)
        batch.batched = False
        batch.count = 1
        self.next_sequence = batch.sequence_id + 1
        try:
            framed = self.framer.frame_alone(batch, item, owner.limit)
        except Exception as error:
            batch.fail(_unwritable(error))
            return batch
        if framed:
            owner.ship(batch)
        else:
            self._frame(batch, b"" if body is None else body, alone_fields(item))
        return batch

    def _add_alone(self, message: Any, reserved: bool) -> Batch:
        """An entry that is not batch-framed."""
        self._check(message, reserved)
        if self.batch is not None:
            self.seal()  # in order
        portion = self._take_room(message, reserved)
        item = plain(message)
        body = item[0]
        batch = self._new_batch(message)
        batch.held = portion
        batch.batched = False
        batch.count = 1
        self.next_sequence = batch.sequence_id + 1
        fields = alone_fields(item)
        if type(message) is Special:
            fields |= self._special(message)
        self._frame(batch, b"" if body is None else body, fields)
        return batch

    def _special(self, message: Special) -> dict[str, Any]:
        when = message.deliver_at
        if message.deliver_after is not None:
            when = self.client.driver.now.wall_ms + message.deliver_after
        return {"deliver_at": when, "replicate_to": message.replicate_to, **self._introductions.lot(message)}

    def add_run(self, items: Sequence[Any], start: int, parts: list[Part], reserved: bool) -> int:
        """One crossing: what fits into the gathering batch, or one entry; the index of what comes next."""
        first = as_item(items[start])
        if not self._batching:
            parts.append(Part(self._add_alone(first, reserved), 0, 1))
            return start + 1
        needed = self._check(first, reserved)
        unused = self._make_room(first, needed)
        batch = self.batch or self._gather(first, needed)
        stop = start + 1 + self._more(len(items) - start - 1)
        run = items if stop == len(items) else items[:stop]
        try:
            following: int = self._builder.add_many(run, start, self.next_sequence)
        except BaseException:
            self._refused(batch)
            self._give_back(first, unused, reserved and not needed)
            raise
        self._size = self._builder.size
        self._counted(following - start)
        parts.append(Part(batch, batch.count, batch.count + following - start))
        batch.count += following - start
        self.next_sequence += following - start
        if following < len(items) or batch.count >= self.options.batch_max_messages:
            self.seal()
        self._give_back(first, unused, reserved and not needed)
        return following

    def add_one(self, items: Sequence[Any], start: int, parts: list[Part], reserved: bool) -> int:
        """As `add_run`, for messages that cannot go through the builder in bulk."""
        batch = self.add(as_item(items[start]), reserved)
        parts.append(Part(batch, batch.count - 1, batch.count))
        return start + 1

    def add_rows(
        self, columns: Mapping[str, Any], start: int, stop: int, reserved: bool, sequence_id: int | None = None
    ) -> tuple[Batch, int]:
        """One entry of rows, behind what gathers; the row after its last. `sequence_id`: of row `start`."""
        self._check(ROWS, reserved)
        if self.batch is not None:
            self.seal()
        portion = self._take_room(ROWS, reserved)
        if sequence_id is not None:
            self.next_sequence = sequence_id
        batch = self._new_batch(ROWS)
        most = min(start + 1 + self._more(stop - start - 1), start + self.options.batch_max_messages)
        try:
            room = min(self.options.batch_max_bytes, self._owner.limit // 2)  # a broker may take less than is usual
            payload, following = self._codec.encode_columns(
                columns, start, most, sequence_id=batch.sequence_id, max_bytes=room
            )
        except MQError:
            self.client.budget.give(*portion)
            self._uncount()
            raise
        batch.count = following - start
        self._counted(batch.count)
        self.next_sequence += batch.count
        batch.held = (min(len(payload), portion[0]), 1)
        self._frame(batch, payload, {"num_messages": batch.count})
        self.client.budget.give(portion[0] - batch.held[0], 0)
        return batch, following

    def _refused(self, batch: Batch) -> None:
        """The builder could not write a message. Those of a run that stand before it are in; an entry of none is not
        sent."""
        if self.batch is not batch:
            return  # it was sealed already, and what became of it has been told
        added = self._builder.count - batch.count
        self._size = self._builder.size
        self.next_sequence += added
        batch.count += added
        self._counted(added)
        if not added:
            self._uncount()
        if not batch.count:
            self.batch = None
            self._drop(batch)
        elif batch.count >= self.options.batch_max_messages:
            self.seal()

    def _drop(self, batch: Batch) -> None:
        """An entry without a message: nobody waits for it, and what it holds is free."""
        batch.complete(-1, -1)

    def _uncount(self) -> None:
        """One that was counted is not added after all."""
        if self._counting:
            self.window.give(0, 1)

    def _counted(self, count: int) -> None:
        """So many were added, the first of which the window counts already."""
        if self._counting and count > 1:
            self.window.items += count - 1

    # ---- batches

    def _gather(self, message: Any, reserved: bool) -> Batch:
        """A new batch. While nothing is in flight it leaves as soon as this turn ends; else a receipt sends it."""
        portion = self._take_room(message, reserved)
        batch = self._new_batch(message)
        batch.held = portion
        self.batch = batch
        self._careful = self._counting or bool(batch.lot)
        self._soon()
        return batch

    def _soon(self) -> None:
        if self._owner.idle and not self._idle_asked:
            self._idle_asked = True
            self.client.driver.end_of_turn(self._on_idle)
        elif self._linger is None:
            self._linger = self.client.timers.after(self.options.linger, self._on_linger)

    def _new_batch(self, message: Any) -> Batch:
        item = plain(message)
        if item[5] > -1:
            self.next_sequence = item[5]
        deadline = self.client.driver.now.mono + self.options.send_timeout
        batch = Batch(self.client, self._partition, self.next_sequence, deadline)
        batch.first = item
        if self._counting:
            batch.window = self.window
        if self.told is not None:
            batch.then(self.told)
        if item is not message:
            self._begin_lot(batch, message)
        return batch

    def _begin_lot(self, batch: Batch, message: Special) -> None:
        batch.lot = self._introductions.lot(message)
        transaction = message.txn
        if transaction is not None:
            transaction.began()
            batch.then(lambda done: transaction.ended(done.error))

    def _on_idle(self) -> None:
        self._idle_asked = False
        if self.batch is not None and self._owner.idle:
            self.seal()

    def _on_linger(self, now: Now) -> None:
        """One alarm for all batches: it looks when the present one is due, and comes again."""
        self._linger = None
        if self.batch is None:
            return
        due = self.batch.deadline - self.options.send_timeout + self.options.linger
        if due <= now.mono:
            self.seal()
        else:
            self._linger = self.client.timers.at(due, self._on_linger)

    def _make_room(self, message: Any, reserved: bool) -> int:
        """Close the gathering batch if the message does not fit. With room reserved for the next one, what this one did
        not need is given back later; without, at once, for the next one may need it."""
        if not self._overflows(message):
            return 0
        unused = self._close_batch()
        if not reserved:
            self.client.budget.give(unused, 0)
        return unused if reserved else 0

    def _give_back(self, message: Any, unused: int, portion: bool) -> None:
        if unused:
            self.client.budget.give(unused, 0)
        if portion:
            self.client.budget.give(*self._portion(message))

    def seal(self) -> None:
        """The gathering batch becomes an entry; room that it did not need may wake somebody who adds the next one."""
        if self.batch is not None:
            self.client.budget.give(self._close_batch(), 0)

    def stop(self) -> None:
        """What gathers goes to the pending ones; no alarm comes any more."""
        self.seal()
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None

    def _close_batch(self) -> int:
        """The gathering batch becomes an entry; how many bytes it had reserved and did not need."""
        self._shut()
        batch, self.batch = self.batch, None
        assert batch is not None
        payload, count = self._builder.seal()
        self._size = 0
        reserved, _ = batch.held
        batch.held = (min(len(payload), reserved), 1)
        self._frame(batch, payload, of_batch(batch, count))
        return int(reserved - min(len(payload), reserved))

    def _frame(self, batch: Batch, payload: Any, fields: dict[str, Any]) -> None:
        try:
            self.framer.frame(batch, payload, self._owner.limit, fields)
        except Exception as error:
            batch.fail(_unwritable(error))
        else:
            self._owner.ship(batch)


def shut_door(client: ClientEngine) -> Any:
    """Takes nothing."""
    return client.impl.pulsar.Door(client.impl.handover.SendFuture).board


AROUND = 64
"""More than sizes, event time and sequence id of a message take in a batch."""
ROWS: Item = (b"", None, None, 0, None, -1, False)
"""Stands for an entry of rows where room is reserved."""


def _unwritable(error: Exception) -> MQError:
    """What all that are in an entry are told, such as that it is too large, or what a compression raised."""
    if isinstance(error, MQError):
        return error
    failure = ConfigError(f"this entry cannot be written: {error!r}")
    failure.__cause__ = error
    return failure


def of_batch(batch: Batch, count: int) -> dict[str, Any]:
    """An entry's metadata repeats what its first message says about keys, and says what all have in common."""
    _, key, _, _, ordering_key, _, key_b64 = batch.first
    return {
        "partition_key": key,
        "key_b64": key_b64 or None,
        "ordering_key": ordering_key,
        "num_messages": count,
        **batch.lot,
    }


def alone_fields(item: Item) -> dict[str, Any]:
    """What the metadata of an entry says about its one message."""
    body, key, properties, event_time, ordering_key, _, key_b64 = item
    return {
        "properties": properties,
        "partition_key": key,
        "key_b64": key_b64 or None,
        "ordering_key": ordering_key,
        "event_time": event_time,
        "null_value": body is None,
    }
