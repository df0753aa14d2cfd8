"""Owns one producer of one topic or partition: being open, receipts, what the broker says about it, its end."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mqclient.core.budget import Budget
from mqclient.core.driver import Now
from mqclient.core.slot import Slot, completed, failed
from mqclient.core.steps import Steps, run_steps
from mqclient.errors import ClosedError, ConfigError, DeadlineError, LinkError, MQError
from mqclient.pulsar import bulk, requests
from mqclient.pulsar.attachment import Attachment
from mqclient.pulsar.batch import Batch
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.codes import ServerError
from mqclient.pulsar.columns import Rows
from mqclient.pulsar.connection import Connection
from mqclient.pulsar.flight import Flight, Flights
from mqclient.pulsar.framing import Framer
from mqclient.pulsar.gathering import Full, Gathering, shut_door
from mqclient.pulsar.holding import MOST, SECONDS, Held
from mqclient.pulsar.hooking import hooked, send_hooks, telling
from mqclient.pulsar.keyed import KeyedGathering
from mqclient.pulsar.names import ServiceUrl, TopicName
from mqclient.pulsar.options import ACCESS_MODES, ProducerOptions
from mqclient.pulsar.outgoing import Part, Scattered, preparing
from mqclient.pulsar.outgoing import prepare as plain_prepare
from mqclient.pulsar.pending import Pending
from mqclient.pulsar.sealing import Sealer, must_encrypt, refuses_plain
from mqclient.pulsar.train import FULL, OTHER, Train

if TYPE_CHECKING:
    from mqclient._native.handover import SendFuture
    from mqclient._native.pulsar import MessageId
    from mqclient.pulsar.schema.base import Schema

log = logging.getLogger("mqclient.pulsar")


class ProducerEngine:
    """One producer of one topic or partition. Receipts come in the order of sending; so do resends.

    `window`: the account of messages without receipt, where several producers share one.
    """

    def __init__(
        self, client: ClientEngine, topic: TopicName, options: ProducerOptions, window: Budget | None = None
    ) -> None:
        self.client = client
        self.topic = topic
        self.options = options
        self._shared = window
        self.producer_id = client.next_producer_id()
        self.attachment = Attachment(client, topic, self, f"producer of {topic}")
        self.failure: MQError | None = None
        self._published = -1 if options.initial_sequence_id is None else options.initial_sequence_id
        self.counts = {"messages": 0, "batches": 0, "late": 0, "resent": 0}
        self._hooks = send_hooks(options.hooks)
        self.framer = Framer(client.impl.pulsar, self.producer_id, options)
        if options.encrypt is not None:
            self.framer.sealer = Sealer(client, str(topic), options.encrypt)
        self.pending = Pending(client.timers, str(topic), options.send_timeout)
        gathering = KeyedGathering if options.batching == "key" else Gathering
        self._gathering: Gathering = gathering(
            client, self, self.framer, options, Budget(0, options.max_pending) if window is None else window
        )
        self._gathering.told = telling(self, self._hooks)
        self._future = client.impl.handover.SendFuture
        driver: Any = client.driver
        self._at = driver.deadline
        self._loop = getattr(client.driver, "loop", None)
        self._here = getattr(client.driver, "here", None)
        self._joins = False
        """A submit is under way."""
        self._held = Held(client.driver, client.timers, options.linger, self._write_held)
        self._train: Train | None = None
        """The last of the pending ones, as long as messages join it."""
        self._flights = Flights(self, self._gathering, self.pending, self._held)
        self.express = self._flights.express if self._here is None else self._join
        self._trains = not (options.batching or options.max_pending or self._hooks.listens)
        """Nobody looks at each entry by itself."""
        self._named = False
        self._topic_epoch: int | None = None
        self._asked: Slot[Any] | None = None
        """PRODUCER, while it is not answered; who waits for exclusive access does so here."""
        self._opened = False
        """What is pending may have been written."""
        self._asleep = False
        """In a forked child until it is used."""
        self.on_wake: Callable[[], None] | None = None
        self.prepare = self.preparing(options.schema)

    # ---- asked by the face

    @property
    def name(self) -> str:
        return self.framer.name

    @property
    def published(self) -> int:
        """The highest sequence id that the broker has confirmed; -1: none."""
        return max(self._published, self._flights.published)

    def preparing(self, schema: Schema[Any] | None) -> Any:
        """What makes messages of values, of this schema instead of the producer's own."""
        return hooked(preparing(self.options.schema, schema), self._hooks, str(self.topic))

    def open(self, deadline: float) -> Slot[None]:
        self.client.join(self)
        if self.framer.sealer is None:
            return self.attachment.start(deadline)
        return run_steps(self._open_sealed_steps(self.framer.sealer, deadline))

    def _open_sealed_steps(self, sealer: Sealer, deadline: float) -> Steps[None]:
        yield run_steps(sealer.start_steps())
        if self.failure is not None:  # closed while keys were looked for
            sealer.stop()
            raise self.failure
        yield self.attachment.start(deadline)

    def submit(self, message: Any, reserved: bool = False) -> SendFuture | None:
        """Take one message; its future, or None while there is no room for it: see `submit_late`."""
        self._joins = True
        try:
            if self._trains and not reserved:
                coupled = self._couple(message)
                if coupled is not None:
                    return coupled
            batch = self._gathering.add(message, reserved)
        except Full:
            self._write_held()  # whoever waits for room waits for receipts
            return None
        finally:
            self._joins = False
        if self.pending.queue:
            self._gathering.open()
        future: SendFuture = self._future(batch, batch.count - 1)
        return future

    def door(self, prepare: Any) -> Any:
        """As `board`, of what `submit` was given; shut for ever where that has to be prepared, or nothing gathers."""
        if prepare is not plain_prepare or self._here is not None:
            return shut_door(self.client)
        return self._gathering.door.board

    def board(self, message: Any) -> SendFuture | None:
        """Outside of any entry: as `submit`, of a message that only has to join what gathers; None: submit it."""
        if self._here is not None and not self._here():
            return None
        train = self._train
        if train is None:
            return self._gathering.board(message)
        if self._at(0.0) >= train.until:
            return None
        index = train.add(message)
        if index < 0:
            return None
        future: SendFuture = self._future(train, index)
        return future

    def _couple(self, message: Any) -> SendFuture | None:
        """To the train, or as the first of a new one; None: it takes the long way."""
        train, now = self._train, self.client.driver.now
        if train is None:
            train = self._new_train(message, now)
            index = OTHER if train is None else 0
        else:
            index = train.add(message) if now.mono < train.until else FULL
            self._joins = index != FULL  # else it takes all of them along
        if index < 0:
            return None
        future: SendFuture = self._future(train, index)
        return future

    def _new_train(self, message: Any, now: Now) -> Train | None:
        """Where something is in flight, whose receipt lets it go, and nobody waits for room."""
        if self.idle or not self.attachment.attached or self._gathering.late or self.failure is not None:
            return None
        entries = self.framer.train(self._gathering.next_sequence, now.wall_ms, MOST, self.limit)
        if entries is None or entries.add(message) < 0 or not self.client.budget.take(MOST, 1):
            return None
        until, deadline = now.mono + SECONDS, now.mono + self.options.send_timeout
        self._flights.end()
        train = self._train = Train(self.client, self.topic.partition, entries, deadline, until)
        self.pending.append(train)
        if entries.size >= MOST:
            self._write_held()
        else:
            self._held.watch()
        return train

    def uncouple(self) -> None:
        """Nobody joins the train any more, or uses the lane."""
        self._flights.shut()
        train, self._train = self._train, None
        if train is not None:
            self._held.append(train.close())
            self._gathering.next_sequence = train.last_sequence_id + 1
            self.counts["messages"] += train.count
            self.counts["batches"] += train.count
            self.client.budget.give(train.hold(MOST), 0)

    def submit_late(self, message: Any) -> SendFuture:
        """Outside of any entry: wait for room, where waiting is possible."""
        driver: Any = self.client.driver
        if not self.client.blocking:
            raise MQError(
                "more is in flight than memory_limit or max_pending allow, or this is the first message of a "
                "transaction, or of another schema, to its topic: `await producer.send(…)` waits, submit cannot"
            )
        future = None
        while future is None:
            with driver.enter():
                slot = self._gathering.reserve(message)
            driver.wait(slot)
            with driver.enter():
                future = self.submit(message, reserved=True)
        return future

    def send(self, message: Any) -> Slot[MessageId]:
        """Take one message; a slot for its id."""
        if self._trains:
            slot = self._flights.send(message)
            if slot is not None:
                return slot
        try:
            return self._watch_last(self._gathering.add(message))
        except Full:
            return run_steps(self._send_late_steps(message))
        except MQError as error:
            return failed(error)

    def _join(self, message: Any) -> Slot[MessageId] | None:
        """`express` under asyncio, outside of any entry: as `send_awaited`, of a message that only has to join what
        gathers; None: send it."""
        if self._here is None or not self._here():
            return None
        batch = self._gathering.join(message)
        return None if batch is None else batch.awaited(batch.count - 1, self._loop)  # type: ignore[return-value]

    def send_awaited(self, message: Any, timeout: float | None) -> Slot[MessageId]:
        """As `send`, for a face that does nothing but wait for it."""
        if self._loop is None or timeout is not None:
            return self.send(message)
        try:
            batch = self._gathering.add(message)
        except Full:
            return run_steps(self._send_late_steps(message))
        except MQError as error:
            return failed(error)
        return batch.awaited(batch.count - 1, self._loop)  # type: ignore[return-value]

    def send_many(self, items: Sequence[Any]) -> Slot[list[Part] | Scattered]:
        """Take many in one go; done when each has its outcome, see `outgoing.results`."""
        steps: Steps[Any] = bulk.send_many_steps(self._gathering, items, self.refused)
        return run_steps(steps)

    def send_rows(self, columns: Mapping[str, Any], rows: int, first: int | None = None) -> Slot[list[Rows]]:
        """Take rows of Arrow columns, in entries of their own; done when each has its outcome. `first`: the sequence id
        of the first row; the others get those after it."""
        if self.options.batching is not True:
            return failed(ConfigError("rows travel in batches: send_arrow needs a producer with batching=True"))
        return run_steps(bulk.send_rows_steps(self._gathering, columns, rows, self.refused, first))

    def _send_late_steps(self, message: Any) -> Steps[MessageId]:
        while True:
            yield self._gathering.reserve(message)
            try:
                batch = self._gathering.add(message, reserved=True)
                break
            except Full:  # the room was for a batch that somebody else had begun, and which is full
                continue
        message_id: MessageId = yield self._watch_last(batch)
        return message_id

    def refused(self, error: MQError, count: int) -> Batch:
        """Messages that were never taken, because the producer ended before it was their turn."""
        batch = Batch(self.client, self.topic.partition, self._gathering.next_sequence, 0.0)
        batch.count = count
        batch.fail(error)
        return batch

    @staticmethod
    def _watch_last(batch: Batch) -> Slot[MessageId]:
        # Refused at once, for its size, it has its outcome already.
        return failed(batch.error) if batch.error is not None else batch.watch(batch.count - 1)

    def flush(self) -> Slot[None]:
        """Send what gathers; done when everything taken so far has its outcome."""
        self._flights.shut()
        self._gathering.seal()
        self._write_held()
        if not len(self.pending):
            return completed(None)
        slot: Slot[None] = Slot()
        last = self.pending.last
        if isinstance(last, Flight):
            last = self._part()[-1]
        last.then(lambda _: slot.complete(None))
        return slot

    def close_steps(self) -> Steps[None]:
        """Flush, say goodbye, and account for what is left."""
        if self.attachment.state == "closed":
            return
        closed = ClosedError(f"the producer of {self.topic} is closed")
        slot = self.flush()
        self.failure = self.failure or closed  # whoever comes now would be sent, perhaps, and not learn of it
        self._flights.end()
        yield slot
        connection = self.attachment.connection
        if connection is not None and self.attachment.attached:
            connection.producers.pop(self.producer_id, None)
            try:
                yield connection.request(requests.close_producer(self.producer_id), self.client.deadline())
            except MQError as error:
                log.debug("closing the producer of %s: %s", self.topic, error)
        self.abandon(closed)

    def give_up(self, error: MQError) -> None:
        """The first opening has no time left. One that still looks for its broker ends now by itself, and knows why."""
        if not self.attachment.looking:
            self.abandon(error)

    def abandon(self, error: MQError) -> None:
        """Now, without a word to the broker: what has no receipt fails, its outcome unknown."""
        self.attachment.close(error)
        self.on_failed(error)

    def renew(self) -> None:
        """In a forked child, after it was abandoned: opened anew by its first message, under a name of its own.

        Only where the name was the broker's choice: with one of the user's, or alone with its topic, it would take the
        parent's place. A sealed one needs its keys first.
        """
        options, woken, version = self.options, self.on_wake, self.framer.schema_version
        door = self._gathering.door  # shut with what gathered; faces have it
        if options.name is not None or options.access != "shared" or options.encrypt is not None:
            return
        self.__init__(self.client, self.topic, options, self._shared)  # type: ignore[misc]
        self.framer.name, self.framer.schema_version = f"{secrets.token_hex(8)}-forked", version
        self._named = self._asleep = True
        self.on_wake = woken
        self._gathering.door = door

    def _wake(self) -> None:
        self._asleep = False
        self.client.join(self)
        self.attachment.open_later()
        if self.on_wake is not None:
            self.on_wake()

    def diagnose(self) -> dict[str, Any]:
        self._flights.shut()
        return {
            "topic": str(self.topic),
            "name": self.name,
            "state": self.attachment.state,
            "gathering": self._gathering.count,
            "pending": self.pending.messages,
            "last_sequence_id": self.published,
            **self.counts,
        }

    @property
    def unsettled(self) -> int:
        """Messages without an outcome: those that gather, those that wait for room, those without a receipt."""
        self._flights.shut()
        return self._gathering.count + self._gathering.late + self.pending.messages

    @property
    def gathers(self) -> bool:
        return self._gathering.batch is not None

    # ---- told by what gathers

    @property
    def ready(self) -> bool:
        return self.attachment.attached

    @property
    def idle(self) -> bool:
        return not self.pending.queue

    @property
    def limit(self) -> int:
        connection = self.attachment.connection
        most: int = connection.max_message_size if connection is not None else self.client.impl.pulsar.MAX_MESSAGE
        return most

    def ship(self, batch: Batch) -> None:
        self._flights.end()
        self.counts["messages"] += batch.count
        self.counts["batches"] += 1
        joins = self._joins and not batch.batched and not self.idle
        self.pending.append(batch)
        if self._asleep:
            self._wake()
        connection = self.attachment.connection
        if connection is None or not self.attachment.attached:
            return
        if joins:
            self._held.add(batch.frame)
        else:
            connection.write(*self._held.take(), batch.frame)

    def _write_held(self) -> None:
        """Receipts came, nobody submits any more, or it is enough."""
        connection = self.attachment.connection
        self.uncouple()
        frames = self._held.take()
        if frames and connection is not None and self.attachment.attached:
            connection.write(b"".join(frames))  # a system call takes 64 pieces, and copying so little is cheaper

    # ---- told by attachment and connection

    def open_steps(self, connection: Connection, deadline: float) -> Steps[None]:
        connection.producers[self.producer_id] = self
        self._flights.end(lost=True)
        self._asked = connection.request(self._producer_command(), deadline)
        try:
            reply = yield self._asked
        except MQError as error:
            connection.producers.pop(self.producer_id, None)
            # The broker may have made it meanwhile, or have it stand in line: it would be busy for ever.
            if isinstance(error, DeadlineError | ClosedError):
                connection.tell(requests.close_producer(self.producer_id))
            if refuses_plain(error):
                raise must_encrypt(self.topic) from error
            raise
        finally:
            self._asked = None
        self.framer.name = reply.producer_name
        self.framer.schema_version = reply.schema_version or None
        self._opened = True
        self._topic_epoch = reply.topic_epoch if reply.HasField("topic_epoch") else None
        if not self._named and self.options.initial_sequence_id is None:
            self._gathering.next_sequence = reply.last_sequence_id + 1
            self._published = reply.last_sequence_id
        self._named = True
        # Not attached yet, so sealing only queues: what is resent and what is new go out once, in order.
        self._gathering.seal()
        batches = self._part()
        self.counts["resent"] += len(batches)
        for batch in batches:
            batch.landed = 0
        self._held.take()  # they are among the pending ones
        connection.write(*[batch.frame for batch in batches])

    def _producer_command(self) -> requests.Command:
        return requests.producer(
            str(self.topic),
            self.producer_id,
            name=self.name or None,
            user_provided=self.options.name is not None,
            epoch=self.attachment.epoch - 1,
            metadata=self.options.properties,
            access=ACCESS_MODES[self.options.access],
            topic_epoch=self._topic_epoch,
            initial_subscription=self.options.initial_subscription,
            schema=None if self.options.schema is None else self.options.schema.info,
            encrypted=self.options.encrypt is not None,
        )

    def on_lost(self, connection: Connection, cause: MQError) -> None:
        self._flights.end(lost=True)
        self.attachment.on_lost(connection)

    def on_closed_by_broker(self, connection: Connection, broker_url: str | None) -> None:
        self._flights.end(lost=True)
        self.attachment.on_closed_by_broker(connection, broker_url)

    def on_migrated(self, connection: Connection, cluster: ServiceUrl) -> None:
        self._flights.end(lost=True)
        if self.attachment.on_migrated(connection, cluster) and self._asked is not None:
            self._asked.fail(LinkError(f"{self.topic} is in another cluster"))

    def on_failed(self, error: MQError) -> None:
        self.failure = error
        self._flights.end(lost=True)
        self.client.leave(self)
        if self._asked is not None:
            self._asked.fail(error)
        self._part()
        self.pending.fail_all(error, written=self._opened)
        self._gathering.stop()
        self._flights.end(lost=True)
        self.uncouple()
        self._held.stop()
        if self.framer.sealer is not None:
            self.framer.sealer.stop()
        self.pending.fail_all(error)

    def on_receipts(self, events: Sequence[Any], at: int) -> int:
        """SEND_RECEIPT at `at`, and those after it that belong to one train or flight; how many they were."""
        self._flights.shut()
        queue = self.pending.queue
        if queue:
            head = queue[0]
            if not isinstance(head, Batch):
                taken = head.take_receipts(events, at)
                if taken:
                    self._on_taken(head, events[at + taken - 1][2])
                    return taken
        _, _, sequence_id, ledger, entry, _ = events[at]
        self.on_receipt(sequence_id, ledger, entry)
        return 1

    def _on_taken(self, head: Train | Flight, last: int) -> None:
        if last > self._published:
            self._published = last
        if head.done:
            self.pending.pop()
        self._go_on()
        if not self.pending.queue:
            self._flights.landed()

    def on_receipt(self, sequence_id: int, ledger: int, entry: int) -> None:
        queue = self.pending.queue
        if not queue or sequence_id < queue[0].sequence_id:  # of one that timed out, or was told before
            self.counts["late"] += 1
            return
        head = queue[0]
        if not isinstance(head, Batch):
            head = self._part()[0]
        if head.sequence_id == sequence_id and head.chunks == 1 and ledger >= 0:  # the common case
            self._complete(ledger, entry)
        elif ledger < 0 and entry < 0:
            self._on_known(sequence_id)
        elif sequence_id > head.last_sequence_id or (head.scattered and sequence_id != head.sequence_id):
            # The receipt of an entry that we sent later came first: only sending anew tells what the broker has.
            self._restart(f"receipt {sequence_id} while {head.sequence_id} is the next of {self.topic}")
        elif head.chunks == 1 or head.arrive(ledger, entry):
            self._complete(ledger, entry)

    def _on_known(self, sequence_id: int) -> None:
        """The broker had it already. It says so at once, ahead of receipts for what it stores anew: of a message in
        parts all but the last are stored again, so this may be about a later one than the next. Who took it for a
        receipt in the wrong order, and sent all of it again, would go round for ever."""
        self._part()
        known = self.pending.find(sequence_id)
        if known is None:
            return
        known.landed = known.chunks
        if self.pending.head is known:
            self._complete(-1, -1)

    def _complete(self, ledger: int, entry: int) -> None:
        """The next one, and those after it that are known already."""
        queue = self.pending.queue
        while True:
            head: Any = queue.popleft()  # no train: those are looked at before
            last = head.last_sequence_id
            if last > self._published:
                self._published = last
            head.complete(ledger, entry)
            if not queue or queue[0].landed < queue[0].chunks:
                break
            ledger = entry = -1
        self._go_on()

    def _go_on(self) -> None:
        """A receipt came."""
        if self._held.frames or self._train is not None:
            self._write_held()
        if not self.pending.queue:
            self._gathering.seal()

    def _part(self) -> list[Batch]:
        """What travels in trains or flights is looked at one by one."""
        self.uncouple()
        self._flights.end()
        return self.pending.part()

    def on_send_error(self, sequence_id: int, error: MQError) -> None:
        if error.code == ServerError.TopicTerminatedError:
            if not self.counts["resent"]:  # else the broker may have them from before
                self._part()
                self.pending.fail_all(error)
            self.abandon(error)
        elif error.code in (ServerError.ChecksumError, ServerError.NotAllowedError):
            self._part()
            if len(self.pending) and self.pending.head.sequence_id <= sequence_id <= self.pending.head.last_sequence_id:
                self.pending.pop().fail(error)
        else:
            self._restart(f"{self.topic}: {error}")

    def _restart(self, why: str) -> None:
        connection = self.attachment.connection
        if connection is not None:
            connection.link.abort(LinkError(why))
