"""Owns how a push consumer calls its handler: its options, what is checked of them, and the report at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from mqclient.errors import ConfigError
from mqclient.rocketmq.remoting.client import check_options
from mqclient.rocketmq.remoting.member_options import MemberOptions, Start, start_ms

MAX_ATTEMPTS: Final = 16
UNLIMITED: Final = -1
MAX_LEVEL: Final = 18


@dataclass(frozen=True, slots=True)
class PushOptions:
    """How the handler is called; times in seconds."""

    threads: int = 20
    """Calls at the same time (asyncio: tasks)."""
    batch: int = 32
    """Messages of one call at most."""
    orderly: bool = False
    """One call at a time for each queue, in the queue's order; what fails is tried again in its place."""
    max_attempts: int | None = None
    """How often a message comes again before it is a dead letter; None: 16, orderly without limit (-1)."""
    retry_levels: Sequence[int] | Callable[[int], int] | None = None
    """Delay level by number of earlier attempts, the last one for all beyond; None: the broker's 3 and up."""
    suspend: float = 1.0
    """How long an orderly queue rests after a failure."""
    rate: float | None = None
    """Messages a second, of all queues together."""
    skip_retries_before: Start | None = None
    """Messages that come again and were born before this time count as consumed."""
    stuck_after: float | None = 60.0
    """From when on a running handler is told as stuck, once; None: never."""
    hooks: tuple[Any, ...] = ()
    """Objects with `around_consume` or `after_consume`, see `mqclient.hooks`; `rocketmq.TraceContext()` is one."""
    message_trace: bool = False
    """Whether calls of the handler are told to the broker's trace topic, in the form that its console reads."""

    def __post_init__(self) -> None:
        if self.threads < 1 or self.batch < 1:
            raise ConfigError(f"threads={self.threads}, batch={self.batch}: at least 1 each")
        if self.suspend <= 0:
            raise ConfigError(f"suspend={self.suspend}: more than 0 seconds")
        if self.skip_retries_before is not None and start_ms(self.skip_retries_before) is None:
            raise ConfigError(f"skip_retries_before={self.skip_retries_before!r}: a datetime or milliseconds")
        self.level(0)

    @property
    def attempts(self) -> int:
        """The limit in effect."""
        if self.max_attempts is not None:
            return self.max_attempts
        return UNLIMITED if self.orderly else MAX_ATTEMPTS

    @property
    def skip_before_ms(self) -> int | None:
        return None if self.skip_retries_before is None else start_ms(self.skip_retries_before)

    def level(self, attempts: int) -> int:
        """The delay level for a message that was tried so often before; 0: the broker chooses."""
        levels = self.retry_levels
        if levels is None:
            return 0
        if callable(levels):
            level = int(levels(attempts))
        elif levels:
            level = int(levels[min(attempts, len(levels) - 1)])
        else:
            raise ConfigError("retry_levels=(): name a level at least")
        if not -1 <= level <= MAX_LEVEL:
            raise ConfigError(f"retry_levels: {level} is no delay level: 1 to {MAX_LEVEL}, 0 or -1")
        return level


class StopReport(NamedTuple):
    """How a push consumer ended. What was not handled comes again, here or at another member."""

    finished: bool
    """Every handler that ran has ended within the grace."""
    handled: int
    failed: int
    unhandled: int
    """Messages that were here and that no handler got, or whose handler did not end."""
    running: list[str]
    """Where the handlers stood that did not end."""


def push_options(options: Mapping[str, Any]) -> tuple[MemberOptions, PushOptions]:
    """A face's keyword options, taken apart; an unknown one names the nearest."""
    check_options(options, [*MemberOptions.__slots__, *PushOptions.__slots__])
    member = {name: value for name, value in options.items() if name in MemberOptions.__slots__}
    push = {name: value for name, value in options.items() if name in PushOptions.__slots__}
    return MemberOptions(**member), PushOptions(**push)
