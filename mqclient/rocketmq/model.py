"""Owns the words that RocketMQ users meet: messages, queues, receipts, and the names that the broker reserves."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mqclient import _impl
from mqclient.errors import ConfigError, MQError

if TYPE_CHECKING:
    from mqclient._native.remoting import Outgoing
else:  # made by users before there is any client: whichever implementation is there
    Outgoing = _impl.usable().remoting.Outgoing

MODELS: Final = ("clustering", "broadcasting")
"""How a group shares its topics: each message to one member, or to every one."""
MAX_BODY: Final = 4 * 1024 * 1024
RETRY_PREFIX: Final = "%RETRY%"
DLQ_PREFIX: Final = "%DLQ%"

_NAME: Final = re.compile(r"[%|a-zA-Z0-9_-]+\Z")
FORBIDDEN_TOPICS: Final = frozenset(
    {
        "SCHEDULE_TOPIC_XXXX",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    }
)
_RESERVED: Final = (
    "KEYS TAGS WAIT DELAY RETRY_TOPIC REAL_TOPIC REAL_QID TRAN_MSG PGROUP MIN_OFFSET MAX_OFFSET ORIGIN_MESSAGE_ID "
    "TRANSFER_FLAG CORRECTION_FLAG MQ2_FLAG RECONSUME_TIME MSG_REGION TRACE_ON UNIQ_KEY EXTEND_UNIQ_INFO "
    "MAX_RECONSUME_TIMES CONSUME_START_TIME DUP_INFO TRAN_PREPARED_QUEUE_OFFSET TRANSACTION_CHECK_TIMES INSTANCE_ID "
    "CORRELATION_ID REPLY_TO_CLIENT TTL ARRIVE_TIME PUSH_REPLY_TIME CLUSTER MSG_TYPE POP_CK POP_CK_OFFSET "
    "1ST_POP_TIME INNER_MULTI_QUEUE_OFFSET TIMER_DELAY_SEC TIMER_DELAY_MS TIMER_DELIVER_MS TIMER_ENQUEUE_MS "
    "TIMER_DEQUEUE_MS TIMER_ROLL_TIMES TIMER_OUT_MS TIMER_DEL_UNIQKEY TIMER_DELAY_LEVEL __BORNHOST BORN_TIMESTAMP "
    "__CRC32# DLQ_ORIGIN_TOPIC DLQ_ORIGIN_MESSAGE_ID"
)
RESERVED_PROPERTIES: Final = frozenset(_RESERVED.split())
_OPTIONAL: Final = ("tag", "keys", "properties", "delay_level", "deliver_at", "deliver_after", "flag")

_TIMINGS: Final[dict[str, tuple[str, Any, str]]] = {
    "delay_level": ("DELAY", int, "one of the broker's levels, from 1 on, or 0, not delayed,"),
    "deliver_at": ("TIMER_DELIVER_MS", int, "a datetime, or milliseconds since 1970,"),
    "deliver_after": ("TIMER_DELAY_MS", (int, float), "a number of seconds"),
}
"""What delays a message: its property, the kinds of its value, and what to say of others."""


class MessageQueue(NamedTuple):
    """One queue of a topic; sorts as in Java: by topic, broker, number."""

    topic: str
    broker_name: str
    queue_id: int


class Message(Outgoing):
    """A message to send: a topic and a body, and by name tag, keys, properties, when to deliver it, and a flag.

    `delay_level`: of the broker's list, 1 to 18 (1 s to 2 h) by default; 0: not delayed. `deliver_at`: a datetime, or
    milliseconds since the epoch; 5.x brokers keep it till then, at most 3 days by default. `deliver_after`: seconds.

    >>> Message("orders", b"...", tag="paid", keys=["42"])
    Message('orders', 3 bytes, tag='paid', keys=['42'])
    """

    __slots__ = ()

    @property
    def timing(self) -> tuple[str, str] | None:
        """The property that delays it, and its value."""
        delays = {"deliver_at": self.deliver_at, "deliver_after": self.deliver_after}
        given = [(name, value) for name, value in delays.items() if value is not None]
        if self.delay_level:
            given.append(("delay_level", self.delay_level))
        if not given:
            return None
        if len(given) > 1:
            raise ConfigError("a message is delayed by one of delay_level, deliver_at and deliver_after, not by two")
        name, value = given[0]
        known, kinds, wanted = _TIMINGS[name]
        if not isinstance(value, kinds) or value < 0:
            raise ConfigError(f"{name}={value!r}: {wanted} is wanted")
        return known, str(round(1000 * value) if name == "deliver_after" else value)

    def __repr__(self) -> str:
        tag = f", tag={self.tag!r}" if self.tag else ""
        keys = f", keys={self.keys!r}" if self.keys else ""
        return f"Message({self.topic!r}, {len(self.body)} bytes{tag}{keys})"

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {name: getattr(self, name) for name in _OPTIONAL}
        return partial(_revived, type(self), self.topic, self.body, **fields), (), getattr(self, "__dict__", None)


def _revived(kind: type[Message], topic: str, body: Any, **fields: Any) -> Message:
    message = kind.__new__(kind)
    Outgoing.__init__(message, topic, body, **fields)
    return message


class Receipt(NamedTuple):
    """The broker has the message; with another `status` than SEND_OK: with less safety than the broker is set to."""

    queue: MessageQueue
    offset: int
    message_id: str
    offset_id: str
    status: str = "SEND_OK"
    transaction_id: str | None = None
    recall_handle: str | None = None

    @property
    def ok(self) -> bool:
        """A receipt is told from an error in a list of results by this."""
        return True

    @property
    def topic(self) -> str:
        return self.queue.topic


if not TYPE_CHECKING:  # an attribute of the class: asked of each message of a batch, a call would cost twice as much
    Receipt.ok = True


class QueueFullError(MQError):
    """More is submitted and not yet answered than the producer's limits allow; nothing of this message was sent."""

    retriable = True


