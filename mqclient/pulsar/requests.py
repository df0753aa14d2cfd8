"""Owns the cold commands: one function per request, the table of replies, and what an error reply means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mqclient import __version__, _schema
from mqclient.core.driver import Address
from mqclient.errors import ProtocolError
from mqclient.pulsar.codes import BrokerError, InitialPosition, KeySharedMode, LookupType
from mqclient.pulsar.options import SUB_TYPES
from mqclient.pulsar.schema.base import SchemaInfo

PROTOCOL_VERSION: Final = 21
NO_REQUEST_ID: Final = 2**64 - 1
CONNECTED: Final = 3
SEND_ERROR: Final = 8
CLOSE_CONSUMER: Final = 16
ACTIVE_CONSUMER_CHANGE: Final = 31
AUTH_CHALLENGE: Final = 36
TOPIC_MIGRATED: Final = 68
TOPIC_UPDATE: Final = 66

REPLIES: Final[Mapping[int, str]] = {
    13: "CommandSuccess",
    14: "CommandError",
    17: "CommandProducerSuccess",
    22: "CommandPartitionedTopicMetadataResponse",
    24: "CommandLookupTopicResponse",
    26: "CommandConsumerStatsResponse",
    30: "CommandGetLastMessageIdResponse",
    33: "CommandGetTopicsOfNamespaceResponse",
    35: "CommandGetSchemaResponse",
    38: "CommandAckResponse",
    40: "CommandGetOrCreateSchemaResponse",
    51: "CommandNewTxnResponse",
    53: "CommandAddPartitionToTxnResponse",
    55: "CommandAddSubscriptionToTxnResponse",
    57: "CommandEndTxnResponse",
    63: "CommandTcClientConnectResponse",
    65: "CommandWatchTopicListSuccess",
}
"""What answers a request, by its request id; an error in it, of whatever field, fails the request."""

_FAILED: Final[Mapping[str, int]] = {
    "CommandPartitionedTopicMetadataResponse": 1,
    "CommandLookupTopicResponse": LookupType.Failed,
}
"""The value of the field `response` that says so; a reply without that field failed, too."""

TO_PRODUCER: Final[Mapping[int, str]] = {15: "CommandCloseProducer"}
TO_CONSUMER: Final[Mapping[int, str]] = {
    16: "CommandCloseConsumer",
    27: "CommandReachedEndOfTopic",
    31: "CommandActiveConsumerChange",
}


class Command:
    """A command to be sent, without the request id that the connection gives it."""

    __slots__ = ("_fields", "_numbered", "_type", "name")

    def __init__(self, type: int, name: str, numbered: bool = True, **fields: Any) -> None:
        self._type = type
        self.name = name
        self._numbered = numbered
        self._fields = fields

    def encode(self, impl: Any, request_id: int) -> bytes:
        fields = {name: value for name, value in self._fields.items() if value is not None}
        if self._numbered:
            fields["request_id"] = request_id
        body = _schema.message(self.name)(**fields)
        frame: bytes = impl.pulsar.encode_command(self._type, body.SerializeToString())
        return frame


def connect(method: str, data: bytes | None, proxy_to: str | None) -> Command:
    return Command(
        2,
        "CommandConnect",
        numbered=False,
        client_version=f"mqclient-{__version__}",
        auth_method_name=method,
        auth_data=data,
        protocol_version=PROTOCOL_VERSION,
        proxy_to_broker_url=proxy_to,
        feature_flags={
            "supports_auth_refresh": True,
            "supports_broker_entry_metadata": True,
            "supports_topic_watchers": True,
        },
    )


def auth_response(method: str, data: bytes | None) -> Command:
    """The broker demands data even where the method has none, and a protocol version."""
    response = {"auth_method_name": method, "auth_data": data or b""}
    return Command(
        37,
        "CommandAuthResponse",
        numbered=False,
        client_version=f"mqclient-{__version__}",
        response=response,
        protocol_version=PROTOCOL_VERSION,
    )


def partitions(topic: str) -> Command:
    return Command(21, "CommandPartitionedTopicMetadata", topic=topic)


def topics(namespace: str, mode: int, known: str | None) -> Command:
    """All of a namespace, unless their hash is the one that is known."""
    return Command(32, "CommandGetTopicsOfNamespace", namespace=namespace, mode=mode, topics_hash=known)


def watch_topics(watcher_id: int, namespace: str, pattern: str) -> Command:
    return Command(64, "CommandWatchTopicList", watcher_id=watcher_id, namespace=namespace, topics_pattern=pattern)


def unwatch_topics(watcher_id: int) -> Command:
    return Command(67, "CommandWatchTopicListClose", watcher_id=watcher_id)


def lookup(topic: str, authoritative: bool, listener: str | None = None) -> Command:
    """`listener`: of the addresses that a broker has, the one of this name is wanted."""
    name = "CommandLookupTopic"
    return Command(23, name, topic=topic, authoritative=authoritative, advertised_listener_name=listener)


def producer(
    topic: str,
    producer_id: int,
    *,
    name: str | None,
    user_provided: bool,
    epoch: int,
    metadata: Mapping[str, str],
    access: int = 0,
    topic_epoch: int | None = None,
    initial_subscription: str | None = None,
    schema: Any = None,
    encrypted: bool = False,
) -> Command:
    """`topic_epoch`: what the broker answered before; `schema`: a `schema.SchemaInfo`."""
    return Command(
        5,
        "CommandProducer",
        topic=topic,
        producer_id=producer_id,
        producer_name=name,
        encrypted=encrypted or None,
        user_provided_producer_name=user_provided,
        epoch=epoch,
        metadata=_key_values(metadata),
        schema=schema_fields(schema),
        producer_access_mode=access,
        topic_epoch=topic_epoch,
        initial_subscription_name=initial_subscription,
    )


def schema_fields(schema: Any) -> dict[str, Any] | None:
    """Of a SchemaInfo as the wire has it; None for bytes, which is never sent."""
    if schema is None or schema.type is None:
        return None
    pairs = _key_values(schema.properties)
    return {"name": schema.name, "schema_data": schema.data, "type": schema.type, "properties": pairs}


def schema_info(schema: Any) -> SchemaInfo:
    """A definition as the broker tells it."""
    pairs = {pair.key: pair.value for pair in schema.properties}
    return SchemaInfo(schema.name, schema.type, schema.schema_data, pairs)


def get_schema(topic: str, version: bytes | None) -> Command:
    """Without a version the latest."""
    return Command(34, "CommandGetSchema", topic=topic, schema_version=version)


def get_or_create_schema(topic: str, schema: SchemaInfo, producer: str) -> Command:
    """Its version of the topic's schema; a new one if it is not there and may follow."""
    return Command(
        39, "CommandGetOrCreateSchema", topic=topic, schema=schema_fields(schema), producerName=producer or None
    )


