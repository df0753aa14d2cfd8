"""Owns what becomes of messages that cannot be handled: the retry-letter and the dead-letter topic."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, gather, run_steps
from mqclient.errors import MQError
from mqclient.pulsar.consumer_options import DeadLetter
from mqclient.pulsar.names import TopicName, without_partition
from mqclient.pulsar.outgoing import Item, Special
from mqclient.pulsar.producing import Engine as Producer
from mqclient.pulsar.producing import open_producer

if TYPE_CHECKING:
    from mqclient.pulsar.consumer import ConsumerEngine

Key = tuple[int, int]
TIMES, DELAY = "RECONSUMETIMES", "DELAY_TIME"

log = logging.getLogger("mqclient.pulsar")


def retry_topic(topic: TopicName, subscription: str, policy: DeadLetter) -> str:
    return policy.retry_topic or f"{without_partition(topic)}-{subscription}-RETRY"


def dead_letter_topic(topic: TopicName, subscription: str, policy: DeadLetter) -> str:
    return policy.topic or f"{without_partition(topic)}-{subscription}-DLQ"


class DeadLetters:
    """Letters are copies with a note of where they come from. A message is acknowledged when its letter was accepted;
    if it is not, the message comes again as any other.
    """

    __slots__ = ("_consumer", "_last_try", "_policy", "_producers", "_retry_topic", "_topic", "limit")

    def __init__(self, consumer: ConsumerEngine, policy: DeadLetter) -> None:
        self._consumer = consumer
        self._policy = policy
        self.limit = policy.max_redeliveries
        self._topic = dead_letter_topic(consumer.topic, consumer.subscription, policy)
        self._retry_topic = retry_topic(consumer.topic, consumer.subscription, policy)
        self._producers: dict[str, Slot[Producer]] = {}
        self._last_try: dict[Key, list[Any]] = {}
        """What was given to the user for the last time: refused once more, it is not asked back."""

    def remember(self, entry: Any, messages: list[Any]) -> None:
        if entry.redelivery_count >= self.limit:
            self._last_try[entry.ledger, entry.entry] = list(messages)  # the mailbox empties its own

    def bury_known(self, keys: Iterable[Key]) -> list[Key]:
        """Of what would be asked back, bury what had its last try; the others."""
        others = []
        for key in keys:
            messages = self._last_try.pop(key, None)
            if messages is None:
                others.append(key)
            else:
                self.bury(key, messages)
        return others

    def forget(self, keys: Iterable[Key]) -> None:
        """Acknowledged."""
        for key in keys:
            self._last_try.pop(key, None)

    def clear(self) -> None:
        self._last_try.clear()

    def bury(self, key: Key, messages: list[Any]) -> None:
        run_steps(self._bury_steps(key, messages)).then(self._log_failure)

    def retry_steps(self, message: Any, delay: float, properties: Mapping[str, str]) -> Steps[None]:
        """To the retry-letter topic, from which it comes again after the delay; too often, and it is buried."""
        times, milliseconds = _number(message.properties.get(TIMES)) + 1, round(delay * 1000)
        item = self._letter(message, {**properties, TIMES: str(times), DELAY: str(milliseconds)})
        try:
            if times > self.limit:
                yield run_steps(self._send_steps(self._topic, [item]))
            else:
                later = Special(item, deliver_after=milliseconds)
                yield run_steps(self._send_steps(self._retry_topic, [later]))
        except MQError:
            self._consumer.nack([message])
            raise
        self._acknowledge([message])

    def close_steps(self) -> Steps[None]:
        opened = [slot.result() for slot in self._producers.values() if slot.done and slot.error is None]
        self._producers.clear()
        yield gather([run_steps(producer.close_steps()) for producer in opened])

    def _bury_steps(self, key: Key, messages: list[Any]) -> Steps[None]:
        covers = self._consumer.acks.covers
        messages = [message for message in messages if not covers(*key, message.batch_index)]
        try:
            yield run_steps(self._send_steps(self._topic, [self._letter(message, {}) for message in messages]))
        except MQError as error:
            log.warning("%s: no dead letter, so %d:%d comes again: %s", self._consumer.topic, *key, error)
            self._consumer.redelivery.nack(*key, 1.0)
            return
        self._acknowledge(messages)

    def _acknowledge(self, messages: list[Any]) -> None:
        acks = self._consumer.acks
        acks.due(acks.add_many(messages))

    def _send_steps(self, topic: str, items: list[Any]) -> Steps[None]:
        producer = yield run_steps(self._producer_steps(topic))
        sent = yield gather([producer.send(item) for item in items])
        for slot in sent:
            slot.result()

    def _producer_steps(self, topic: str) -> Steps[Producer]:
        """Opened when it is needed first; one that could not be opened is tried anew by the next letter."""
        slot = self._producers.get(topic)
        if slot is None or (slot.done and slot.error is not None):
            options: dict[str, Any] = {"batching": False, "chunking": True, "encrypt": self._policy.encrypt}
            if topic == self._topic:
                options["initial_subscription"] = self._policy.initial_subscription
            slot = self._producers[topic] = open_producer(self._consumer.client, topic, options, None)
        producer: Producer = yield slot
        return producer

    def _letter(self, message: Any, properties: Mapping[str, str]) -> Item:
        entry = message.entry
        place = [entry.ledger, entry.entry, entry.partition] + [message.batch_index] * (message.batch_index >= 0)
        origin = {
            "REAL_TOPIC": message.topic,
            "REAL_SUBSCRIPTION": self._consumer.subscription,
            "ORIGIN_MESSAGE_ID": ":".join(map(str, place)),
        }
        noted = {**origin, **message.properties, **properties}
        body, key = None if message.null_value else message.body, message.key
        encoded = key is not None and message.key_bytes != key.encode()
        return body, key, noted, message.event_time, message.ordering_key, -1, encoded

    def _log_failure(self, slot: Slot[None]) -> None:
        if slot.error is not None:
            log.error("%s: burying failed", self._consumer.topic, exc_info=slot.error)


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else 0
