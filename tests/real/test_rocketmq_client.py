"""Our RocketMQ client on a real 5.5.0 with two brokers, native and pure; the stories are in test_stories.py."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mqclient import rocketmq
from tests.real.fixtures import ON_ROCKETMQ
from tests.real.rocketmq import RealRocketMQ
from tests.support.seen import unique

pytestmark = ON_ROCKETMQ
IMPLS = ["native", "pure"]


def eventually(holds: Callable[[], bool], within: float = 20.0) -> None:
    until = time.monotonic() + within
    while not holds():
        assert time.monotonic() < until, "not so in time"
        time.sleep(0.02)


@pytest.fixture(name="client", params=IMPLS)
def client_fixture(real_rocketmq: RealRocketMQ, request: pytest.FixtureRequest) -> Iterator[rocketmq.Client]:
    with rocketmq.Client(real_rocketmq.name_server, impl=request.param) as client:
        yield client


@pytest.fixture(name="topic")
def topic_fixture(client: rocketmq.Client) -> str:
    """Two queues on each of the two brokers."""
    topic = unique("real")
    with client.admin() as admin:
        admin.create_topic(topic, queues=2)
    return topic


def fill(client: rocketmq.Client, topic: str, count: int) -> list[bytes]:
    bodies = [b"%04d" % number for number in range(count)]
    with client.producer(unique("p")) as producer:
        for body in bodies:
            assert producer.send(rocketmq.Message(topic, body, tag="t")).ok
    return bodies


def test_sent_is_pulled_and_committed(client: rocketmq.Client, topic: str) -> None:
    bodies = fill(client, topic, 40)
    with client.producer(unique("p")) as producer:
        batch = [rocketmq.Message(topic, b"batch-%d" % number) for number in range(40)]
        assert all(result.ok for result in producer.send_many(batch))
        assert producer.submit(rocketmq.Message(topic, b"future")).result(5).ok
    got: list[bytes] = []
    group = unique("g")
    with client.pull_consumer(group, topic, start="first") as consumer:
        while len(got) < 81:
            batch_got = consumer.receive_batch(timeout=10)
            assert batch_got is not None
            got += [message.body for message in batch_got]
    assert sorted(got) == sorted([*bodies, *(b"batch-%d" % number for number in range(40)), b"future"])
    with client.admin() as admin:
        state = admin.offsets(topic, group)
    assert {ends["committed"] for ends in state.values()} <= {ends["max"] for ends in state.values()} | {None}


def test_what_failed_comes_again(client: rocketmq.Client, topic: str) -> None:
    (body,) = fill(client, topic, 1)
    done, attempts = threading.Event(), []

    def handle(messages: Any) -> None:
        for message in messages:
            attempts.append((message.topic, message.attempts, message.body))
            if message.attempts == 0:
                raise ValueError("not yet")
            done.set()

    with client.push_consumer(unique("g"), topic, handle, start="first", batch=1):
        assert done.wait(25)
    assert attempts == [(topic, 0, body), (topic, 1, body)]


def test_the_vip_channel_takes_sends(real_rocketmq: RealRocketMQ, topic: str) -> None:
    with rocketmq.Client(real_rocketmq.name_server, vip_channel=True) as client:
        assert fill(client, topic, 4) == [b"0000", b"0001", b"0002", b"0003"]
        with client.admin() as admin:
            addresses = {address for broker in admin.cluster() for address in broker.addresses.values()}
        links = set(client.diagnose()["links"])
    second = {f"{address.rpartition(':')[0]}:{int(address.rpartition(':')[2]) - 2}" for address in addresses}
    assert second <= links
