"""Owns what a cluster and its brokers know: topics with their queues, groups, stored messages."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mqclient.broker.remoting.server import Refused
from mqclient.broker.store import Log
from mqclient.broker.watched import Watched
from mqclient.rocketmq.codes import Response

if TYPE_CHECKING:
    from mqclient.broker.broker import House
    from mqclient.broker.remoting.server import Peer

READ: Final = 4
WRITE: Final = 2
INHERIT: Final = 1
SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
TIMER_TOPIC: Final = "rmq_sys_wheel_timer"
HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
CLUSTER_NAME: Final = "DefaultCluster"

SYSTEM_TOPICS: Final = {
    "SELF_TEST_TOPIC": (1, 6),
    "TBW102": (8, 7),
    "BenchmarkTest": (1024, 6),
    "OFFSET_MOVED_EVENT": (1, 6),
    SCHEDULE_TOPIC: (18, 6),
    TIMER_TOPIC: (1, 6),
    HALF_TOPIC: (1, 6),
    OP_TOPIC: (1, 6),
    f"{CLUSTER_NAME}_REPLY_TOPIC": (1, 6),
}
"""Queues and permission of the topics that a broker makes at its start."""

DEFAULT_CONFIG: Final = {
    "autoCreateSubscriptionGroup": "true",
    "autoCreateTopicEnable": "true",
    "brokerClusterName": CLUSTER_NAME,
    "brokerId": "0",
    "brokerPermission": "6",
    "brokerRole": "ASYNC_MASTER",
    "defaultTopicQueueNums": "8",
    "defaultQueryMaxNum": "32",
    "defaultMessageRequestMode": "PULL",
    "defaultPopShareQueueNum": "-1",
    "enablePropertyFilter": "false",
    "fileReservedTime": "72",
    "litePullMessageEnable": "true",
    "longPollingEnable": "true",
    "maxMessageSize": "4194304",
    "maxMsgsNumBatch": "64",
    "maxTransferBytesOnMessageInMemory": "1048576",
    "maxTransferCountOnMessageInMemory": "1024",
    "messageDelayLevel": "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
    "popFromRetryProbability": "20",
    "popPollingSize": "1024",
    "recallMessageEnable": "false",
    "rejectTransactionMessage": "false",
    "serverLoadBalancerEnable": "true",
    "shortPollingTimeMills": "1000",
    "storeReplyMessageEnable": "true",
    "timerMaxDelaySec": "259200",
    "transactionCheckInterval": "30000",
    "transactionCheckMax": "15",
    "transactionTimeOut": "6000",
    "useServerSideResetOffset": "true",
}


MOST_QUEUES: Final = 1 << 16


def queue_count(count: int) -> int:
    """So many queues, if a topic may have them: whoever looks at a topic looks at each."""
    if count > MOST_QUEUES:
        raise Refused(Response.INVALID_PARAMETER, f"{count} queues are too many: a topic has at most {MOST_QUEUES}")
    return count


class Stored(NamedTuple):
    """Where a message lies now."""

    queue_id: int
    offset: int
    physical_offset: int


@dataclass(slots=True)
class Incoming:
    """A message on its way into the store."""

    topic: str
    queue_id: int
    body: bytes
    properties: bytes
    flag: int = 0
    sys_flag: int = 0
    born_at: int = 0
    born_host: tuple[str, int] = ("127.0.0.1", 0)
    attempts: int = 0
    prepared_transaction_offset: int = 0
    placed: Callable[[Stored], None] | None = None
    """Told where it lies, once it does."""

    @classmethod
    def again(cls, message: Any, topic: str, queue_id: int, properties: bytes) -> Incoming:
        """A stored message on its way to another place: body, flags, attempts and birth are kept."""
        host, _, port = message.born_host.rpartition(":")
        return cls(
            topic,
            queue_id,
            message.body,
            properties,
            flag=message.flag,
            sys_flag=message.sys_flag,
            born_at=message.born_at,
            born_host=(host.strip("[]"), int(port)),
            attempts=message.attempts,
        )


class Queue:
    """One queue: its log, where a message's mark is the Java hash of its tag, 0 for none."""

    __slots__ = ("log", "waiting")

    def __init__(self) -> None:
        self.log = Log()
        self.waiting: list[Callable[[], None]] = []
        """Held pulls: called, all and once, when something arrived."""

    def tag(self, offset: int) -> int:
        return self.log.mark(offset)

    def find(self, physical: int) -> int:
        """The offset of the message at this place of the commit log, -1 if it is not of this queue."""
        log = self.log
        offset = log.first + bisect_left(range(log.first, log.next), physical, key=self._physical)
        return offset if offset < log.next and self._physical(offset) == physical else -1

    def _physical(self, offset: int) -> int:
        return int.from_bytes(self.log.record(offset)[28:36], "big")


