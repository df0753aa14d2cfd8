"""Owns what consumers and readers can be asked for: defaults are the protocol's own, mistakes name the cure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mqclient.errors import ConfigError
from mqclient.pulsar.options import SUB_TYPES


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
    """

    type: str = "exclusive"
    name: str | None = None
    receiver_queue: int = 1000
    total_receiver_queue: int = 50_000
    start: Any = "latest"
    start_inclusive: bool = False
    durable: bool = True
    by_batch: bool = False
    priority: int = 0
    read_compacted: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    partition_refresh: float = 60.0
    pattern_mode: str = "persistent"
    pattern_period: float = 60.0
    ack_grouping: float = 0.1
    ack_group_size: int = 1000
    batch_index_ack: bool = True
    nack_delay: float = 60.0

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
        if self.read_compacted and not self.in_order:
            raise ConfigError(f"read_compacted needs an exclusive or failover subscription, not {self.type}")

    def _check_numbers(self) -> None:
        if self.receiver_queue < 0 or self.ack_grouping < 0 or self.nack_delay < 0:
            raise ConfigError("receiver_queue, ack_grouping and nack_delay are not negative")
        if self.total_receiver_queue < 1 or self.ack_group_size < 1:
            raise ConfigError("total_receiver_queue and ack_group_size are at least 1")
        if self.priority < 0 or self.partition_refresh < 0:
            raise ConfigError("priority (0 comes first) and partition_refresh are not negative")
        if self.pattern_period <= 0:
            raise ConfigError("pattern_period is above 0, in seconds")

    @property
    def in_order(self) -> bool:
        """One consumer at a time gets everything in order: cumulative acknowledgement is possible."""
        return self.type in ("exclusive", "failover")
