"""Owns the options of a producer: frozen, checked when made, the defaults are the protocol's where it has one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from mqclient.core.compress import lookup
from mqclient.errors import ConfigError
from mqclient.rocketmq.model import MAX_BODY
from mqclient.rocketmq.remoting.client import check_options

COMPRESSIONS: Final[Mapping[str, tuple[str, int]]] = {
    "lz4": ("lz4-frame", 0x101),
    "zstd": ("zstd", 0x201),
    "zlib": ("zlib", 0x301),
}
"""By the users' name: the format, and the bits that tell it (compressed, and by what)."""


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """What a producer is made with; times are seconds, sizes bytes."""

    batching: bool = True
    """Whether `submit`, and asyncio `send`, put small messages of one topic and queue into one request."""
    linger: float = 0.01
    """How long a batch gathers at most; it leaves at once while nothing of its queue is on its way."""
    batch_max_messages: int = 1024
    batch_max_bytes: int = 128 * 1024
    max_pending_messages: int = 50_000
    """Submitted and not yet answered; 0: no limit. So for bytes."""
    max_pending_bytes: int = 64 << 20
    when_full: str = "block"
    """What `submit` does beyond these: "block" until there is room, or "refuse". asyncio: it refuses, `send` waits."""
    send_timeout: float = 3.0
    """The time for a submitted message, all tries together."""
    attempts: int = 3
    attempt_timeout: float | None = None
    """The most that one try may take while another is possible; by default half of the time that is left."""
    retry_unless_safe: bool = False
    """Whether a message stored with less safety (10, 11, 12) is tried on another broker: it may then be there twice."""
    avoid_slow_brokers: bool = False
    """Whether a broker that was slow or failed is left alone for a while (latency-fault avoidance)."""
    compression: str | None = "zlib"
    """"zlib", "lz4", "zstd", or None."""
    compression_level: int | None = None
    compress_above: int = 4096
    """Bodies from this size on are compressed, and travel alone: batches know no compression."""
    max_body: int = MAX_BODY
    new_topic_queues: int = 4
    rate_limit: float = 0.0
    """Messages a second, 0: no limit; beyond it sends wait for their turn, within their time."""
    breaker_failures: int = 0
    """After so many failed requests in a row, 0: never, sends are refused for a pause; then one tries."""
    breaker_pause: float = 5.0
    hooks: tuple[Any, ...] = ()
    """Objects with `before_send` or `after_send`, see `mqclient.hooks`; `rocketmq.TraceContext()` is one."""
    message_trace: bool = False
    """Whether stored messages are told to the broker's trace topic, in the form that its console reads."""

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                _check_number(option.name, value)
        if self.when_full not in ("block", "refuse"):
            raise ConfigError(f"when_full={self.when_full!r}: 'block' or 'refuse'")
        if self.compression is not None:
            if self.compression not in COMPRESSIONS:
                known = ", ".join(COMPRESSIONS)
                raise ConfigError(f"compression={self.compression!r}: there are {known}, and None for no compression")
            lookup(COMPRESSIONS[self.compression][0])

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> ProducerOptions:
        check_options(options, cls.__slots__)
        return cls(**options)


_NO_LIMIT: Final = ("max_pending_messages", "max_pending_bytes", "rate_limit", "breaker_failures")
_MAY_BE_ZERO: Final = (*_NO_LIMIT, "linger", "compression_level", "compress_above")


def _check_number(name: str, value: float) -> None:
    if value < 0 or (value == 0 and name not in _MAY_BE_ZERO):
        raise ConfigError(f"{name}={value}: must be more than 0")
