"""A fork: the child goes on under a new identity with connections of its own, the parent is not disturbed."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from mqclient import rocketmq
from mqclient.broker import EmbeddedBroker
from mqclient.errors import ClosedError
from mqclient.rocketmq.model import Message
from mqclient.rocketmq.remoting.member_options import MemberOptions
from mqclient.rocketmq.remoting.pull_consumer import PullEngine
from tests.unit.rocketmq.remoting.cluster import VirtualCluster


def test_in_the_child_consumers_end_and_producers_go_on(codec: Any, tmp_path: Path) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 2)
    cluster.fill("orders", 2)
    client = cluster.client(offset_dir=str(tmp_path))
    clustering = client.push("g", "orders", start="first")
    listener = client.push("b", "orders", model="broadcasting", start="first")
    with client.driver.enter():
        puller = PullEngine(client.engine, "p", {"orders": "*"}, MemberOptions())
        puller.start()
    client.produce(Message("orders", b"parent"))
    cluster.world.advance(1)
    before, stored = client.engine.client_id, dict(cluster.broker.offsets.stored)
    with client.driver.enter():
        client.engine.on_fork()
    assert client.engine.client_id != before
    (receipt,) = client.produce(Message("orders", b"child"))
    assert receipt.ok
    cluster.world.advance(60)
    assert not clustering.member.queues
    assert not listener.member.queues
    assert cluster.broker.offsets.stored == stored  # the child tells nothing of the parent's
    assert set(cluster.broker.members.producers) == {"producers"}


def test_a_real_fork(tmp_path: Path) -> None:
    with (
        EmbeddedBroker(doors=["rocketmq"], impl="pure") as broker,
        rocketmq.Client(broker.name_server, impl="pure") as client,
    ):
        producer = client.producer("p")
        producer.send(Message("orders", b"before"))
        done = threading.Event()
        consumer = client.push_consumer("g", "orders", lambda messages: done.set(), start="first")
        report = tmp_path / "child"
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                sent = producer.send(Message("orders", b"child"), timeout=5).offset
                report.write_text(f"{client.client_id} {sent}")
                client.close()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
        child_id, offset = report.read_text().split()
        assert child_id != client.client_id
        assert int(offset) >= 0
        assert producer.send(Message("orders", b"after")).ok
        assert done.wait(5)
        consumer.close()


@pytest.mark.parametrize("auto_commit", [True, False])
def test_a_consumer_of_the_parent_says_that_it_is_over(codec: Any, auto_commit: bool) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    client = cluster.client()
    with client.driver.enter():
        puller = PullEngine(client.engine, "p", {"orders": "*"}, MemberOptions(), auto_commit=auto_commit)
        puller.start()
    cluster.world.run()
    with client.driver.enter():
        waits = puller.refill()
        client.engine.on_fork()
        with pytest.raises(ClosedError, match="parent process"):
            puller.refill()
    assert isinstance(waits.error, ClosedError)
