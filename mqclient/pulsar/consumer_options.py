"""Owns what consumers and readers can be asked for: defaults are the protocol's own, mistakes name the cure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from mqclient.errors import ConfigError
from mqclient.pulsar.encryption import Decryption, Encryption
from mqclient.pulsar.options import SUB_TYPES


@dataclass(frozen=True, slots=True)
class Delays:
    """How long to wait before a message comes again: longer with each time, up to a limit.

    >>> [Delays(first=1.0, limit=5.0).after(times) for times in range(4)]
    [1.0, 2.0, 4.0, 5.0]
    """

    first: float = 10.0
    limit: float = 600.0
    factor: float = 2.0

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.limit or self.factor < 1:
            raise ConfigError("Delays: first is between 0 and limit, factor at least 1")

    def after(self, times: int) -> float:
        """The delay when it was redelivered so many times already."""
        return min(self.first * self.factor ** min(times, 100), self.limit)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """What is redelivered more than `max_redeliveries` times goes to `topic` ("<topic>-<subscription>-DLQ"), where
    `initial_subscription`, if given, waits for it. `retry_topic`: "<topic>-<subscription>-RETRY". `encrypt`: letters
    are encrypted; without it those of messages that were decrypted here are in the clear."""

    max_redeliveries: int = 16
    topic: str | None = None
    retry_topic: str | None = None
    initial_subscription: str | None = None
    encrypt: Encryption | None = None

    def __post_init__(self) -> None:
        if self.max_redeliveries < 1:
            raise ConfigError("max_redeliveries is at least 1")


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    """`start`: "latest" or "earliest" for a new subscription; where nothing durable is kept (a reader) also a message
    id: it begins after that message, or at it if `start_inclusive`. `by_batch`: what is received are MessageBatches,
    one an entry; also of the entry that the start lies in.

    `receiver_queue`: messages asked for in advance, of each topic or partition; of all of them together at most
    `total_receiver_queue`. Every `partition_refresh` seconds partitioned topics are asked whether they have grown (0:
    never). A pattern finds topics of `pattern_mode` "persistent", "non_persistent" or "all", and looks for new ones
    every `pattern_period` seconds, or as soon as the broker tells of one. Acknowledgements are told every
    `ack_grouping` seconds or `ack_group_size` ids.

    What was refused by `nack` comes again after `nack_delay`: seconds, or `Delays` that grow. What was taken and not
    acknowledged within `ack_timeout` seconds comes again, too (0: never). `dead_letter`: where messages go that came
    too often. Of messages in parts at most `chunked_pending` are gathered at a time (0: any number), each for
    `chunk_expiry` seconds at most (0: for ever). `retry`: also consume the retry-letter topic, to which `retry_later`
    sends.

    `listener(message)` is called with each message, `threads` at once; returning acknowledges it, raising refuses it.
    `on_active(topic, active)` is told when a failover consumer becomes the one that receives, or no longer is.
    Of a key-shared subscription `key_ranges` are the hashes (0 to 65535, both ends included) whose keys come here and
    nowhere else; by default the broker divides them. `out_of_order`: a key may change consumers while messages of it
    are unacknowledged. `subscription_properties` are kept with a subscription that is made; `replicated`: its position
    follows to other clusters.
    `schema`: see `mqclient.pulsar.schema`; `Message.value` gives what it makes of a body. `decrypt`: a `Decryption`
    says where the keys of encrypted messages are; without one they are not given out.
    `queue_memory`: bytes that may wait here; the queue then starts at one message and grows, up to `receiver_queue`,
    as long as its user keeps up. `hooks`: objects with `around_consume` or `after_consume`, which see the calls of the
    listener, see `mqclient.hooks`; `pulsar.TraceContext()` is one.
    """

    type: str = "exclusive"
    name: str | None = None
    receiver_queue: int = 1000
    total_receiver_queue: int = 50_000
    start: Any = "latest"
    start_inclusive: bool = False
    durable: bool = True
    by_batch: bool = False
    schema: Any = None
    priority: int = 0
    read_compacted: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    partition_refresh: float = 60.0
    pattern_mode: str = "persistent"
    pattern_period: float = 60.0
    ack_grouping: float = 0.1
    ack_group_size: int = 1000
    batch_index_ack: bool = True
    nack_delay: float | Delays = 60.0
    ack_timeout: float = 0.0
    dead_letter: DeadLetter | None = None
    retry: bool = False
    chunked_pending: int = 10
    chunk_expiry: float = 60.0
    listener: Callable[[Any], Any] | None = None
    threads: int = 1
    on_active: Callable[[str, bool], Any] | None = None
    queue_memory: int = 0
    decrypt: Decryption | None = None
    key_ranges: Sequence[tuple[int, int]] = ()
    out_of_order: bool = False
    subscription_properties: Mapping[str, str] = field(default_factory=dict)
    replicated: bool = False
    hooks: Sequence[Any] = ()

    def __post_init__(self) -> None:
        if self.type not in SUB_TYPES:
            raise ConfigError(f"type={self.type!r}: the types are {', '.join(SUB_TYPES)}")
        self._check_numbers()
        if self.pattern_mode not in ("persistent", "non_persistent", "all"):
            raise ConfigError(f"pattern_mode={self.pattern_mode!r}: the modes are persistent, non_persistent and all")
        if isinstance(self.start, str) and self.start not in ("latest", "earliest"):
            raise ConfigError(f"start={self.start!r}: a subscription starts at 'latest' or 'earliest'")
        if self.durable and not isinstance(self.start, str):
            raise ConfigError("a durable subscription starts at 'latest' or 'earliest'; then seek() to a message id")
        if not isinstance(self.start, str) and not hasattr(self.start, "ledger"):
            kind = type(self.start).__name__
            raise ConfigError(f"start is 'earliest', 'latest' or a message id, no {kind}; to a time: seek() then")
        if self.read_compacted and not self.in_order:
            raise ConfigError(f"read_compacted needs an exclusive or failover subscription, not {self.type}")
        if (self.dead_letter is not None or self.retry) and self.in_order:
            raise ConfigError(f"dead_letter and retry need a shared or key_shared subscription, not {self.type}")
        if self.by_batch and (self.ack_timeout or self.dead_letter is not None or self.retry):
            raise ConfigError("by_batch=True goes without ack_timeout, dead_letter and retry")
        if self.on_active is not None and self.type != "failover":
            raise ConfigError(f"on_active needs a failover subscription, not {self.type}: of others all are active")
        if self.key_ranges or self.out_of_order:
            self._check_keys()
        if self.listener is not None and not self.durable:
            raise ConfigError("a listener is for consumers: a reader reads")
        if self.hooks and self.listener is None:
            raise ConfigError("hooks see the calls of a listener; around what you receive() put them yourself")
        if self.queue_memory and (not self.receiver_queue or self.by_batch):
            raise ConfigError("queue_memory needs receiver_queue above 0, and messages instead of batches")

    def _check_keys(self) -> None:
        if self.type != "key_shared":
            raise ConfigError(f"key_ranges and out_of_order need a key_shared subscription, not {self.type}")
        ranges = sorted(self.key_ranges)
        if any(not 0 <= first <= last <= 65535 for first, last in ranges):
            raise ConfigError(f"key_ranges={list(self.key_ranges)}: each is (first, last), from 0 to 65535")
        if any(one[1] >= other[0] for one, other in pairwise(ranges)):
            raise ConfigError(f"key_ranges={list(self.key_ranges)}: two of them have hashes in common")

    def _check_numbers(self) -> None:
        if self.receiver_queue < 0 or self.ack_grouping < 0 or self.nack_delay_after(0) < 0 or self.ack_timeout < 0:
            raise ConfigError("receiver_queue, ack_grouping, nack_delay and ack_timeout are not negative")
        if self.chunked_pending < 0 or self.chunk_expiry < 0:
            raise ConfigError("chunked_pending and chunk_expiry are not negative")
        if self.queue_memory < 0:
            raise ConfigError("queue_memory is not negative")
        if self.total_receiver_queue < 1 or self.ack_group_size < 1:
            raise ConfigError("total_receiver_queue and ack_group_size are at least 1")
        if self.priority < 0 or self.partition_refresh < 0:
            raise ConfigError("priority (0 comes first) and partition_refresh are not negative")
        if self.pattern_period <= 0:
            raise ConfigError("pattern_period is above 0, in seconds")

    def nack_delay_after(self, times: int) -> float:
        """Of a message that was redelivered so many times."""
        return self.nack_delay.after(times) if isinstance(self.nack_delay, Delays) else self.nack_delay

    @property
    def letters(self) -> DeadLetter | None:
        """The policy in effect: retrying without one has the default."""
        return DeadLetter() if self.retry and self.dead_letter is None else self.dead_letter

    @property
    def shares_keys(self) -> bool:
        """Something is said about how keys are divided."""
        return bool(self.key_ranges) or self.out_of_order

    @property
    def in_order(self) -> bool:
        """One consumer at a time gets everything in order: cumulative acknowledgement is possible."""
        return self.type in ("exclusive", "failover")
