"""Owns what producers can be asked for, and how options are checked: defaults are the protocol's own, mistakes name
the cure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any, TypeVar

from mqclient.errors import ConfigError
from mqclient.pulsar.codes import ProducerAccessMode, SubType
from mqclient.pulsar.encryption import Encryption

O = TypeVar("O")  # noqa: E741

SUB_TYPES: Mapping[str, SubType] = {kind.name.lower(): kind for kind in SubType}
"""By the names that users write: "exclusive", "shared", "failover", "key_shared"."""


ACCESS_MODES: Mapping[str, ProducerAccessMode] = {
    "shared": ProducerAccessMode.Shared,
    "exclusive": ProducerAccessMode.Exclusive,
    "wait": ProducerAccessMode.WaitForExclusive,
    "fence": ProducerAccessMode.ExclusiveWithFencing,
}


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """`linger` is an upper bound: a batch leaves at once while none is in flight. `batching`: True, False, or "key" for
    entries whose messages share their key.

    `max_pending`: messages without receipt, over all partitions; 0: only the client's `memory_limit` counts.
    `compression`: "lz4", "zlib", "zstd" or "snappy", of payloads above `compress_above` bytes. `chunking`: what is
    larger than the broker takes, or than `chunk_size`, travels in parts. `routing`: "round_robin", "single", or a
    callable that gets the message's key, its properties and the number of partitions and returns one of them; messages
    with a key go where `hashing` of it says: "java", "murmur3" or "boost". Every `partition_refresh` seconds the topic
    is asked whether it has grown.
    `access`: "shared", "exclusive", "wait" (until it can be exclusive) or "fence" (all others out).
    `initial_subscription`: made with the topic if it is not there yet. `send_timeout` 0: none.
    `encrypt`: an `Encryption` says who alone may read the bodies; properties and keys stay in the clear.
    `hooks`: objects with `before_send` or `after_send`, see `mqclient.hooks`; `pulsar.TraceContext()` is one.
    """

    name: str | None = None
    batching: bool | str = True
    batch_max_messages: int = 1000
    batch_max_bytes: int = 131072
    linger: float = 0.01
    send_timeout: float = 30.0
    max_pending: int = 0
    initial_sequence_id: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    compression: str | None = None
    compress_above: int = 1024
    chunking: bool = False
    chunk_size: int = 0
    routing: str | Callable[[str | None, Mapping[str, str] | None, int], int] = "round_robin"
    hashing: str = "java"
    partition_refresh: float = 60.0
    access: str = "shared"
    initial_subscription: str | None = None
    schema: Any = None
    encrypt: Encryption | None = None
    hooks: Sequence[Any] = ()

    def __post_init__(self) -> None:
        self._check_sizes()
        if self.batching not in (True, False, "key"):
            raise ConfigError(f"batching={self.batching!r}: True, False, or 'key' for entries of one key each")
        if self.chunking and self.batching:
            raise ConfigError("chunking=True needs batching=False: a message in parts is an entry of its own")
        _one_of("compression", self.compression, (None, "lz4", "zlib", "zstd", "snappy"))
        _one_of("hashing", self.hashing, ("java", "murmur3", "boost"))
        _one_of("access", self.access, tuple(ACCESS_MODES))
        if not callable(self.routing):
            _one_of("routing", self.routing, ("round_robin", "single"))

    def _check_sizes(self) -> None:
        if self.batch_max_messages < 1 or self.batch_max_bytes < 1:
            raise ConfigError("batch_max_messages and batch_max_bytes are at least 1; batching=False sends one by one")
        if self.linger < 0 or self.send_timeout < 0:
            raise ConfigError("linger and send_timeout are not negative; in seconds")
        if min(self.max_pending, self.chunk_size, self.compress_above, self.partition_refresh) < 0:
            raise ConfigError("max_pending, chunk_size, compress_above and partition_refresh are not negative")


def _one_of(option: str, given: Any, known: tuple[Any, ...]) -> None:
    if given not in known:
        raise ConfigError(f"{option}={given!r}: it is one of {', '.join(map(repr, known))}")


ELSEWHERE: Mapping[str, str] = {
    "access_mode": "access",
    "auto_ack_oldest_chunked_message_on_queue_full": "chunked_pending: the oldest one comes again",
    "batch_index_ack_enabled": "batch_index_ack",
    "batch_receive_policy": "receive_many(max, timeout) instead",
    "batching_enabled": "batching",
    "batching_max_allowed_size_in_bytes": "batch_max_bytes",
    "batching_max_messages": "batch_max_messages",
    "batching_max_publish_delay_ms": "linger, in seconds",
    "batching_type": "batching, 'key' for entries of one key each",
    "block_if_queue_full": "max_pending: who sends waits for room",
    "broker_consumer_stats_cache_time_ms": "nothing: stats() asks the broker each time",
    "chunking_enabled": "chunking",
    "compression_type": "compression",
    "consumer_name": "name",
    "consumer_type": "type",
    "crypto_failure_action": "on_failure of Encryption or Decryption",
    "crypto_key_reader": "encrypt of a producer, decrypt of a consumer",
    "dead_letter_policy": "dead_letter",
    "encryption_key": "encrypt",
    "initial_position": "start",
    "is_read_compacted": "read_compacted",
    "key_shared_policy": "key_ranges and out_of_order",
    "lazy_start_partitioned_producers": "nothing: all partitions are opened, so that errors show at once",
    "max_pending_chunked_message": "chunked_pending",
    "max_pending_messages": "max_pending",
    "max_pending_messages_across_partitions": "max_pending",
    "max_total_receiver_queue_size_across_partitions": "total_receiver_queue",
    "message_listener": "listener",
    "message_router": "routing",
    "message_routing_mode": "routing",
    "negative_ack_redelivery_delay_ms": "nack_delay, in seconds",
    "pattern_auto_discovery_period": "pattern_period",
    "producer_name": "name",
    "receiver_queue_size": "receiver_queue",
    "regex_subscription_mode": "pattern_mode",
    "replicate_subscription_state_enabled": "replicated",
    "send_timeout_millis": "send_timeout, in seconds",
    "start_message_id_inclusive": "start_inclusive",
    "unacked_messages_timeout_ms": "ack_timeout, in seconds",
}
"""What the official Python client calls options, and what they are here."""


def checked(kind: type[O], given: Mapping[str, Any]) -> O:
    """The options as given; one that does not exist is an error that names the nearest.

    >>> checked(ProducerOptions, {"lingr": 5})
    Traceback (most recent call last):
    mqclient.errors.ConfigError: there is no option lingr: did you mean linger?
    """
    options: Any = kind
    known = [option.name for option in fields(options)]
    for name in given:
        if name not in known:
            raise ConfigError(f"there is no option {name}: {_cure(name, known)}")
    return kind(**given)


def _cure(name: str, known: list[str]) -> str:
    if name in ELSEWHERE:
        return f"here it is {ELSEWHERE[name]}"
    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]}?" if near else f"the options are {', '.join(known)}"
