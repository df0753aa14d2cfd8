"""Owns one consumer: subscribing, entries to messages, what is skipped and why, and the hand-over to the user."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from mqclient.core.mailbox import Mailbox
from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, run_steps
from mqclient.errors import ClosedError, ConfigError, DeadlineError, LinkError, MQError
from mqclient.pulsar import requests
from mqclient.pulsar.acks import Acks
from mqclient.pulsar.adaptive import Adaptive
from mqclient.pulsar.attachment import Attachment
from mqclient.pulsar.chunks import Chunks
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.connection import Connection
from mqclient.pulsar.consumer_options import ConsumerOptions
from mqclient.pulsar.dead_letter import DeadLetters
from mqclient.pulsar.listening import GRACE, Listening
from mqclient.pulsar.names import TopicName
from mqclient.pulsar.permits import Permits
from mqclient.pulsar.redelivery import Redelivery
from mqclient.pulsar.start import Start
from mqclient.pulsar.unacked import Unacked
from mqclient.pulsar.unpacking import unpacked
from mqclient.pulsar.values import Values

if TYPE_CHECKING:
    from mqclient._native.pulsar import MessageId

log = logging.getLogger("mqclient.pulsar")


class Home(Protocol):
    """The consumer of many topics that this one is a child of: they share its mailbox."""

    mailbox: Mailbox
    makes_topics: bool
    """Whether a topic that is not there (any more) is made by subscribing to it."""

    def on_child_failed(self, child: ConsumerEngine, error: MQError) -> None: ...


class ConsumerEngine:
    """One consumer of one topic or partition; with a `home` a child, which grants nothing until it is resumed.

    An entry is charged before anything is decided about it. It leaves to the user (told per half window) or by
    `permits.release` with the reason; both name the epoch in which it came, so what belongs to an old one has no
    effect.
    """

    def __init__(
        self,
        client: ClientEngine,
        topic: TopicName,
        subscription: str,
        options: ConsumerOptions,
        home: Home | None = None,
    ) -> None:
        if not subscription:
            raise ConfigError("a subscription has a name")
        self.client = client
        self.topic = topic
        self.subscription = subscription
        self.options = options
        self.name = options.name or secrets.token_hex(5)
        self.consumer_id = client.next_consumer_id()
        self.connection: Connection | None = None
        """Where the subscription is open now."""
        self.active = options.type != "failover"
        self.reached_end = False
        self.attachment = Attachment(client, topic, self, f"consumer of {topic}, subscription {subscription}")
        self.permits = Permits(client.impl, 1 if options.queue_memory else options.receiver_queue, self._send_flow)
        self._adaptive = (
            Adaptive(self.permits, options.receiver_queue, options.queue_memory) if options.queue_memory else None
        )
        self.listening: Listening | None = None
        self.acks = Acks(self, client.impl, options)
        self.redelivery = Redelivery(self, not options.in_order)
        self.unacked = Unacked(self, options.ack_timeout) if options.ack_timeout else None
        self.letters = None if options.letters is None else DeadLetters(self, options.letters)
        self.chunks = Chunks(self, options.chunked_pending, options.chunk_expiry)
        self.values = Values(self, options.schema) if options.schema is not None else None
        self._watched = self.unacked is not None or self.letters is not None
        self._home = home
        self.mailbox = self._own_mailbox() if home is None else home.mailbox
        self._box: Any = self.mailbox.box
        self._codec = client.impl.pulsar
        self._reasons = client.impl.permits
        self._source = client.impl.handover.Source(self, 0, 0)
        self._text = str(topic)
        self._start = Start(self._codec, options)
        self._repeats = False
        self._beyond: list[int] = []
        """Of each batch opened and not yet told: how many messages it holds beyond the one that the mailbox counts."""
        self._sealed = options.by_batch or self._watched
        """Entries are opened on the side that takes."""
        self._seeking = -1
        self._left: Any = None
        """The source that the last seek left: what was taken of it says nothing about where to go on."""
        self._failure: MQError | None = None
        if home is not None:
            self.permits.pause()

    # ---- asked by the face

    def open(self, deadline: float) -> Slot[None]:
        if self._home is None:
            self.client.join(self)
        return self.attachment.start(deadline)

    @property
    def topics(self) -> list[str]:
        return [self._text]

    @property
    def last_taken(self) -> Any:
        """The id of the message that the user took last since the subscription was opened; None: none yet."""
        return self._id_of(self._source.last)

    @property
    def resume_at(self) -> tuple[Any, bool]:
        """Where a non-durable subscription goes on when opened anew, and whether at it or after it."""
        return self._start.at or self._start.resume, self._start.inclusive

    def check_by_batch(self) -> None:
        if not self.options.by_batch:
            raise ConfigError("batches come from what was opened with by_batch=True")

    def acks_due(self, signal: int) -> None:
        self.acks.due(signal)

    def ack_cumulative(self, message: Any) -> None:
        self._check_cumulative()
        self.acks.due(self.acks.add_cumulative(message))

    def ack_confirmed(self, messages: Iterable[Any]) -> Slot[Any]:
        """Acknowledge and have the broker's word for it."""
        return self.acks.confirm(messages)

    def nack(self, messages: Iterable[Any]) -> None:
        for message in messages:
            at = message if isinstance(message.entry, int) else message.entry
            times = getattr(at, "redelivery_count", 0)
            if self.unacked is not None:
                self.unacked.drop((at.ledger, at.entry))
            if self.letters is None or self.letters.bury_known([(at.ledger, at.entry)]):
                self.redelivery.nack(at.ledger, at.entry, self.options.nack_delay_after(times))

    def retry_steps(self, message: Any, delay: float, properties: Mapping[str, str]) -> Steps[None]:
        """By way of the retry-letter topic."""
        if self.letters is None or not self.options.retry:
            raise ConfigError("retry_later is for consumers opened with retry=True")
        yield run_steps(self.letters.retry_steps(message, delay, properties))

    def redeliver(self) -> None:
        """Everything that is not acknowledged comes again; what waits here is dropped first."""
        self.acks.flush()
        self._drop_waiting()
        self.chunks.clear()
        self._repeats = True
        if self.unacked is not None:
            self.unacked.clear()
        self.redelivery.all()

    def resize(self, window: int) -> None:
        """Keep so many messages in advance from now on."""
        self.permits.resize(window)
        if self._source.half and not self.options.by_batch:
            self._source.half = self.permits.half

    def pause(self) -> None:
        self.permits.pause()
        if self.listening is not None:
            self.listening.pause()

    def resume(self) -> None:
        self.permits.resume()
        if self.listening is not None:
            self.listening.resume()

    def seek_steps(self, to: Any) -> Steps[None]:
        """To a message id (its message is the next, or the one after it unless `start_inclusive`), or to a time in ms.

        The broker closes the consumer, so it is done when both has happened, in whichever order: the broker said
        yes, and the subscription is open again.
        """
        connection = self._opened()
        if self._seeking >= 0:
            raise ConfigError("a seek is under way already")
        to = self._own_position(to)
        self.acks.flush()
        self.acks.clear()
        before, epoch = self._start.save(), self.attachment.epoch
        self._seeking, self._left = epoch, self._source
        self._start.move(to, self.options.start_inclusive)
        make = requests.seek_to_time if isinstance(to, int) else requests.seek_to_id
        try:
            yield connection.request(make(self.consumer_id, to), self.client.deadline())
        except MQError:
            self._start.restore(before)
            self._left = None
            raise
        finally:
            self._seeking = -1
        if self.attachment.epoch == epoch and self.connection is connection:
            self._drop_waiting()  # a broker that did not close us: what is here is from before
            self._source = self._make_source(epoch)
        else:
            yield self.attachment.when_attached()

    def last_message_id_steps(self) -> Steps[MessageId | None]:
        """The last message of the topic; None if there is none."""
        reply = yield self._opened().request(requests.last_message_id(self.consumer_id), self.client.deadline())
        last = reply.last_message_id
        if last.entryId == requests.NO_REQUEST_ID:
            return None
        found: MessageId = self._codec.MessageId(last.ledgerId, last.entryId, last.partition, last.batch_index)
        return found

    def last_message_ids_steps(self) -> Steps[dict[str, MessageId | None]]:
        last = yield run_steps(self.last_message_id_steps())
        return {self._text: last}

    def stats_steps(self) -> Steps[dict[str, Any]]:
        """What the broker says about this consumer."""
        reply = yield self._opened().request(requests.consumer_stats(self.consumer_id), self.client.deadline())
        return {field.name: value for field, value in reply.ListFields() if field.name != "request_id"}

    def unsubscribe_steps(self, force: bool) -> Steps[None]:
        """The subscription is deleted at the broker, and this consumer closed."""
        yield self._opened().request(requests.unsubscribe(self.consumer_id, force), self.client.deadline())
        self.abandon(ClosedError(f"unsubscribed from {self.topic}"))

    def close_steps(self) -> Steps[None]:
        if self.attachment.state == "closed":
            return
        if self.listening is not None:
            yield run_steps(self.listening.stop_steps(GRACE))
        connection = self.connection
        if self.letters is not None:
            yield run_steps(self.letters.close_steps())
        self.acks.flush()
        if connection is not None:
            connection.consumers.pop(self.consumer_id, None)
            self._detached()
            try:
                yield connection.request(requests.close_consumer(self.consumer_id), self.client.deadline())
            except MQError as error:
                log.debug("closing the consumer of %s: %s", self.topic, error)
        self.abandon(ClosedError(f"the consumer of {self.topic} is closed"))

    def abandon(self, error: MQError) -> None:
        self.attachment.close(error)
        self.on_failed(error)

    def diagnose(self) -> dict[str, Any]:
        """The account of permits and what waits here, for people."""
        return {
            "topic": self._text,
            "subscription": self.subscription,
            "type": self.options.type,
            "name": self.name,
            "state": self.attachment.state,
            "epoch": self.attachment.epoch,
            "active": self.active,
            "mailbox": self._source.waiting,
            "untold": self._source.untold,
            "acks_waiting": len(self.acks.set),
            "nacks_waiting": len(self.redelivery),
            "permits": self.permits.diagnose(),
            **({} if self.listening is None else {"listener": self.listening.diagnose()}),
        }

    # ---- told by attachment and connection

    def open_steps(self, connection: Connection, deadline: float) -> Steps[None]:
        # Cleared before SUBSCRIBE is sent, not when it is answered: nothing new can come in between, and what a
        # non-durable subscription resumes after is decided here.
        epoch = self.attachment.epoch
        self._new_source(epoch)
        connection.consumers[self.consumer_id] = self
        try:
            yield connection.request(self._subscribe(), deadline)
        except MQError as error:
            connection.consumers.pop(self.consumer_id, None)
            if isinstance(error, DeadlineError):  # the broker may have it meanwhile: the next one would be refused
                connection.tell(requests.close_consumer(self.consumer_id))
            raise
        if connection.consumers.get(self.consumer_id) is self:
            self.connection = connection
            self.permits.open(epoch)
            self.acks.flush()

    def on_lost(self, connection: Connection, cause: MQError) -> None:
        self._detached()
        self.attachment.on_lost(connection)

    def on_closed_by_broker(self, connection: Connection, broker_url: str | None) -> None:
        self._detached()
        self.attachment.on_closed_by_broker(connection, broker_url)

    def on_failed(self, error: MQError) -> None:
        self._failure = error
        self._detached()
        self.acks.close()
        self.redelivery.clear()
        self.chunks.clear()
        self.mailbox.clear(self._source)
        if self._home is not None:
            self._home.on_child_failed(self, error)
            return
        self.mailbox.close(error)
        self.client.leave(self)

    def on_active(self, active: bool) -> None:
        self.active = active
        told = self.options.on_active
        if told is not None:
            self.client.driver.run_user(lambda _: told(self._text, active), None)

    def on_end_of_topic(self) -> None:
        self.reached_end = True

    def on_entry(self, entry: Any) -> None:
        source = self._source
        epoch = source.epoch
        if not self.permits.arrive(entry.charged, epoch):
            return
        if self._adaptive is not None:
            self._adapt(self._adaptive.on_entry(len(entry.payload), entry.charged))
        entry.topic = self._text
        entry.epoch = epoch
        if self._seeking == epoch:
            self.permits.release(entry.charged, self._reasons.SKIPPED, epoch)
        elif self.values is None or self.values.admit(entry, source):
            self.deliver(entry, source)
        if self.permits.zero_queue:
            self.permits.receivers(self.mailbox.waiters)

    def deliver(self, entry: Any, source: Any) -> None:
        """An entry that was charged, and whose schema is known, to where its messages wait."""
        epoch = source.epoch
        if entry.chunk_id is not None and entry.corrupt is None:
            self._on_part(entry, source)
        elif self.letters is not None and entry.redelivery_count > self.letters.limit:
            self._bury(entry, epoch, self.letters)
        elif self._sealed or (entry.compression and entry.corrupt is None):
            self.mailbox.put_sealed(entry, entry.charged, source)
        else:
            batch = self._codec.decode_messages(entry)
            messages = self._wanted(entry, list(batch))
            self._settle(entry, epoch, batch, len(messages))
            if messages:
                self.mailbox.put_many(messages, source)

    # ---- told by the mailbox

    def on_taken(self, source: Any, taken: int) -> None:
        """The user took that many since it was told last."""
        self.permits.release(taken + self._told_beyond(), self._reasons.DELIVERED, source.epoch)
        if not self.options.durable and source is self._source and source.last is not None:
            self.acks.add_cumulative(self._id_of(source.last))
            self.acks.flush()

    def open_sealed(self, sealed: Any, source: Any) -> list[Any]:
        """A compressed entry, opened on the side that takes; outside of any entry."""
        entry, batch = unpacked(self._codec, sealed)
        if self.options.by_batch:
            return self._whole(entry, source, batch)
        messages = self._wanted(entry, list(batch))
        if self._watched or len(messages) != entry.charged:
            with self.client.driver.enter():
                self._settle(entry, source.epoch, batch, len(messages))
                if self._watched and messages and source is self._source:
                    self._watch(entry, messages)
        return messages

    def on_wait(self) -> None:
        """A receive finds nothing and begins to wait."""
        if self._adaptive is not None:
            self._adapt(self._adaptive.on_wait())
        else:
            self.permits.receivers(self.mailbox.waiters)

    # ---- told by what keeps an eye on messages that were taken

    def taken_in_part(self) -> tuple[int, int] | None:
        """The entry of which some messages are taken and others wait; None if there is none such."""
        last = self._source.last
        if last is None or last.batch_index < 0 or last.batch_index >= last.entry.num_messages - 1:
            return None
        return (last.entry.ledger, last.entry.entry) if self._source.waiting else None

    def ask_back(self, keys: Sequence[tuple[int, int]]) -> None:
        """Entries whose time is over come again, or are buried."""
        log.info("%s: %d entries were not acknowledged in %s s", self._text, len(keys), self.options.ack_timeout)
        if self.letters is not None:
            keys = self.letters.bury_known(keys)
        for ledger, entry in keys:
            self.redelivery.nack(ledger, entry, 0.0)

    # ---- told by what gathers messages in parts

    def ack_keys(self, keys: Iterable[tuple[int, int]]) -> None:
        """Entries that are of no use."""
        for ledger, entry in keys:
            self.acks.due(self.acks.set.add_id(ledger, entry))

    def ask_parts_back(self, keys: Iterable[tuple[int, int]]) -> None:
        """One by one where the type can: in order it would bring back everything, again and again.

        Never at once, even if the user's own refusals are: they would come, be of no use, and come again.
        """
        if not self.options.in_order:
            for ledger, entry in keys:
                self.redelivery.nack(ledger, entry, max(self.options.nack_delay_after(0), 1.0))

    # ---- inside

    def _on_part(self, entry: Any, source: Any) -> None:
        """Of a message in parts: with its last one it is whole and takes that part's permit along."""
        whole = self.chunks.add(entry)
        if whole is None:
            last = entry.chunk_id + 1 == entry.num_chunks
            reason = self._reasons.DISCARDED if last else self._reasons.CHUNK
            self.permits.release(entry.charged, reason, source.epoch)
        elif self.letters is not None and entry.redelivery_count > self.letters.limit:
            self._bury(whole, source.epoch, self.letters)
        else:
            self.mailbox.put_sealed(whole, entry.charged, source)

    def _watch(self, entry: Any, messages: list[Any]) -> None:
        if self.unacked is not None:
            self.unacked.track(entry, messages)
        if self.letters is not None:
            self.letters.remember(entry, messages)

    def _bury(self, sealed: Any, epoch: int, letters: DeadLetters) -> None:
        """It came too often: nobody sees it here any more."""
        entry, batch = unpacked(self._codec, sealed)
        messages = self._wanted(entry, list(batch))
        self._settle(entry, epoch, batch, len(messages))
        self.permits.release(len(messages), self._reasons.DISCARDED, epoch)
        if messages:
            letters.bury((entry.ledger, entry.entry), messages)

    def _check_cumulative(self) -> None:
        if not self.options.in_order:
            raise ConfigError(f"a {self.options.type} subscription is acknowledged message by message")

    def _own_mailbox(self) -> Mailbox:
        return Mailbox(
            self.client.driver,
            self.client.impl.handover.Mailbox,
            on_taken=self.on_taken,
            opener=self.open_sealed,
            on_wait=self.on_wait if self.permits.zero_queue or self._adaptive is not None else None,
        )

    def _own_position(self, to: Any) -> Any:
        """Where to seek, of positions by topic."""
        if not isinstance(to, Mapping):
            return to
        if list(to) != [self._text]:
            raise ConfigError(f"this consumer's one topic is {self._text}, not {', '.join(to)}")
        return to[self._text]

    def _adapt(self, window: int | None) -> None:
        if window is not None:
            self.resize(window)

    def _whole(self, entry: Any, source: Any, batch: Any) -> list[Any]:
        """The batch itself, which the mailbox counts as one message: the others' permits follow it in `_on_taken`."""
        wanted = len(batch) if self._start.takes_whole(entry) else 0
        if wanted != entry.charged:
            with self.client.driver.enter():
                self._settle(entry, source.epoch, batch, wanted)
        if wanted:
            self._beyond.append(wanted - 1)
        return [batch] if wanted else []

    def _told_beyond(self) -> int:
        told = 0
        while self._beyond:  # popped, not swapped: another thread may be about to append
            told += self._beyond.pop()
        return told

    def _id_of(self, taken: Any) -> Any:
        """Of a message; of a batch the id of its entry, which means all of it."""
        if taken is None or not self.options.by_batch:
            return None if taken is None else taken.message_id
        return self._codec.MessageId(taken.entry.ledger, taken.entry.entry, taken.entry.partition)

    def _settle(self, entry: Any, epoch: int, batch: Any, wanted: int) -> None:
        """What of an entry does not go to the user leaves here; an entry that cannot be read is told so."""
        if batch.corrupt is not None:
            log.warning("%s: entry %d:%d cannot be read (%d)", self._text, entry.ledger, entry.entry, batch.corrupt)
            self.acks.refuse(entry, batch.corrupt)
        self.permits.release(batch.lost, self._reasons.DISCARDED, epoch)
        self.permits.release(entry.charged - batch.lost - wanted, self._reasons.SKIPPED, epoch)

    def _wanted(self, entry: Any, messages: list[Any]) -> list[Any]:
        """Without what lies before the start, and what was acknowledged here and comes again all the same."""
        if self._start.hides(entry):
            messages = self._start.after(entry, messages)
        if self._repeats:
            covers, ledger, number = self.acks.covers, entry.ledger, entry.entry
            messages = [message for message in messages if not covers(ledger, number, message.batch_index)]
        return messages

    def _new_source(self, epoch: int) -> None:
        old = self._source
        self._box.collect(old)  # of an old epoch: nobody grants for it any more
        self.mailbox.clear(old)
        if not self.options.durable and old.last is not None and old is not self._left:
            self._start.go_on_after(self._id_of(old.last))
        if self.unacked is not None:
            self.unacked.clear()
        if self.letters is not None:
            self.letters.clear()
        self.chunks.clear()
        if self.values is not None:
            self.values.clear()
        self._repeats = epoch > 1
        self.acks.set.forget()
        self.redelivery.clear()
        self._beyond.clear()
        self._source = self._make_source(epoch)

    def _make_source(self, epoch: int) -> Any:
        half = 1 if self.options.by_batch else self.permits.half
        return self.client.impl.handover.Source(self, epoch, half)

    def _drop_waiting(self) -> None:
        """What was taken is told, what waits is dropped: both have their permits back."""
        source = self._source
        told = self._box.collect(source) + self._told_beyond()
        self.permits.release(told, self._reasons.DELIVERED, source.epoch)
        self.permits.release(self.mailbox.clear(source), self._reasons.DISCARDED, source.epoch)
        if self.values is not None:
            self.permits.release(self.values.clear(), self._reasons.DISCARDED, source.epoch)

    def _detached(self) -> None:
        self.connection = None
        self.permits.lost()

    def _opened(self) -> Connection:
        if self._failure is not None:
            raise self._failure
        if self.connection is None:
            raise LinkError(f"not connected to the broker of {self.topic} at present")
        return self.connection

    def _send_flow(self, permits: int) -> None:
        if self.connection is not None:
            self.connection.write(self._codec.encode_flow(self.consumer_id, permits))

    def _subscribe(self) -> requests.Command:
        options = self.options
        return requests.subscribe(
            self._text,
            self.subscription,
            self.consumer_id,
            type=options.type,
            name=self.name,
            priority=options.priority,
            durable=options.durable,
            start=None if options.durable else self._start.resume,
            from_earliest=options.start == "earliest",
            metadata=options.properties,
            read_compacted=options.read_compacted,
            schema=None if options.schema is None else options.schema.info,
            create_topic=self._home is None or self._home.makes_topics,
        )