Txn = tuple[int, int]
"""A transaction's id: most and least bits."""


def tc_connect(number: int) -> Command:
    """Before anything is asked of a coordinator over a connection."""
    return Command(62, "CommandTcClientConnectRequest", tc_id=number)


def new_txn(number: int, ttl_ms: int) -> Command:
    return Command(50, "CommandNewTxn", tc_id=number, txn_ttl_millis=ttl_ms)


def add_partition_to_txn(txn: Txn, topic: str) -> Command:
    return Command(52, "CommandAddPartitionToTxn", **_txn(txn), partitions=[topic])


def add_subscription_to_txn(txn: Txn, topic: str, subscription: str) -> Command:
    added = [{"topic": topic, "subscription": subscription}]
    return Command(54, "CommandAddSubscriptionToTxn", **_txn(txn), subscription=added)


def end_txn(txn: Txn, action: int) -> Command:
    return Command(56, "CommandEndTxn", **_txn(txn), txn_action=action)


def _txn(txn: Txn) -> dict[str, Any]:
    return {"txnid_most_bits": txn[0], "txnid_least_bits": txn[1]}


def close_producer(producer_id: int) -> Command:
    return Command(15, "CommandCloseProducer", producer_id=producer_id)


def subscribe(
    topic: str,
    subscription: str,
    consumer_id: int,
    *,
    type: str,
    name: str,
    priority: int,
    durable: bool,
    start: Any,
    from_earliest: bool,
    metadata: Mapping[str, str],
    read_compacted: bool,
    create_topic: bool = True,
    schema: SchemaInfo | None = None,
    epoch: int | None = None,
    keys: Mapping[str, Any] | None = None,
    subscription_properties: Mapping[str, str] | None = None,
    replicated: bool = False,
) -> Command:
    """`keys`: of key-shared subscriptions, see `key_shared`."""
    return Command(
        4,
        "CommandSubscribe",
        topic=topic,
        subscription=subscription,
        subType=SUB_TYPES[type],
        consumer_id=consumer_id,
        consumer_name=name,
        priority_level=priority,
        durable=durable,
        start_message_id=None if start is None else _position(start),
        metadata=_key_values(metadata),
        schema=schema_fields(schema),
        read_compacted=read_compacted or None,
        consumer_epoch=epoch,
        keySharedMeta=keys,
        subscription_properties=_key_values(subscription_properties or {}),
        replicate_subscription_state=replicated or None,
        force_topic_creation=None if create_topic else False,
        initialPosition=InitialPosition.Earliest if from_earliest else InitialPosition.Latest,
    )


def key_shared(ranges: Sequence[tuple[int, int]], out_of_order: bool) -> dict[str, Any]:
    """Which keys a consumer wants: those of some hashes, or what the broker gives it."""
    return {
        "keySharedMode": KeySharedMode.STICKY if ranges else KeySharedMode.AUTO_SPLIT,
        "hashRanges": [{"start": first, "end": last} for first, last in ranges],
        "allowOutOfOrderDelivery": out_of_order,
    }


