"""Hooks by themselves: what they add, what is around a handler, and that a bug in one harms nobody."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mqclient.core.hooking import ConsumeHooks, SendHooks, TraceContext, traceparent
from mqclient.errors import ConfigError
from mqclient.hooks import Consumed, Sent
from tests.support.span import Span

LOG = logging.getLogger("mqclient.test")
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SENT = Sent("t", "g", ["id"], 1, 0.1, "here", "STORED", None)
CONSUMED = Consumed("t", "g", ["a"], 0.1, None)


def test_without_one_it_begins_one() -> None:
    added: dict[str, str] = {}
    TraceContext().before_send(None, added)
    version, trace, span, flags = added["traceparent"].split("-")
    assert (version, len(trace), len(span), flags) == ("00", 32, 16, "01")


class Failing:
    """Bugs at every place."""

    def __init__(self, where: str = "") -> None:
        self.where = where

    def before_send(self, message: Any, properties: dict[str, str]) -> None:
        raise KeyError("a bug")

    def after_send(self, sent: Sent) -> None:
        raise KeyError("a bug")

    @contextmanager
    def around_consume(self, messages: Any) -> Iterator[None]:
        if self.where == "before":
            raise KeyError("a bug")
        yield
        raise KeyError("a bug")

    def after_consume(self, consumed: Consumed) -> None:
        raise KeyError("a bug")


def test_of_a_sender(caplog: pytest.LogCaptureFixture) -> None:
    told: list[Sent] = []

    class Adding:
        def before_send(self, message: Any, properties: dict[str, str]) -> None:
            properties["of"] = message

        def after_send(self, sent: Sent) -> None:
            told.append(sent)

    hooks = SendHooks([Failing(), Adding()], LOG)
    assert hooks.adds
    assert hooks.listens
    assert hooks.properties("m") == {"of": "m"}
    hooks.tell(SENT)
    assert told == [SENT]
    assert "before_send hook failed" in caplog.text
    assert "after_send hook failed" in caplog.text
    assert not (SendHooks([], LOG).adds)
    assert not (SendHooks([], LOG).listens)
    with pytest.raises(ConfigError, match="neither before_send"):
        SendHooks([object()], LOG)


@pytest.mark.parametrize("where", ["before", "after"])
def test_bugs_change_nothing_for_a_handler(caplog: pytest.LogCaptureFixture, where: str) -> None:
    hooks = ConsumeHooks([Failing(where)], LOG)
    assert hooks.wrap(lambda messages: sum(messages))([1, 2]) == 3
    hooks.tell(CONSUMED)
    assert "around_consume hook failed" in caplog.text
    assert "after_consume hook failed" in caplog.text


def test_a_span_is_around_a_handler() -> None:
    span = Span()
    hooks = ConsumeHooks([span], LOG)

    def handle(messages: Any) -> None:
        if messages == ["bad"]:
            raise ValueError("bad")

    wrapped = hooks.wrap(handle)
    wrapped(["a", "b"])
    with pytest.raises(ValueError, match="bad"):
        wrapped(["bad"])
    assert span.seen == [("begins", 2), "ended", ("begins", 1), ("failed", "bad")]
    assert hooks.listens
    hooks.tell(CONSUMED)
    assert span.told == [CONSUMED]


def test_a_coroutine_handler_stays_in_its_span() -> None:
    span = Span()

    async def handle(messages: Any) -> str:
        span.seen.append("works")
        if messages == ["bad"]:
            raise ValueError("bad")
        return "value"

    wrapped = ConsumeHooks([span], LOG).wrap(handle)
    assert asyncio.run(wrapped(["a"])) == "value"
    with pytest.raises(ValueError, match="bad"):
        asyncio.run(wrapped(["bad"]))
    assert span.seen == [("begins", 1), "works", "ended", ("begins", 1), "works", ("failed", "bad")]


class WithProperty:
    def __init__(self, text: str | None) -> None:
        self.properties = {} if text is None else {"traceparent": text}


def test_what_a_handler_sends_continues_the_trace_of_its_message() -> None:
    hook = TraceContext()
    seen = []
    for texts in ([PARENT], ["nonsense", PARENT], [None], []):
        with hook.around_consume([WithProperty(text) for text in texts]):
            seen.append(traceparent.get())
    assert seen == [PARENT, PARENT, None, None]
    assert traceparent.get() is None


def test_a_consumers_hook_does_something_and_none_costs_nothing() -> None:
    with pytest.raises(ConfigError, match="around_consume"):
        ConsumeHooks([object()], LOG)

    def handle(messages: Any) -> None: ...

    assert ConsumeHooks([], LOG).wrap(handle) is handle