class CircuitOpenError(MQError):
    """The producer's breaker is open, because its last sends failed; nothing of this message was sent."""

    retriable = True


class Account(NamedTuple):
    """What became of the messages that a producer took: each is in one of these."""

    stored: int
    weaker: int
    """Stored with less safety than the broker is set to: no SEND_OK."""
    failed: int
    """Surely not stored by an answer that we know of."""
    unknown: int
    """Sent, without an answer: perhaps stored."""
    pending: int
    """Not decided yet."""

    @property
    def taken(self) -> int:
        return sum(self)


class Reply(NamedTuple):
    """What came back for a request."""

    topic: str
    body: bytes
    properties: Mapping[str, str]

    @property
    def tag(self) -> str | None:
        return self.properties.get("TAGS")


class TransactionState(Enum):
    """How a transaction ended; UNKNOWN: the broker shall ask later."""

    COMMIT = "commit"
    ROLLBACK = "rollback"
    UNKNOWN = "unknown"


class NotSafeError(MQError):
    """A transaction's message was stored with less safety than the broker is set to, and was rolled back."""

    retriable = True

    def __init__(self, receipt: Receipt) -> None:
        super().__init__(f"the half message got {receipt.status} instead of SEND_OK: it was rolled back")
        self.receipt = receipt


class PartialSendError(MQError):
    """Some messages of a `send_many` failed; `results` holds a receipt or an error for each, in order."""

    def __init__(self, results: Sequence[Any]) -> None:
        failed = [result for result in results if not result.ok]
        super().__init__(f"{len(failed)} of {len(results)} messages were not sent; the first because of: {failed[0]}")
        self.results = list(results)


@lru_cache(1024)  # asked for each message, of few topics; a refusal is not kept
def check_topic(topic: str) -> None:
    """ConfigError for a name that no broker takes."""
    if not isinstance(topic, str) or not topic.strip():
        raise ConfigError("a topic is needed")
    if len(topic) > 127:
        raise ConfigError(f"topic {topic[:20]}… has {len(topic)} characters: 127 are allowed")
    if not _NAME.match(topic):
        raise ConfigError(f"topic {topic!r} holds illegal characters: % | a-z A-Z 0-9 _ - are allowed")


def check_group(group: str) -> None:
    """ConfigError for a name that no broker takes, or that every Java client would take by default."""
    if not isinstance(group, str) or not group.strip():
        raise ConfigError("a group is needed")
    if len(group) > 120 or not _NAME.match(group):
        raise ConfigError(f"group {group[:120]!r}: up to 120 of % | a-z A-Z 0-9 _ - are allowed")
    if group in ("DEFAULT_PRODUCER", "DEFAULT_CONSUMER"):
        raise ConfigError(f"group {group!r} is reserved: choose a name of your own")


def check_key(key: Any) -> None:
    if not isinstance(key, str):
        raise TypeError(f"a key is a str, not {type(key).__name__}: messages with the same key go to the same queue")


def check_queue(queue: Any, topic: str) -> None:
    if not isinstance(queue, MessageQueue):
        raise TypeError(f"a queue is a MessageQueue, such as a receipt's, not {type(queue).__name__}")
    if queue.topic != topic:
        raise ConfigError(f"a message to {topic!r} cannot go to a queue of {queue.topic!r}")


def check_message(message: Any, max_body: int = MAX_BODY) -> None:
    """What the broker would refuse is refused here, before anything is sent."""
    if not isinstance(message, Message):
        raise TypeError(f"a rocketmq.Message is sent, not {type(message).__name__}")
    check_topic(message.topic)
    if message.topic in FORBIDDEN_TOPICS:
        raise ConfigError(f"topic {message.topic!r} is the broker's own: nothing can be sent to it")
    if not message.body:
        raise ConfigError("an empty body cannot be sent: brokers fail on it")
    if len(message.body) > max_body:
        cure = "where brokers take more, their maxMessageSize, max_body= lets it pass"
        raise ConfigError(f"the body has {len(message.body)} bytes: {max_body} are allowed ({cure})")
    for name in message.properties:
        if name in RESERVED_PROPERTIES:
            raise ConfigError(f"property {name!r} is the broker's own: choose another name")