@dataclass(slots=True)
class Topic:
    """A topic's configuration and its queues."""

    name: str
    read_queues: int
    write_queues: int
    perm: int = 6
    sys_flag: int = 0
    order: bool = False
    filter_type: str = "SINGLE_TAG"
    attributes: dict[str, str] = field(default_factory=dict)
    queues: dict[int, Queue] = field(default_factory=dict)
    on_queue: Callable[[int, Queue], None] | None = None
    """Told of every new queue."""

    def shown(self) -> str:
        """As upstream prints it in remarks."""
        bits = (("R", READ), ("W", WRITE), ("X", INHERIT))
        perm = "".join(letter if self.perm & bit else "-" for letter, bit in bits)
        attributes = ", ".join(f"{name}={value}" for name, value in self.attributes.items())
        return (
            f"TopicConfig [topicName={self.name}, readQueueNums={self.read_queues}, "
            f"writeQueueNums={self.write_queues}, perm={perm}, topicFilterType={self.filter_type}, "
            f"topicSysFlag={self.sys_flag}, order={str(self.order).lower()}, attributes={{{attributes}}}]"
        )

    def queue(self, queue_id: int) -> Queue:
        queue = self.queues.get(queue_id)
        if queue is None:
            queue = self.queues[queue_id] = Queue()
            if self.on_queue is not None:
                self.on_queue(queue_id, queue)
        return queue


@dataclass(slots=True)
class Group:
    """A consumer group's configuration."""

    name: str
    consume_enable: bool = True
    broadcast_enable: bool = True
    notify_changes: bool = True
    retry_queues: int = 1
    retry_max: int = 16
    more: dict[str, Any] = field(default_factory=dict)
    """What else administrators set."""
    forbidden: list[str] = field(default_factory=list)
    """Topics that it may not read."""


