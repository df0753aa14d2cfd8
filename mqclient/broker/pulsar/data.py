"""Owns what of the Pulsar broker a data folder keeps: entries, topics, cursors, schemas, policies."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from mqclient.broker.data import Data, Watched
from mqclient.broker.pulsar.schema import Schema
from mqclient.broker.pulsar.topics import Topic, Topics
from mqclient.pulsar.names import TopicName

if TYPE_CHECKING:
    from mqclient.broker.pulsar.subscription import Subscription
    from mqclient.broker.store import Log

OWNER: Final = "pulsar"
NAMES_A_RUN: Final = 1_000_000
"""Names of producers that one run may give out: a producer that comes back keeps the one of an earlier run."""


class Each(Mapping[tuple[str, Any], Any]):
    """What all topics have of one kind, as one table: keys are the topic's name and the key there."""

    def __init__(self, topics: Mapping[str, Topic], part: Callable[[Topic], Mapping[Any, Any]]) -> None:
        self._topics = topics
        self._part = part

    def __getitem__(self, key: tuple[str, Any]) -> Any:
        return self._part(self._topics[key[0]])[key[1]]

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return ((name, key) for name, topic in self._topics.items() for key in self._part(topic))

    def __len__(self) -> int:
        return sum(len(self._part(topic)) for topic in self._topics.values())


class Keeper:
    """The broker's place in the folder. A log is known by its topic's name."""

    def __init__(self, data: Data, topics: Topics) -> None:
        self._data = data
        self._topics = topics
        self._known: dict[str, Topic] = {}
        self._policies = {
            "tenants": topics.policies.tenants,
            "namespaces": topics.policies.of_namespace,
            "topic_policies": topics.policies.of_topic,
        }
        self._decided = {name: set(table) for name, table in self._policies.items()}
        self.runs: Watched[str, int] = Watched(count=0)
        every = topics.all
        data.shelf(OWNER, self._adopt)
        data.keep(OWNER, "runs", self.runs)
        data.keep(OWNER, "topics", every, _dump_topic, self._load_topic)
        data.keep(OWNER, "partitions", topics.partitions)
        data.keep(OWNER, "subscriptions", Each(every, _durable), _dump_subscription, self._load_subscription)
        data.keep(OWNER, "sequences", Each(every, _sequences), load=self._load_sequence)
        data.keep(OWNER, "delays", Each(every, _delays), load=self._load_delay)
        data.keep(OWNER, "schemas", topics.schemas.of, _dump_schemas, self._load_schemas)
        for name, table in self._policies.items():
            data.keep(OWNER, name, table, load=table.__setitem__)
        tell = every.tell

        def told(name: str) -> None:
            self._look(name)
            tell(name)

        every.tell = told

    def start(self) -> None:
        """The folder was read."""
        self.runs["count"] += 1
        if self.runs["count"] > 1:
            self._topics.names = count(NAMES_A_RUN * self.runs["count"])
        self._topics.policies.changes += 1
        for topic in self._topics.all.values():
            self._topics.ledgers = count(max(next(self._topics.ledgers), topic.ledger + 1))

    def look_at_policies(self) -> None:
        """An administrator may have decided something."""
        for name, table in self._policies.items():
            for key in table.keys() | self._decided[name]:
                self._data.tell(OWNER, name, key)
            self._decided[name] = set(table)

    def _look(self, name: str) -> None:
        """A topic came, went with all it had, or changed in itself."""
        topic, before = self._topics.all.get(name), self._known.pop(name, None)
        if before is not None and before is not topic:
            self._data.drop(before.log)
            for table, part in (("subscriptions", before.subscriptions), ("sequences", before.dedup.highest)):
                for key in part:
                    self._data.tell(OWNER, table, (name, key))
            for entry in before.delays:
                self._data.tell(OWNER, "delays", (name, entry))
        if topic is None:
            return
        self._known[name] = topic
        if before is not topic:
            self._watch(topic)

    def _watch(self, topic: Topic) -> None:
        name, tell = topic.text, self._data.tell
        topic.changed = lambda: self._topics.all.touch(name)
        topic.dedup.highest.tell = lambda producer: tell(OWNER, "sequences", (name, producer))
        topic.delays.tell = lambda entry: tell(OWNER, "delays", (name, entry))

        def told(key: str) -> None:
            subscription = topic.subscriptions.get(key)
            if subscription is not None:
                subscription.cursor.tell = lambda: tell(OWNER, "subscriptions", (name, key))
            tell(OWNER, "subscriptions", (name, key))

        topic.subscriptions.tell = told
        for key in topic.subscriptions:
            told(key)
        self._data.track(OWNER, name, topic.log)

    # ---- at the start

    def _adopt(self, name: str, log: Log) -> None:
        self._topics.all[name] = topic = Topic(TopicName.parse(name), 0, log)
        topic.resume()

    def _load_topic(self, name: str, fields: dict[str, Any]) -> None:
        topic = self._topics.all.get(name)
        if topic is None:
            topic = self._topics.all[name] = Topic(TopicName.parse(name), 0)
        topic.ledger, topic.terminated = fields["ledger"], fields["terminated"]

    def _load_subscription(self, key: tuple[str, str], fields: dict[str, Any]) -> None:
        topic, name = self._topics.all[key[0]], key[1]
        topic.subscribe(name, fields["kind"], mark=fields["mark"]).cursor.load(fields)

    def _load_sequence(self, key: tuple[str, str], highest: int) -> None:
        self._topics.all[key[0]].dedup.highest[key[1]] = highest

    def _load_delay(self, key: tuple[str, int], when: int) -> None:
        topic = self._topics.all[key[0]]
        if key[1] >= topic.log.first:
            topic.delays[key[1]] = when

    def _load_schemas(self, topic: str, versions: list[dict[str, Any]]) -> None:
        self._topics.schemas.of[topic] = [
            Schema(**{**fields, "data": b64decode(fields["data"])}) for fields in versions
        ]


def _durable(topic: Topic) -> dict[str, Subscription]:
    return {name: subscription for name, subscription in topic.subscriptions.items() if subscription.durable}


def _sequences(topic: Topic) -> Mapping[str, int]:
    return topic.dedup.highest


def _delays(topic: Topic) -> Mapping[int, int]:
    return topic.delays


def _dump_topic(topic: Topic) -> dict[str, Any]:
    return {"ledger": topic.ledger, "terminated": topic.terminated}


def _dump_subscription(subscription: Subscription) -> dict[str, Any]:
    return {"kind": int(subscription.kind), **subscription.cursor.dump()}


def _dump_schemas(versions: list[Schema]) -> list[dict[str, Any]]:
    names = ("type", "properties", "stored_at", "deleted")
    return [
        {name: getattr(schema, name) for name in names} | {"data": b64encode(schema.data).decode()}
        for schema in versions
    ]
