"""Owns what of the Pulsar broker a data folder keeps: entries, topics, cursors, transactions, schemas, policies."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from mqclient.broker.data import Data
from mqclient.broker.pulsar.compacted import Compacted
from mqclient.broker.pulsar.compaction import SUCCESS
from mqclient.broker.pulsar.schema import Schema
from mqclient.broker.pulsar.topics import Topic, Topics
from mqclient.broker.pulsar.transactions import Transaction
from mqclient.broker.watched import Watched
from mqclient.pulsar.names import TopicName

if TYPE_CHECKING:
    from mqclient.broker.pulsar.subscription import Subscription
    from mqclient.broker.store import Log

OWNER: Final = "pulsar"
BY_ENTRY: Final[dict[str, Callable[[Topic], Watched[int, Any]]]] = {
    "delays": lambda topic: topic.delays,
    "hidden": lambda topic: topic.hidden,
    "chunks": lambda topic: topic.chunks,
}
"""Tables of what is known of single entries."""
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


class Persistent(Mapping[str, Topic]):
    """The topics that are kept: of the others nothing outlives a broker."""

    def __init__(self, topics: Mapping[str, Topic]) -> None:
        self._topics = topics

    def __getitem__(self, name: str) -> Topic:
        topic = self._topics[name]
        if not topic.name.persistent:
            raise KeyError(name)
        return topic

    def __iter__(self) -> Iterator[str]:
        return (name for name, topic in self._topics.items() if topic.name.persistent)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Acks(Mapping[tuple[str, str, int, int, int], Any]):
    """What open transactions have acknowledged: topic, subscription, the transaction's two numbers, entry."""

    def __init__(self, topics: Mapping[str, Topic]) -> None:
        self._topics = topics

    def __getitem__(self, key: tuple[str, str, int, int, int]) -> Any:
        name, subscription, most, least, entry = key
        found = self._topics[name].subscriptions[subscription]
        dumped = found.pending_acks.dump((most, least), entry) if found.durable else None
        if dumped is None:
            raise KeyError(key)
        return dumped

    def __iter__(self) -> Iterator[tuple[str, str, int, int, int]]:
        for name, topic in self._topics.items():
            for subscription in topic.subscriptions.values():
                if subscription.durable:
                    for txn, entry in subscription.pending_acks.rows():
                        yield name, subscription.name, *txn, entry

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Keeper:
    """The broker's place in the folder. A log is known by its topic's name."""

    def __init__(self, data: Data, topics: Topics) -> None:
        self._data = data
        self._topics = topics
        self._known: dict[str, Topic] = {}
        self._subscriptions: dict[str, dict[str, Subscription]] = {}
        self._policies = {
            "tenants": topics.policies.tenants,
            "namespaces": topics.policies.of_namespace,
            "topic_policies": topics.policies.of_topic,
        }
        self._decided = {name: set(table) for name, table in self._policies.items()}
        self.runs: Watched[str, int] = Watched(count=0)
        every = Persistent(topics.all)
        data.shelf(OWNER, self._adopt)
        data.keep(OWNER, "runs", self.runs)
        data.keep(OWNER, "topics", every, _dump_topic, self._load_topic)
        data.keep(OWNER, "partitions", topics.partitions)
        data.keep(OWNER, "subscriptions", Each(every, _subscriptions), _dump_subscription, self._load_subscription)
        for entries, part in BY_ENTRY.items():
            data.keep(OWNER, entries, Each(every, part), load=partial(self._load_entry, part))
        data.keep(OWNER, "sequences", Each(every, _sequences), load=self._load_sequence)
        data.keep(OWNER, "sent", Each(every, _sent), load=self._load_sent)
        data.keep(OWNER, "acks", Acks(every), load=self._load_acks)
        data.keep(OWNER, "transactions", topics.transactions.open, _dump_transaction, self._load_transaction)
        data.keep(OWNER, "begun", topics.transactions.begun)
        data.keep(OWNER, "schemas", topics.schemas.of, _dump_schemas, self._load_schemas)
        for name, table in self._policies.items():
            data.keep(OWNER, name, table, load=table.__setitem__)

        def told(name: str) -> None:
            topic = topics.all.get(name)
            if topic is not None and not topic.name.persistent:
                return
            self._look(name)
            data.tell(OWNER, "topics", name)

        topics.all.tell = told

    def start(self) -> None:
        """The folder was read."""
        self.runs["count"] += 1
        if self.runs["count"] > 1:
            self._topics.names = count(NAMES_A_RUN * self.runs["count"])
        self._topics.policies.changes += 1
        self._topics.transactions.resume()
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
            for table, part in OF_TOPICS.items():
                for key in part(before):
                    self._data.tell(OWNER, table, (name, key))
            for subscription in list(self._subscriptions.pop(name, {}).values()):
                self._tell_acks(subscription)
        if topic is None:
            return
        self._known[name] = topic
        if before is not topic:
            self._watch(topic)

    def _watch(self, topic: Topic) -> None:
        name, tell = topic.text, self._data.tell
        known = self._subscriptions[name] = {}
        topic.changed = lambda: self._topics.all.touch(name)
        tables: dict[str, Watched[Any, Any]] = {"sequences": topic.dedup.highest, "sent": topic.txns.entries}
        for table, watched in {**tables, **{table: part(topic) for table, part in BY_ENTRY.items()}}.items():
            watched.tell = lambda key, table=table: tell(OWNER, table, (name, key))  # type: ignore[misc]

        def told(key: str) -> None:
            before, subscription = known.pop(key, None), topic.subscriptions.get(key)
            if before is not None and before is not subscription:
                self._tell_acks(before)
            if subscription is not None:
                known[key] = subscription
                subscription.cursor.tell = lambda: tell(OWNER, "subscriptions", (name, key))
                subscription.pending_acks.tell = lambda txn, entry: tell(OWNER, "acks", (name, key, *txn, entry))
            tell(OWNER, "subscriptions", (name, key))

        topic.subscriptions.tell = told
        for key in topic.subscriptions:
            told(key)
        self._data.track(OWNER, name, topic.log)

    def _tell_acks(self, subscription: Subscription) -> None:
        """What was pending on a subscription is so no more: it is gone."""
        for txn, entry in subscription.pending_acks.rows():
            self._data.tell(OWNER, "acks", (subscription.topic.text, subscription.name, *txn, entry))

    # ---- at the start

    def _adopt(self, name: str, log: Log) -> None:
        self._topics.all[name] = topic = Topic(TopicName.parse(name), 0, log)
        topic.resume()

    def _load_topic(self, name: str, fields: dict[str, Any]) -> None:
        topic = self._topics.all.get(name)
        if topic is None:
            topic = self._topics.all[name] = Topic(TopicName.parse(name), 0)
        topic.ledger, topic.terminated = fields["ledger"], fields["terminated"]
        if fields.get("compacted") is not None:
            topic.compacted = Compacted.load(fields["compacted"])
            topic.compaction.status = SUCCESS

    def _load_subscription(self, key: tuple[str, str], fields: dict[str, Any]) -> None:
        topic, name = self._topics.all[key[0]], key[1]
        topic.subscribe(name, fields["kind"], mark=fields["mark"]).cursor.load(fields)

    def _load_sequence(self, key: tuple[str, str], highest: int) -> None:
        self._topics.all[key[0]].dedup.highest[key[1]] = highest

    def _load_entry(self, part: Callable[[Topic], Watched[int, Any]], key: tuple[str, int], value: Any) -> None:
        topic = self._topics.all[key[0]]
        if key[1] >= topic.log.first:
            part(topic)[key[1]] = tuple(value) if isinstance(value, list) else value

    def _load_sent(self, key: tuple[str, int], txn: list[int]) -> None:
        self._topics.all[key[0]].txns.add((txn[0], txn[1]), key[1])

    def _load_acks(self, key: tuple[str, str, int, int, int], dumped: Any) -> None:
        name, subscription, most, least, entry = key
        self._topics.all[name].subscriptions[subscription].pending_acks.load((most, least), entry, dumped)

    def _load_transaction(self, txn: tuple[int, int], fields: dict[str, Any]) -> None:
        subscriptions = {(topic, name) for topic, name in fields["subscriptions"]}
        self._topics.transactions.open[txn] = Transaction(fields["ends_at"], set(fields["topics"]), subscriptions)

    def _load_schemas(self, topic: str, versions: list[dict[str, Any]]) -> None:
        self._topics.schemas.of[topic] = [
            Schema(**{**fields, "data": b64decode(fields["data"])}) for fields in versions
        ]


