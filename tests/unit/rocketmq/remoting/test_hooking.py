"""Hooks: what travels with messages, what is told of requests; one that fails harms nobody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mqclient.core.hooking import TraceContext, traceparent
from mqclient.errors import ConfigError
from mqclient.hooks import Consumed, Sent
from mqclient.rocketmq.model import Message
from mqclient.rocketmq.remoting.hooking import Hooks
from mqclient.rocketmq.remoting.many import plan, results
from mqclient.rocketmq.remoting.producer import ProducerEngine
from mqclient.rocketmq.remoting.producer_options import ProducerOptions
from tests.support.span import Span
from tests.unit.rocketmq.remoting.cluster import VirtualClient, VirtualCluster

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Listener:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[Sent] = []

    def after_send(self, sent: Sent) -> None:
        self.told.append(sent)


class Failing:
    """A hook with a bug."""

    def before_send(self, message: Any, properties: dict[str, str]) -> None:
        raise KeyError("a bug")

    def after_send(self, sent: Sent) -> None:
        raise KeyError("a bug")


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    return cluster


def produce(cluster: VirtualCluster, *hooks: Any) -> VirtualClient:
    client = cluster.client()
    with client.driver.enter():
        engine = ProducerEngine(client.engine, "producers", ProducerOptions(hooks=hooks))
    client.produce(Message("orders", b"alone", properties={"own": "1"}))
    chains = plan(engine, [Message("orders", b"%d" % number, tag="t") for number in range(3)], None)
    with client.driver.enter():
        slot = engine.submit_many(chains, None)
    assert all(one.ok for one in results(client.driver.wait(slot)))
    cluster.world.run()
    return client


def properties(cluster: VirtualCluster) -> list[dict[str, str]]:
    views, _ = cluster.broker.broker.topics["orders"].queue(0).log.read(0, 99, 1 << 20)
    return [message.properties for message in cluster.codec.remoting.decode_messages(b"".join(views))]


def test_each_message_continues_the_trace_that_is_at_work(cluster: VirtualCluster) -> None:
    token = traceparent.set(PARENT)
    produce(cluster, TraceContext())
    traceparent.reset(token)
    found = [one["traceparent"] for one in properties(cluster)]
    assert len(set(found)) == 4
    assert all(one.startswith(PARENT[:36]) and one.endswith("-01") and one != PARENT for one in found)
    assert properties(cluster)[0]["own"] == "1"


def test_requests_are_told_with_their_outcome(cluster: VirtualCluster) -> None:
    listener = Listener()
    client = produce(cluster, listener)
    cluster.control.answer("SEND_MESSAGE_V2", 13, "too large")
    client.produce(Message("orders", b"x"))
    cluster.world.run()
    one, many, refused = listener.told
    assert (one.topic, one.group, one.size, one.status, one.error) == ("orders", "producers", 5, "SEND_OK", None)
    assert (len(many.message_ids), many.broker) == (3, "10.0.0.1:10911")
    assert (refused.status, getattr(refused.error, "code", None)) == ("", 13)


def test_a_hook_that_fails_is_logged_and_the_message_sent(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    listener = Listener()
    produce(cluster, Failing(), listener)
    assert len(listener.told) == 2
    assert "before_send hook failed" in caplog.text
    assert "after_send hook failed" in caplog.text


def test_reserved_names_are_not_for_hooks_and_a_hook_does_something() -> None:
    class Rude:
        def before_send(self, message: Any, properties: dict[str, str]) -> None:
            properties.update(UNIQ_KEY="mine", fine="yes")

    assert Hooks([Rude()]).properties(Message("t", b"x")) == {"fine": "yes"}
    with pytest.raises(ConfigError, match="neither before_send"):
        Hooks([object()])


class FailingAround:
    """Hooks with bugs, at every place."""

    def __init__(self, where: str) -> None:
        self.where = where

    @contextmanager
    def around_consume(self, messages: Any) -> Iterator[None]:
        if self.where == "before":
            raise KeyError("a bug")
        yield
        raise KeyError("a bug")

    def after_consume(self, consumed: Consumed) -> None:
        raise KeyError("a bug")


def test_a_span_is_around_the_handler_and_listeners_are_told(cluster: VirtualCluster) -> None:
    span, calls = Span(), []
    cluster.fill("orders", 2)

    def handle(messages: Any) -> None:
        calls.append(len(messages))
        if len(calls) == 1:
            raise ValueError("not yet")

    cluster.client().push("g", "orders", handle, start="first", hooks=(span,))
    cluster.world.advance(30)
    assert span.seen[:3] == [("begins", 2), ("failed", "not yet"), ("begins", 1)]
    assert span.seen[-1] == "ended"
    first, *_, last = span.told
    assert (first.topic, first.group, len(first.messages), str(first.error)) == ("orders", "g", 2, "not yet")
    assert last.error is None
    assert last.seconds >= 0


@pytest.mark.parametrize("where", ["before", "after"])
def test_hooks_with_bugs_change_nothing_for_the_handler(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    cluster.fill("orders", 1)
    push = cluster.client().push("g", "orders", start="first", hooks=(FailingAround(where),))
    cluster.world.advance(5)
    assert push.engine.handled == 1
    assert "around_consume hook failed" in caplog.text
    assert "after_consume hook failed" in caplog.text
