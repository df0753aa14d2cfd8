"""Owns one consumer: what the user asks of it, being subscribed, what the broker says about it, its end."""

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
from mqclient.pulsar.attachment import Attachment
from mqclient.pulsar.chunks import Chunks
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.connection import Connection
from mqclient.pulsar.consumer_options import ConsumerOptions
from mqclient.pulsar.dead_letter import DeadLetters
from mqclient.pulsar.intake import Intake
from mqclient.pulsar.listening import GRACE, Listening
from mqclient.pulsar.names import ServiceUrl, TopicName
from mqclient.pulsar.permits import Permits
from mqclient.pulsar.redelivery import Redelivery
from mqclient.pulsar.seeking import Seeking
from mqclient.pulsar.unacked import Unacked
from mqclient.pulsar.unsealing import Unsealer
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

    How entries become messages is the intake's matter, where to go on is that of seeking.
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
        self.epoch = 0
        """How often everything was asked back, where one consumer at a time gets it in order."""
        self.attachment = Attachment(client, topic, self, f"consumer of {topic}, subscription {subscription}")
        permits = Permits(client.impl, 1 if options.queue_memory else options.receiver_queue, self._send_flow)
        self.permits = permits
        self.listening: Listening | None = None
        self.acks = Acks(self, client.impl, options)
        self.redelivery = Redelivery(self, not options.in_order)
        self.unacked = Unacked(self, options.ack_timeout) if options.ack_timeout else None
        self.letters = None if options.letters is None else DeadLetters(self, options.letters)
        self.chunks = Chunks(self, options.chunked_pending, options.chunk_expiry)
        self.values = Values(self, options.schema) if options.schema is not None else None
        self.unsealer = Unsealer(self, options.decrypt)
        self._home = home
        self._codec = client.impl.pulsar
        self._text = str(topic)
        self.seeking = Seeking(self)
        self.intake = Intake(self, permits, None if home is None else home.mailbox)
        self.mailbox = self.intake.mailbox
        self.on_entries = self.intake.on_entries
        self._failure: MQError | None = None
        self._asked: Slot[Any] | None = None
        """SUBSCRIBE, while it is not answered."""
        self._migrated = False
        """What was acknowledged means nothing where the topic is now."""
        if home is not None:
            self.permits.pause()

    # ---- asked by the face

    def open(self, deadline: float) -> Slot[None]:
        if self._home is None:
            self.client.join(self)
        return self.attachment.start(deadline)

    @property
    def ready(self) -> bool:
        return self.attachment.attached

    def renew(self) -> None:
        """A child of the process would take messages from its parent: who wants that makes a consumer there."""

    @property
    def topics(self) -> list[str]:
        return [self._text]

    def check_by_batch(self) -> None:
        if not self.options.by_batch:
            raise ConfigError("batches come from what was opened with by_batch=True")

    def by_child(self, messages: Iterable[Any]) -> Iterable[tuple[ConsumerEngine, list[Any]]]:
        """As a consumer of many topics: who has to do with which."""
        return [(self, list(messages))]

    def acks_due(self, signal: int) -> None:
        self.check_told()
        self.acks.due(signal)

    def check_told(self) -> None:
        """Closed, nothing is told any more: whoever acknowledges then hears of it."""
        if self._failure is not None:
            self.acks.drop()
            raise self._failure

    def ack_cumulative(self, message: Any) -> None:
        self._check_cumulative()
        self.check_told()
        self.acks.due(self.acks.add_cumulative(message))

    def ack_confirmed(self, messages: Iterable[Any]) -> Slot[Any]:
        """Acknowledge and have the broker's word for it."""
        return run_steps(self.acks.confirm_steps(list(messages)))

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
        self.intake.drop_waiting()
        self.chunks.clear()
        if self.options.in_order and self.connection is not None:
            self.epoch += 1
        # While another one is active the broker may not listen: nothing of what it sends then is too old.
        self.intake.expect_again(self.epoch if self.connection is not None and self.active else 0)
        if self.unacked is not None:
            self.unacked.clear()
        self.redelivery.all()

    def resize(self, window: int) -> None:
        """Keep so many messages in advance from now on."""
        self.intake.resize(window)

    def pause(self) -> None:
        self.permits.pause()
        if self.listening is not None:
            self.listening.pause()

    def resume(self) -> None:
        self.permits.resume()
        if self.listening is not None:
            self.listening.resume()

    def seek_steps(self, to: Any) -> Steps[None]:
        """To a message id, or to a time in ms."""
        return self.seeking.steps(to)

    def last_message_id_steps(self) -> Steps[MessageId | None]:
        """The last message of the topic; None if there is none."""
        reply = yield from self._ask_steps(requests.last_message_id(self.consumer_id))
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
        reply = yield from self._ask_steps(requests.consumer_stats(self.consumer_id))
        return {field.name: value for field, value in reply.ListFields() if field.name != "request_id"}

    def unsubscribe_steps(self, force: bool) -> Steps[None]:
        """The subscription is deleted at the broker, and this consumer closed."""
        yield from self._ask_steps(requests.unsubscribe(self.consumer_id, force))
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
            "mailbox": self.intake.source.waiting,
            "unread": self.unsealer.unread,
            "untold": self.intake.untold,
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
        self._begin(epoch)
        connection.consumers[self.consumer_id] = self
        self._asked = connection.request(self._subscribe(), deadline)
        try:
            yield self._asked
        except MQError as error:
            connection.consumers.pop(self.consumer_id, None)
            if isinstance(error, DeadlineError):  # the broker may have it meanwhile: the next one would be refused
                connection.tell(requests.close_consumer(self.consumer_id))
            raise
        finally:
            self._asked = None
        if connection.consumers.get(self.consumer_id) is self:
            self.connection = connection
            self.acks.flush()  # before the broker is asked for more: it would send them once again
            self.permits.open(epoch)

    def on_lost(self, connection: Connection, cause: MQError) -> None:
        self._detached()
        self.attachment.on_lost(connection)

    def on_closed_by_broker(self, connection: Connection, broker_url: str | None) -> None:
        self._detached()
        self.acks.closed_by_broker()
        self.attachment.on_closed_by_broker(connection, broker_url)

    def on_migrated(self, connection: Connection, cluster: ServiceUrl) -> None:
        if self.attachment.on_migrated(connection, cluster):
            self.acks.flush()
            self._migrated = True
            if self._asked is not None:
                self._asked.fail(LinkError(f"{self.topic} is in another cluster"))

    def on_failed(self, error: MQError) -> None:
        self._failure = error
        self._detached()
        self.acks.close()
        self.redelivery.clear()
        self.chunks.clear()
        self.mailbox.clear(self.intake.source)
        if self._home is not None:
            self._home.on_child_failed(self, error)
            return
        self.mailbox.close(error)
        self.client.leave(self)

    def on_active(self, active: bool) -> None:
        self.active = active
        self.intake.take_all()
        told = self.options.on_active
        if told is not None:
            self.client.driver.run_user(lambda _: told(self._text, active), None)

    def on_end_of_topic(self) -> None:
        self.reached_end = True

    # ---- told by what keeps an eye on messages that were taken

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

    def _check_cumulative(self) -> None:
        if not self.options.in_order:
            raise ConfigError(f"a {self.options.type} subscription is acknowledged message by message")

    def _begin(self, epoch: int) -> None:
        """Nothing that belongs to the old subscription means anything in the new one."""
        if self._migrated:
            self._migrated = False
            self.acks.clear()
        self.intake.begin(epoch)
        if self.unacked is not None:
            self.unacked.clear()
        if self.letters is not None:
            self.letters.clear()
        self.chunks.clear()
        if self.values is not None:
            self.values.clear()
        self.unsealer.clear()
        self.acks.set.forget()
        self.redelivery.clear()

    def _detached(self) -> None:
        self.connection = None
        self.permits.lost()

    def opened_steps(self, deadline: float) -> Steps[Connection]:
        """The connection on which the subscription is open, waited for while the topic moves."""
        if self._failure is not None:
            raise self._failure
        if self.connection is None:
            yield from self.attachment.attached_steps(deadline)
        if self.connection is None:  # it is being closed
            raise LinkError(f"not connected to the broker of {self.topic} at present")
        return self.connection

    def _ask_steps(self, command: requests.Command) -> Steps[Any]:
        deadline = self.client.deadline()
        connection = yield from self.opened_steps(deadline)
        return (yield connection.request(command, deadline))

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
            start=None if options.durable else self.intake.start.resume,
            from_earliest=options.start == "earliest",
            metadata=options.properties,
            read_compacted=options.read_compacted,
            schema=None if options.schema is None else options.schema.info,
            create_topic=self._home is None or self._home.makes_topics,
            epoch=self.epoch if options.in_order else None,
            keys=requests.key_shared(options.key_ranges, options.out_of_order) if options.shares_keys else None,
            subscription_properties=options.subscription_properties,
            replicated=options.replicated,
        )