def close_consumer(consumer_id: int) -> Command:
    return Command(16, "CommandCloseConsumer", consumer_id=consumer_id)


def unsubscribe(consumer_id: int, force: bool) -> Command:
    return Command(12, "CommandUnsubscribe", consumer_id=consumer_id, force=force)


def redeliver(consumer_id: int, entries: Sequence[tuple[int, int]], epoch: int | None = None) -> Command:
    """No entries: everything that is not acknowledged; it comes with this consumer epoch."""
    ids = [{"ledgerId": ledger % 2**64, "entryId": entry % 2**64} for ledger, entry in entries]
    return Command(
        20,
        "CommandRedeliverUnacknowledgedMessages",
        numbered=False,
        consumer_id=consumer_id,
        message_ids=ids,
        consumer_epoch=epoch,
    )


def seek_to_id(consumer_id: int, message_id: Any) -> Command:
    """To the message itself; inside of a batch by the words of what is still to come."""
    at = message_id.first_chunk or message_id
    fields = _position(at)
    del fields["batch_index"]
    if at.batch_index > 0:
        fields["ack_set"] = remaining(at.batch_index, max(at.batch_size, at.batch_index + 1))
    return Command(28, "CommandSeek", consumer_id=consumer_id, message_id=fields)


def seek_to_time(consumer_id: int, published_ms: int) -> Command:
    return Command(28, "CommandSeek", consumer_id=consumer_id, message_publish_time=published_ms)


def last_message_id(consumer_id: int) -> Command:
    return Command(29, "CommandGetLastMessageId", consumer_id=consumer_id)


def consumer_stats(consumer_id: int) -> Command:
    return Command(25, "CommandConsumerStats", consumer_id=consumer_id)


def remaining(first: int, size: int) -> list[int]:
    """Signed words with the bits from `first` up to `size` set: the messages of a batch that are not acknowledged.

    >>> remaining(2, 4)
    [12]
    """
    return words((1 << size) - (1 << first))


def words(bits: int) -> list[int]:
    """A set of bits as signed words of 64.

    >>> words(1 << 63 | 1 << 64)
    [-9223372036854775808, 1]
    """
    found = [(bits >> shift) & (2**64 - 1) for shift in range(0, bits.bit_length(), 64)]
    return [word - 2**64 if word >> 63 else word for word in found]


def is_waiting(reply: Any) -> bool:
    """PRODUCER_SUCCESS of one that stands in line for exclusive access: the same reply comes again when it has it."""
    return reply.DESCRIPTOR.name == "CommandProducerSuccess" and not reply.producer_ready


def parse(name: str, body: bytes) -> Any:
    """The sub-message of a command that the broker sent."""
    try:
        return _schema.message(name).FromString(body)
    except Exception as error:  # protobuf's DecodeError, of which implementation ever
        raise ProtocolError(f"{name} cannot be read: {error}") from error


def error_of(reply: Any, remote: str) -> BrokerError | None:
    """The error that a reply brings, in whichever of its fields; None for a success."""
    fields = reply.DESCRIPTOR.fields_by_name
    if "response" in fields and (not reply.HasField("response") or reply.response == _FAILED[reply.DESCRIPTOR.name]):
        return BrokerError(reply.error, reply.message, remote=remote)
    if "error" in fields and reply.HasField("error"):
        return BrokerError(reply.error, reply.message, remote=remote)
    if "error_code" in fields and reply.HasField("error_code"):
        return BrokerError(reply.error_code, reply.error_message, remote=remote)
    return None


def remote_error(told: Any, remote: str) -> BrokerError:
    """The error of a SEND_ERROR."""
    return BrokerError(told.error, told.message, remote=remote, request="CommandSend")


def flags(features: Any) -> dict[str, bool]:
    return {field.name: value for field, value in features.ListFields()}


def assigned_broker(told: Any, address: Address) -> str | None:
    """Where the broker says that the topic went, for this kind of connection; None if it does not say."""
    url = told.assignedBrokerServiceUrlTls if address.tls is not None else told.assignedBrokerServiceUrl
    return url or None


def migrated_to(told: Any, address: Address) -> tuple[bool, str]:
    """Whether a producer has to go, or a consumer; and the other cluster, for this kind of connection."""
    of_producer = told.resource_type == 0
    return of_producer, told.brokerServiceUrlTls if address.tls is not None else told.brokerServiceUrl


def _position(message_id: Any) -> dict[str, Any]:
    fields = {"ledgerId": message_id.ledger % 2**64, "entryId": message_id.entry % 2**64, "batch_index": None}
    if message_id.batch_index >= 0:
        fields["batch_index"] = message_id.batch_index
    return fields


def _key_values(pairs: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in pairs.items()]
