"""Our RocketMQ client on a real 5.5.0 with two brokers: the stories as operators live them."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mqclient import rocketmq
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.bodies import offset_table, read_body, write_body
from tests.real.rocketmq import RealRocketMQ

pytestmark = pytest.mark.real
IMPLS = ["native", "pure"]


class Seen:
    """A handler that counts bodies."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def __call__(self, messages: Any) -> None:
        self.bodies += [message.body for message in messages]


def eventually(holds: Callable[[], bool], within: float = 20.0) -> None:
    until = time.monotonic() + within
    while not holds():
        assert time.monotonic() < until, "not so in time"
        time.sleep(0.02)


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


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


def test_members_come_and_go_without_code_25(real_rocketmq: RealRocketMQ, client: rocketmq.Client, topic: str) -> None:
    group, seen = unique("g"), Seen()
    others = [rocketmq.Client(real_rocketmq.name_server) for _ in range(2)]
    members = [client.push_consumer(group, topic, seen, start="first")]
    for other in others:
        members.append(other.push_consumer(group, topic, seen, start="first"))
        time.sleep(1)
    eventually(lambda: sorted(len(member.queues) for member in members)[0] >= 1)
    bodies = fill(client, topic, 60)
    eventually(lambda: set(bodies) <= set(seen.bodies))
    states = [member.diagnose() for member in members]
    members.pop().close()
    time.sleep(2)
    states += [member.diagnose() for member in members]
    for member in members:
        member.close()
    for other in others:
        other.close()
    assert [state["code_25"] for state in states] == [0] * 5


def test_a_broadcasting_reset_moves_every_member(
    real_rocketmq: RealRocketMQ, client: rocketmq.Client, topic: str, tmp_path: Path
) -> None:
    group, folder = unique("audit"), str(tmp_path)
    bodies = fill(client, topic, 20)
    clients = [rocketmq.Client(real_rocketmq.name_server, offset_dir=folder) for _ in range(2)]
    seen = [Seen(), Seen()]
    for member, handler in zip(clients, seen, strict=True):
        member.push_consumer(group, topic, handler, model="broadcasting", start="first")
    eventually(lambda: all(len(handler.bodies) == 20 for handler in seen))
    with client.admin() as admin:
        report = admin.reset_offset(group, topic, "earliest", model="broadcasting")
    assert report.members == {member.client_id: "moved" for member in clients}
    eventually(lambda: all(sorted(handler.bodies) == sorted(bodies * 2) for handler in seen))
    for member in clients:
        member.close()


def test_offsets_that_are_all_wrong_heal_at_once(
    real_rocketmq: RealRocketMQ, client: rocketmq.Client, topic: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    group, seen = unique("stuck"), Seen()
    with rocketmq.Client(real_rocketmq.name_server, offset_dir=str(tmp_path)) as listener:
        listener.push_consumer(group, topic, seen, model="broadcasting").close()
        (lock,) = tmp_path.glob(f"*/{group}/0/lock")
        path = lock.with_name("offsets.json")
        wrong = {MessageQueue(topic, f"broker-{name}", number): 999999999 for name in "ab" for number in (0, 1)}
        path.write_bytes(write_body({"offsetTable": wrong}))
        with caplog.at_level(logging.WARNING, "mqclient.remoting"):
            consumer = listener.push_consumer(group, topic, seen, model="broadcasting")
            eventually(lambda: consumer.diagnose()["offsets_corrected"] == 4, 5)
            bodies = fill(client, topic, 8)
            eventually(lambda: sorted(seen.bodies) == bodies)
            consumer.close()
    illegal = [record for record in caplog.records if "the pull request offset illegal" in record.getMessage()]
    assert len(illegal) == 4
    assert sum(offset_table(read_body(path.read_bytes())).values()) == 8


def test_equal_ids_are_named(
    real_rocketmq: RealRocketMQ, client: rocketmq.Client, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    group, same = unique("twins"), unique("same@1")
    twins = [rocketmq.Client(real_rocketmq.name_server, client_id=same) for _ in range(2)]
    with caplog.at_level(logging.WARNING, "mqclient.remoting"):
        members = [twin.push_consumer(group, topic, Seen()) for twin in twins]
        eventually(lambda: all(member.diagnose()["equal_id_seen"] for member in members), 30)
    shares = [[queue for queue in member.queues if queue.topic == topic] for member in members]
    assert shares[0] == shares[1]
    assert len(shares[0]) == 2
    for twin in twins:
        twin.close()


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