class Broker:
    """One broker's state. Families of requests work on it; it knows none of them."""

    def __init__(self, house: House, name: str) -> None:
        self.house = house
        self.name = name
        self.host = ("127.0.0.1", 0)
        self.topics: Watched[str, Topic] = Watched()
        self.groups: Watched[str, Group] = Watched()
        self.config: Watched[str, str] = Watched({"brokerName": name, **DEFAULT_CONFIG})
        self.on_lost: list[Callable[[Peer], None]] = []
        """Families that keep something per connection."""
        self.on_store: Callable[[Incoming], Incoming] = lambda incoming: incoming
        """The delay family turns messages aside here."""
        self.soon: Callable[[Callable[[], None]], object] = lambda call: call()
        """The loop's `call_soon`, once there is one."""
        self._end = 0  # of the commit log
        for topic, (queues, perm) in SYSTEM_TOPICS.items():
            self.topics[topic] = Topic(topic, queues, queues, perm)

    @property
    def address(self) -> str:
        return f"{self.host[0]}:{self.host[1]}"

    @property
    def end(self) -> int:
        """Of the commit log: where the next message will lie."""
        return self._end

    def setting(self, name: str) -> bool:
        return self.config.get(name, "").lower() == "true"

    def number(self, name: str) -> int:
        return int(self.config[name])

    def topic(self, name: str) -> Topic:
        topic = self.topics.get(name)
        if topic is None:
            remark = f"topic[{name}] not exist, apply first please! \n{HELP}"
            raise Refused(Response.TOPIC_NOT_EXIST, remark)
        return topic

    def group(self, name: str) -> Group:
        """A group's configuration, made on first sight."""
        group = self.groups.get(name)
        if group is None:
            if not self.setting("autoCreateSubscriptionGroup"):
                remark = f"subscription group [{name}] does not exist, {HELP}"
                raise Refused(Response.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
            group = self.groups[name] = Group(name)
        return group

    def make_topic(self, name: str, queues: int, perm: int = 6) -> Topic:
        topic = self.topics.get(name)
        if topic is None:
            topic = self.topics[name] = Topic(name, queues, queues, perm)
        return topic

    def store(self, incoming: Incoming) -> Stored:
        """Write a message into its queue, or aside if it is to be delivered later; wake who waits for it."""
        incoming = self.on_store(incoming)
        queue = self.topic(incoming.topic).queue(incoming.queue_id)
        now = self.house.clock.wall_ms()
        physical, offset = self._end, queue.log.next
        record = self.encode(incoming, offset, physical, now)
        self._end += len(record)
        queue.log.append(record, now, self.tag_code(incoming.properties))
        self._wake(queue)
        stored = Stored(incoming.queue_id, offset, physical)
        if incoming.placed is not None:
            incoming.placed(stored)
        return stored

    def store_batch(self, incoming: Incoming) -> tuple[int, int, bytes]:
        """Write the messages of a batch body, none of which is to be delivered later, into their queue at once; the
        offset of the first, its place in the commit log, and where each ends behind that (uint32)."""
        queue = self.topic(incoming.topic).queue(incoming.queue_id)
        now = self.house.clock.wall_ms()
        physical, offset = self._end, queue.log.next
        records, ends, tags = self.house.impl.remoting.store_batch(
            incoming.body,
            incoming.topic,
            queue_id=incoming.queue_id,
            offset=offset,
            physical_offset=physical,
            sys_flag=incoming.sys_flag,
            born_at=incoming.born_at,
            born_host=incoming.born_host,
            stored_at=now,
            store_host=self.host,
        )
        self._end += len(records)
        queue.log.extend(records, array("I", ends), array("i", tags), array("q", (now,)) * (len(ends) // 4))
        self._wake(queue)
        return offset, physical, ends

    def encode(self, incoming: Incoming, offset: int, physical: int, when: int) -> bytes:
        """A message as it is stored at this place and time."""
        record: bytes = self.house.impl.remoting.encode_message(
            incoming.body,
            incoming.topic,
            properties=incoming.properties,
            queue_id=incoming.queue_id,
            flag=incoming.flag,
            offset=offset,
            physical_offset=physical,
            sys_flag=incoming.sys_flag,
            born_at=incoming.born_at,
            born_host=incoming.born_host,
            stored_at=when,
            store_host=self.host,
            attempts=incoming.attempts,
            prepared_transaction_offset=incoming.prepared_transaction_offset,
        )
        return record

    def go_on_behind(self, log: Log) -> None:
        """A log of a former run is here: the commit log goes on behind its last message."""
        if len(log):
            last = log.record(log.next - 1)
            self._end = max(self._end, int.from_bytes(last[28:36], "big") + len(last))

    def record(self, physical: int) -> memoryview | None:
        """What is stored at this place of the commit log, if a message begins there."""
        for topic in self.topics.values():
            for queue in topic.queues.values():
                offset = queue.find(physical)
                if offset >= 0:
                    return queue.log.record(offset)
        return None

    def find(self, physical: int) -> Any:
        """The message at this place of the commit log, decoded; None if there is none."""
        record = self.record(physical)
        return None if record is None else self.house.impl.remoting.decode_messages(record)[0]

    def tag_code(self, properties: bytes) -> int:
        """What filters compare: the Java hash of the tag."""
        start = 5 if properties.startswith(b"TAGS\x01") else properties.find(b"\x02TAGS\x01") + 6
        if start == 5 and not properties.startswith(b"TAGS\x01"):
            return 0
        end = properties.find(b"\x02", start)
        tag = properties[start : end if end >= 0 else None].decode("utf-8", "replace")
        code: int = self.house.impl.digest.java_string_hash(tag)
        return code

    def _wake(self, queue: Queue) -> None:
        # Not at once: of a batch all messages are stored by the time the pulls are served.
        waiting, queue.waiting = queue.waiting, []
        for wake in waiting:
            self.soon(wake)


class Cluster:
    """The brokers behind one name server."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.brokers = [Broker(house, f"broker-{chr(ord('a') + index)}") for index in range(house.brokers)]

    def broker_data(self, broker: Broker) -> dict[str, Any]:
        return {
            "brokerAddrs": {0: broker.address},
            "brokerName": broker.name,
            "cluster": CLUSTER_NAME,
            "enableActingMaster": False,
        }


HELP: Final = "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
