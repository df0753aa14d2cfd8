"""Owns the call of a user's handler: what it may raise, how long it runs already, and where it stands."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable, Iterable
from inspect import iscoroutine
from types import CodeType, FrameType
from typing import Any

from mqclient.errors import ConfigError
from mqclient.rocketmq.remoting.process_queue import ProcessQueue

LOG = logging.getLogger("mqclient.remoting")

Handler = Callable[[Any], Any]


def check_handler(given: Any) -> None:
    if not callable(given):
        kind, cure = type(given).__name__, "to ask for them yourself there are pull_consumer and pop_consumer"
        raise ConfigError(f"a handler is a function that is called with messages, not {kind}; {cure}")


class Retry(Exception):
    """Raised by a handler: the messages named come again later, the others of this call are acknowledged.

    `messages`: some of those that were handed over; without it all of them. `level`: the broker's delay level (1 s to
    2 h; -1: to the dead letters at once), 0: by attempt. `delay`: seconds until an orderly queue goes on.
    """

    def __init__(self, messages: Iterable[Any] | None = None, *, level: int = 0, delay: float | None = None) -> None:
        self.offsets = None if messages is None else frozenset(message.offset for message in messages)
        self.level = level
        self.delay = delay
        count = "all" if self.offsets is None else str(len(self.offsets))
        super().__init__(f"the handler wants {count} of the messages again")

    def failed(self, messages: Any) -> list[Any]:
        """Those of a call's messages that come again."""
        return [message for message in messages if self.offsets is None or message.offset in self.offsets]


class Job:
    """Messages of one queue for one call of the handler."""

    __slots__ = ("_coroutine", "_frame", "began", "messages", "parked", "process_queue", "request", "told")

    def __init__(self, process_queue: ProcessQueue, messages: Any) -> None:
        self.process_queue = process_queue
        self.messages = messages
        self.began = 0.0
        """Monotonic; 0: not yet."""
        self.parked = False
        """Its turn came while the queue was paused: the handler was not called."""
        self.told = False
        """Whether its being stuck was told."""
        self.request = ""
        """Under which the call is traced; empty: it is not."""
        self._frame: FrameType | None = None
        self._coroutine: Any = None

    @property
    def callable(self) -> bool:
        """Whether `call` would call."""
        return not (self.process_queue.dropped or self.process_queue.paused)

    def call(self, handler: Handler, now: float) -> Any:
        """Outside of entries, on a worker's thread or in the loop. A queue that is gone has nothing to handle."""
        if self.process_queue.dropped:
            return None
        if self.process_queue.paused:
            self.parked = True
            return None
        self.parked = False
        self.began = now
        self._frame = sys._getframe()
        try:
            outcome = handler(self.messages)
        finally:
            self._frame = None
        if iscoroutine(outcome):
            self._coroutine = outcome
        return outcome

    def stack(self) -> list[str]:
        """Where the handler is just now: its lines, the innermost last; empty if it does not run."""
        if self._coroutine is not None:
            return _awaited(self._coroutine)
        base = self._frame
        if base is None:
            return []
        for top in sys._current_frames().values():
            frames = _above(top, base)
            if frames:
                return [_line(frame.f_code, frame.f_lineno) for frame in frames]
        return []


def _above(top: FrameType, base: FrameType) -> list[FrameType]:
    """The frames that `base` called, outermost first; none if it is not below this top."""
    frames: list[FrameType] = []
    frame: FrameType | None = top
    while frame is not None:
        if frame is base:
            return frames[::-1]
        frames.append(frame)
        frame = frame.f_back
    return []


def _awaited(coroutine: Any) -> list[str]:
    """The lines of a coroutine and of what it awaits; an asyncio future or a foreign awaitable ends it."""
    lines: list[str] = []
    while coroutine is not None and getattr(coroutine, "cr_frame", None) is not None:
        frame = coroutine.cr_frame
        lines.append(_line(frame.f_code, frame.f_lineno))
        coroutine = coroutine.cr_await
    return lines


def _line(code: CodeType, number: int | None) -> str:
    return f'File "{code.co_filename}", line {number}, in {code.co_name}'


def explain(error: BaseException) -> str:
    """What a handler raised, in one line with its place."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return f"{error!r}" + "".join(f" ({frame.filename}:{frame.lineno})" for frame in last)
