"""Owns the calling of hooks, of senders and of handlers, and the one that is here already: W3C trace context."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from inspect import isawaitable
from secrets import token_hex
from typing import Any, Final

from mqclient.errors import ConfigError
from mqclient.hooks import Consumed, Sent

traceparent: ContextVar[str | None] = ContextVar("traceparent", default=None)
"""The span that is at work here, in the form of the W3C header; whoever traces sets it, `TraceContext` sends it on."""
_FORM: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-([0-9a-f]{2})\Z")


class TraceContext:
    """`hooks=[TraceContext()]` of a producer: each message gets a `traceparent`, a child of the context variable's.

    Of a consumer: while the handler runs, the context variable is the `traceparent` of its (first) message, so what it
    sends continues that trace. With messages that were pulled: `with TraceContext().around_consume([message]): …`.
    """

    def before_send(self, message: Any, properties: dict[str, str]) -> None:
        match = _FORM.match(traceparent.get() or "")
        trace, flags = (match[1], match[2]) if match else (token_hex(16), "01")
        properties["traceparent"] = f"00-{trace}-{token_hex(8)}-{flags}"

    @contextmanager
    def around_consume(self, messages: Sequence[Any]) -> Iterator[None]:
        before = traceparent.get()
        found = (message.properties.get("traceparent") for message in messages)
        traceparent.set(next((text for text in found if _FORM.match(text or "")), None))
        try:
            yield
        finally:
            traceparent.set(before)  # no token: a coroutine may end in another context than it was made in


class SendHooks:
    """The hooks of one producer. One that fails is logged, and fails nothing else."""

    def __init__(self, hooks: Sequence[Any], log: logging.Logger) -> None:
        self._log = log
        self._before: list[Callable[[Any, dict[str, str]], None]] = []
        self._after: list[Callable[[Sent], None]] = []
        for hook in hooks:
            before, after = getattr(hook, "before_send", None), getattr(hook, "after_send", None)
            if before is None and after is None:
                raise ConfigError(f"hooks: {hook!r} has neither before_send(message, properties) nor after_send(sent)")
            self._before += [] if before is None else [before]
            self._after += [] if after is None else [after]
        self.adds = bool(self._before)
        """Whether messages get properties by hooks."""
        self.listens = bool(self._after)

    def properties(self, message: Any) -> dict[str, str]:
        """What the hooks want to travel with this message; outside of any entry."""
        found: dict[str, str] = {}
        for before in self._before:
            try:
                before(message, found)
            except Exception:
                self._log.exception("a before_send hook failed")
        return found

    def tell(self, sent: Sent) -> None:
        """Where user code may run."""
        for after in self._after:
            try:
                after(sent)
            except Exception:
                self._log.exception("an after_send hook failed")


class ConsumeHooks:
    """The hooks of one consumer. One that fails is logged, and fails nothing else."""

    def __init__(self, hooks: Sequence[Any], log: logging.Logger) -> None:
        self._log = log
        self._around: list[Callable[[Any], AbstractContextManager[Any]]] = []
        self._after: list[Callable[[Consumed], None]] = []
        for hook in hooks:
            around, after = getattr(hook, "around_consume", None), getattr(hook, "after_consume", None)
            if around is None and after is None:
                wanted = "around_consume(messages) nor after_consume(consumed)"
                raise ConfigError(f"hooks: {hook!r} has neither {wanted}")
            self._around += [] if around is None else [around]
            self._after += [] if after is None else [after]

    @property
    def listens(self) -> bool:
        return bool(self._after)

    def tell(self, consumed: Consumed) -> None:
        """Where user code may run."""
        for after in self._after:
            try:
                after(consumed)
            except Exception:
                self._log.exception("an after_consume hook failed")

    def wrap(self, handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The handler with what belongs around it; the handler itself if that is nothing."""
        if not self._around:
            return handler

        def call(messages: Any) -> Any:
            entered = self._enter(messages)
            try:
                outcome = handler(messages)
            except BaseException as error:
                self._leave(entered, error)
                raise
            if isawaitable(outcome):
                return self._finish(outcome, entered)
            self._leave(entered, None)
            return outcome

        return call

    def _enter(self, messages: Any) -> list[AbstractContextManager[Any]]:
        entered: list[AbstractContextManager[Any]] = []
        for around in self._around:
            try:
                manager = around(messages)
                manager.__enter__()
            except Exception:
                self._log.exception("an around_consume hook failed")
            else:
                entered.append(manager)
        return entered

    async def _finish(self, outcome: Awaitable[Any], entered: list[AbstractContextManager[Any]]) -> Any:
        try:
            value = await outcome
        except BaseException as error:
            self._leave(entered, error)
            raise
        self._leave(entered, None)
        return value

    def _leave(self, entered: list[AbstractContextManager[Any]], error: BaseException | None) -> None:
        """In reverse; a manager that would swallow the error cannot."""
        kind, trace = (None, None) if error is None else (type(error), error.__traceback__)
        while entered:
            try:
                entered.pop().__exit__(kind, error, trace)
            except Exception as failure:
                if failure is not error:
                    self._log.exception("an around_consume hook failed")
