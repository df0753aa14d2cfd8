"""Owns what producers and consumers can be asked for: defaults are the protocol's own, mistakes name the cure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any, TypeVar

from mqclient.errors import ConfigError
from mqclient.pulsar.codes import SubType

O = TypeVar("O", "ProducerOptions", "ConsumerOptions")  # noqa: E741

SUB_TYPES: Mapping[str, SubType] = {kind.name.lower(): kind for kind in SubType}
"""By the names that users write: "exclusive", "shared", "failover", "key_shared"."""


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """`linger` is an upper bound: a batch leaves at once while none is in flight."""

    name: str | None = None
    batching: bool = True
    batch_max_messages: int = 1000
    batch_max_bytes: int = 131072
    linger: float = 0.01
    send_timeout: float = 30.0
    initial_sequence_id: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.batch_max_messages < 1 or self.batch_max_bytes < 1:
            raise ConfigError("batch_max_messages and batch_max_bytes are at least 1; batching=False sends one by one")
        if self.linger < 0 or self.send_timeout <= 0:
            raise ConfigError("linger is at least 0 and send_timeout above 0, in seconds")


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    """`start`: "latest" or "earliest" for a new subscription; where nothing durable is kept (a reader) also a message
    id: it begins after that message, or at it if `start_inclusive`. `by_batch`: what is received are MessageBatches,
    one an entry; also of the entry that the start lies in."""

    type: str = "exclusive"
    name: str | None = None
    receiver_queue: int = 1000
    start: Any = "latest"
    start_inclusive: bool = False
    durable: bool = True
    by_batch: bool = False
    priority: int = 0
    read_compacted: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    ack_grouping: float = 0.1
    batch_index_ack: bool = True
    nack_delay: float = 60.0

    def __post_init__(self) -> None:
        if self.type not in SUB_TYPES:
            raise ConfigError(f"type={self.type!r}: the types are {', '.join(SUB_TYPES)}")
        if self.receiver_queue < 0 or self.ack_grouping < 0 or self.nack_delay < 0:
            raise ConfigError("receiver_queue, ack_grouping and nack_delay are not negative")
        if isinstance(self.start, str) and self.start not in ("latest", "earliest"):
            raise ConfigError(f"start={self.start!r}: a subscription starts at 'latest' or 'earliest'")
        if self.durable and not isinstance(self.start, str):
            raise ConfigError("a durable subscription starts at 'latest' or 'earliest'; then seek() to a message id")
        if self.read_compacted and not self.in_order:
            raise ConfigError(f"read_compacted needs an exclusive or failover subscription, not {self.type}")

    @property
    def in_order(self) -> bool:
        """One consumer at a time gets everything in order: cumulative acknowledgement is possible."""
        return self.type in ("exclusive", "failover")


def checked(kind: type[O], given: Mapping[str, Any]) -> O:
    """The options as given; one that does not exist is an error that names the nearest.

    >>> checked(ConsumerOptions, {"reciever_queue": 5})
    Traceback (most recent call last):
    mqclient.errors.ConfigError: there is no option reciever_queue: did you mean receiver_queue?
    """
    known = [option.name for option in fields(kind)]
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"the options are {', '.join(known)}"
            raise ConfigError(f"there is no option {name}: {hint}")
    return kind(**given)
