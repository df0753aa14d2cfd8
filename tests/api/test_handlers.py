"""Whatever a handler raises on a thread of ours, its messages come again, the others are handled, and closing ends."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from mqclient import pulsar, rocketmq
from mqclient.broker import EmbeddedBroker
from tests.support.seen import unique

LONG = 30.0
COUNT = 8


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as it:
        yield it


class Moody:
    """Raises at each message's first coming."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error
        self.seen: list[bytes] = []
        self.done = threading.Event()

    def __call__(self, given: Any) -> None:
        bodies = [message.body for message in given] if hasattr(given, "__len__") else [given.body]
        fresh = [body for body in bodies if body not in self.seen]
        self.seen += bodies
        if fresh:
            raise self.error("the handler's own")
        if all(self.seen.count(b"%d" % number) >= 2 for number in range(COUNT)):
            self.done.set()

    async def later(self, given: Any) -> None:
        await asyncio.sleep(0)
        self(given)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
@pytest.mark.parametrize("waits", [False, True], ids=["plain", "coroutine"])
@pytest.mark.parametrize("system", ["rocketmq", "pulsar"])
def test_what_is_no_exception_refuses_too(
    broker: EmbeddedBroker, system: str, waits: bool, error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    topic, handler = unique("moody"), Moody(error)
    handle = handler.later if waits else handler
    client: Any
    consumer: Any
    if system == "rocketmq":
        client = rocketmq.Client(broker.name_server)
        client.producer("p").send_many([rocketmq.Message(topic, b"%d" % number) for number in range(COUNT)])
        options: dict[str, Any] = {"start": "first", "retry_levels": [1], "threads": 2, "batch": 3}
        consumer = client.push_consumer(unique("g"), topic, handle, **options)
    else:
        client = pulsar.Client(broker.pulsar_url)
        client.producer(topic).send_many([b"%d" % number for number in range(COUNT)])
        options = {"start": "earliest", "nack_delay": 0.1, "threads": 2, "type": "shared"}
        consumer = client.consumer(topic, "s", listener=handle, **options)
    end = time.monotonic() + LONG
    while not handler.done.wait(0.1) and time.monotonic() < end:
        if system == "rocketmq":
            broker.control.move_clock(1.1)
    began = time.monotonic()
    consumer.close()
    client.close()
    assert handler.done.is_set(), handler.seen
    assert time.monotonic() - began < 5
    assert any("the handler" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("closes", ["consumer", "client"])
@pytest.mark.parametrize("orderly", [False, True])
@pytest.mark.parametrize("waits", [False, True], ids=["plain", "coroutine"])
def test_a_handler_that_closes_does_not_wait_for_itself(
    broker: EmbeddedBroker, closes: str, orderly: bool, waits: bool
) -> None:
    topic = unique("closing")
    client = rocketmq.Client(broker.name_server)
    client.producer("p").send(rocketmq.Message(topic, b"x"))
    opened, done = threading.Event(), threading.Event()
    took: list[float] = []
    consumer: Any = None

    def handle(messages: Any) -> None:
        opened.wait(LONG)
        began = time.monotonic()
        (consumer if closes == "consumer" else client).close()
        took.append(time.monotonic() - began)
        done.set()

    async def later(messages: Any) -> None:
        await asyncio.sleep(0)
        handle(messages)

    consumer = client.push_consumer(unique("g"), topic, later if waits else handle, start="first", orderly=orderly)
    opened.set()
    assert done.wait(LONG)
    assert took[0] < 5
    client.close()
