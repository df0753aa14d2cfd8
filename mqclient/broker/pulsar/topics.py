"""Owns topics: the log of entries in wire form, who produces to it, and its subscriptions."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

from mqclient.broker.broker import House
from mqclient.broker.store import Log
from mqclient.pulsar.codes import ServerError
from mqclient.pulsar.names import TopicName

if TYPE_CHECKING:
    from mqclient.broker.pulsar.produce import Producer
    from mqclient.broker.pulsar.subscription import Subscription


class Refused(Exception):
    """The command is answered by ERROR with this code."""

    def __init__(self, code: ServerError, text: str) -> None:
        super().__init__(text)
        self.code = code


class Topic:
    """One topic, or one partition. Entries are numbered from 0 in one ledger."""

    def __init__(self, name: TopicName, ledger: int) -> None:
        self.name = name
        self.text = str(name)
        self.partition = name.partition
        self.ledger = ledger
        self.log = Log()
        self.producers: dict[str, Producer] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self._counts = array("i")
        self._latest = 0

    def append(self, entry: Any) -> int:
        """Keep an entry as it was sent; its number."""
        # Positive: messages of a plain entry; negative: of a batch-framed one, be it a batch of one.
        self._counts.append(-entry.num_messages if entry.batched else 1)
        self._latest = max(self._latest, entry.published_at)
        number = self.log.append(entry.stored, self._latest)
        for subscription in self.subscriptions.values():
            subscription.poke()
        return number

    @property
    def end(self) -> int:
        return self.log.next

    def messages(self, entry: int) -> int:
        """How many messages an entry holds."""
        return abs(self._counts[entry])

    def batched(self, entry: int) -> bool:
        return self._counts[entry] < 0

    def entry_of(self, ledger: int, entry: int) -> int:
        """The number of an entry by its id; what lies before our ledger is -1, what lies behind is the end."""
        if ledger == self.ledger:
            return max(-1, min(entry, self.end))
        return -1 if ledger < self.ledger else self.end


class Topics:
    """All topics of the broker; a name that is asked for is made."""

    def __init__(self, house: House) -> None:
        self.house = house
        self._ledgers = count(1)
        self._names = count()
        self._topics: dict[str, Topic] = {}

    def get(self, name: str) -> Topic | None:
        return self._topics.get(str(TopicName.parse(name)))

    def make(self, name: str) -> Topic:
        parsed = TopicName.parse(name)
        topic = self._topics.get(str(parsed))
        if topic is None:
            topic = self._topics[str(parsed)] = Topic(parsed, next(self._ledgers))
        return topic

    def in_namespace(self, namespace: str, wanted: Callable[[Topic], bool]) -> list[str]:
        return sorted(
            topic.text
            for topic in self._topics.values()
            if f"{topic.name.tenant}/{topic.name.namespace}" == namespace and wanted(topic)
        )

    def producer_name(self) -> str:
        return f"standalone-0-{next(self._names)}"