def _subscriptions(topic: Topic) -> Mapping[str, Subscription]:
    return topic.subscriptions


def _sequences(topic: Topic) -> Mapping[str, int]:
    return topic.dedup.highest


def _sent(topic: Topic) -> Mapping[int, tuple[int, int]]:
    return topic.txns.entries


OF_TOPICS: Final[dict[str, Callable[[Topic], Mapping[Any, Any]]]] = {
    **BY_ENTRY,
    "subscriptions": _subscriptions,
    "sequences": _sequences,
    "sent": _sent,
}
"""Tables that each topic has a part of, but for what is acknowledged on subscriptions."""


def _dump_topic(topic: Topic) -> dict[str, Any]:
    view = None if topic.compacted is None else topic.compacted.dump()
    return {"ledger": topic.ledger, "terminated": topic.terminated, "compacted": view}


def _dump_subscription(subscription: Subscription) -> dict[str, Any] | None:
    """None: it ends with its consumers, or with the broker."""
    return {"kind": int(subscription.kind), **subscription.cursor.dump()} if subscription.durable else None


def _dump_transaction(transaction: Transaction) -> dict[str, Any]:
    subscriptions = sorted(transaction.subscriptions)
    return {"ends_at": transaction.ends_at, "topics": sorted(transaction.topics), "subscriptions": subscriptions}


def _dump_schemas(versions: list[Schema]) -> list[dict[str, Any]]:
    names = ("type", "properties", "stored_at", "deleted")
    return [
        {name: getattr(schema, name) for name in names} | {"data": b64encode(schema.data).decode()}
        for schema in versions
    ]
