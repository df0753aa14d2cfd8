"""Owns topics: the log of entries in wire form, who produces to it, and its subscriptions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

from mqclient.broker.broker import House
from mqclient.broker.pulsar.access import Access
from mqclient.broker.pulsar.compacted import Compacted
from mqclient.broker.pulsar.compaction import Compaction
from mqclient.broker.pulsar.dedup import Dedup
from mqclient.broker.pulsar.policies import Policies, whole
from mqclient.broker.pulsar.refused import Refused
from mqclient.broker.pulsar.schemas import Schemas
from mqclient.broker.pulsar.subscription import Subscription
from mqclient.broker.pulsar.transactions import Transactions
from mqclient.broker.pulsar.txn_buffer import TxnBuffer
from mqclient.broker.store import Log
from mqclient.broker.watched import Watched
from mqclient.errors import ConfigError
from mqclient.pulsar.codes import ServerError
from mqclient.pulsar.names import TopicName

if TYPE_CHECKING:
    from mqclient.broker.pulsar.producers import Producer


class Topic:
    """One topic, or one partition. Entries are numbered from 0 in one ledger."""

    def __init__(self, name: TopicName, ledger: int, log: Log | None = None) -> None:
        self.name = name
        self.text = str(name)
        self.partition = name.partition
        self.ledger = ledger
        self.log = Log() if log is None else log
        self.access = Access()
        self.dedup = Dedup()
        self.delays: Watched[int, int] = Watched()
        """Entries with a time (ms) before which shared subscriptions do not deliver them."""
        self.chunks: Watched[int, tuple[str, bool]] = Watched()
        """Entries that are parts of a chunked message: of which, and whether it is the last part."""
        self.hidden: Watched[int, bool] = Watched()
        """Entries that no consumer sees; the value says nothing."""
        self.compacted: Compacted | None = None
        self.compaction = Compaction()
        self.txns = TxnBuffer()
        self.subscriptions: Watched[str, Subscription] = Watched()
        self.terminated = False
        """Nothing is taken any more; who has acknowledged everything is told."""
        self.migrated: tuple[str, str] | None = None
        """The other cluster, plain and by TLS, to which everybody is sent."""
        self.messages_in = 0
        self.bytes_in = 0
        self.changed: Callable[[], object] = lambda: None
        """Called when it is not what it was."""
        self._latest = 0

    def resume(self) -> None:
        """Its log is one of a former run."""
        if len(self.log):
            self._latest = self.log.time(self.log.next - 1)
        self.messages_in = sum(map(abs, self.log.marks()))
        self.bytes_in = self.log.bytes

    def append(self, entry: Any) -> int:
        """Keep an entry as it was sent; its number."""
        # Positive: messages of a plain entry; negative: of a batch-framed one, be it a batch of one.
        stored = entry.stored
        self.messages_in += entry.num_messages
        self.bytes_in += len(stored)
        self._latest = max(self._latest, entry.published_at)
        number = self.log.append(stored, self._latest, -entry.num_messages if entry.batched else 1)
        if entry.deliver_at is not None:
            self.delays[number] = entry.deliver_at
        if entry.chunk_id is not None and entry.uuid is not None:
            self.chunks[number] = entry.uuid, entry.chunk_id + 1 == entry.num_chunks
        for subscription in self.subscriptions.values():
            subscription.poke()
        return number

    def trim(self, first: int) -> None:
        """Forget entries before this one: for subscriptions they are as good as acknowledged."""
        self.log.trim(first)
        for subscription in self.subscriptions.values():
            subscription.cursor.ack_up_to(first - 1)

    def subscribe(self, name: str, kind: int, *, durable: bool = True, mark: int = -1) -> Subscription:
        """A new subscription; everything up to `mark` counts as acknowledged."""
        made = self.subscriptions[name] = Subscription(self, name, kind, durable, mark)
        return made

    @property
    def producers(self) -> dict[str, Producer]:
        """Who produces here, by name."""
        return self.access.producers

    @property
    def ends(self) -> bool:
        """Whoever has acknowledged everything is told."""
        return self.terminated or self.migrated is not None

    @property
    def end(self) -> int:
        return self.log.next

    @property
    def readable(self) -> int:
        """Entries from here on are not for consumers yet: a transaction has not ended."""
        first = self.txns.first
        return self.end if first is None else first

    @property
    def last_seen(self) -> int:
        """The last entry that consumers see, -1 if there is none."""
        entry = self.readable - 1
        while entry in self.hidden:
            entry -= 1
        return entry if entry >= self.log.first else -1

    def messages(self, entry: int) -> int:
        """How many messages an entry holds."""
        return abs(self.log.mark(entry))

    def batched(self, entry: int) -> bool:
        return self.log.mark(entry) < 0

    def entry_of(self, ledger: int, entry: int) -> int:
        """The number of an entry by its id; what lies before our ledger is -1, what lies behind is the end."""
        if ledger == self.ledger:
            return max(-1, min(entry, self.end))
        return -1 if ledger < self.ledger else self.end


class Topics:
    """All topics of the broker, partitions among them."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.policies = Policies(house.settings)
        self.schemas = Schemas(self.policies, house.clock)
        self.transactions = Transactions(house, self)
        self.partitions: Watched[str, int] = Watched()
        """Partitioned topics: their names, and how many partitions each has."""
        self.listeners: list[Callable[[Topic, bool], None]] = []
        """Called with a topic that came (True) or went."""
        self.ledgers = count(1)
        self.names = count()
        self.all: Watched[str, Topic] = Watched()
        """By name."""

    def get(self, name: str) -> Topic | None:
        return self.all.get(str(TopicName.parse(name)))

    def make(self, name: str) -> Topic:
        """The topic of this name; whoever may not make it has asked `admit` before."""
        parsed = TopicName.parse(name)
        topic = self.all.get(str(parsed))
        if topic is None:
            topic = self.all[str(parsed)] = Topic(parsed, next(self.ledgers))
            self._tell(topic, True)
        return topic

    def _tell(self, topic: Topic, there: bool) -> None:
        for listener in self.listeners:
            listener(topic, there)

    def forget(self, topic: Topic) -> None:
        """It is gone, and so is what it held."""
        if self.all.pop(topic.text, None) is not None:
            self._tell(topic, False)
        if str(whole(topic.name)) not in self.partitions:
            self.schemas.forget(whole(topic.name))

    def partition(self, name: TopicName, number: int) -> None:
        """Make a partitioned topic, or let one grow: new partitions have the subscriptions of the old."""
        before = self.partitions.get(str(name), 0)
        self.partitions[str(name)] = number
        known = self.get(str(name.partitioned(0))) if before else None
        for index in range(before, number):
            topic = self.make(str(name.partitioned(index)))
            for subscription in [] if known is None else list(known.subscriptions.values()):
                if subscription.durable:
                    topic.subscribe(subscription.name, subscription.kind)

    def is_there(self, name: TopicName) -> bool:
        return str(name) in self.all or str(name) in self.partitions

    def each(self) -> list[Topic]:
        return list(self.all.values())

    def parts(self, name: TopicName) -> list[Topic]:
        """What is stored under a name: its partitions, or the one topic; empty if there is neither."""
        number = self.partitions.get(str(name), 0)
        names = [str(name.partitioned(index)) for index in range(number)] if number else [str(name)]
        return [topic for text in names if (topic := self.all.get(text)) is not None]

    def admit(self, name: str, *, create: bool = True) -> Topic:
        """The topic to produce to or to consume from, made if that is allowed; Refused says why there is none."""
        topic = self.check(name)
        known = self.all.get(str(topic))
        if known is not None:
            return known
        number = self.partitions.get(str(whole(topic)), 0)
        if number and topic.partition >= number:
            text = f"Illegal topic partition name {topic} with max allowed {number} partitions"
            raise Refused(ServerError.NotAllowedError, text)
        if number and topic.partition < 0:
            raise Refused(ServerError.NotAllowedError, f"{topic} is a partitioned topic: its partitions are served")
        if not number and not (create and self.policies.auto_creation(topic).allowed):
            raise Refused(ServerError.TopicNotFound, f"Topic {topic} does not exist")
        return self.make(name)

    def check(self, name: str) -> TopicName:
        """A name that could be served here."""
        try:
            topic = TopicName.parse(name)
        except ConfigError as error:
            raise Refused(ServerError.InvalidTopicName, f"Invalid topic name: {error}") from None
        if not self.policies.known(topic):
            raise Refused(ServerError.TopicNotFound, "Namespace not found")
        return topic

    def in_namespace(self, namespace: str, wanted: Callable[[Topic], bool]) -> list[str]:
        return sorted(
            topic.text
            for topic in self.all.values()
            if f"{topic.name.tenant}/{topic.name.namespace}" == namespace and wanted(topic)
        )

    def producer_name(self) -> str:
        return f"standalone-0-{next(self.names)}"
