"""Pulling: what each answer means, and what is said when it fails."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from mqclient.rocketmq.remoting.pull import Folds
from tests.unit.rocketmq.remoting.cluster import Push, VirtualCluster


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    return cluster


def start(cluster: VirtualCluster, got: list[int] | None = None, **options: Any) -> Push:
    seen = [] if got is None else got
    push = cluster.client().push("billing", "orders", lambda messages: seen.extend(messages.offsets), **options)
    cluster.world.advance(1)
    return push


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_everything_in_order_once(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 100)
    got: list[int] = []
    start(cluster, got, start="first", pull_batch=7)
    cluster.fill("orders", 5)
    cluster.world.advance(1)
    assert got == list(range(105))


def test_a_queue_that_moved_goes_on_where_the_broker_says(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.fill("orders", 10)
    got: list[int] = []
    push = start(cluster, got, start="first")
    queue = cluster.broker.broker.topics["orders"].queues[0]
    (held,) = push.next_offsets("orders")
    with push.driver.enter():
        push.member.restart(push.member.queues[held], 999)
    cluster.world.advance(1)
    assert push.member.corrected == 1
    assert any("the pull request offset illegal" in line for line in lines(caplog))
    cluster.fill("orders", 1)
    cluster.world.advance(1)
    assert got == list(range(11))
    assert queue.log.next == 11


@pytest.mark.parametrize(
    ("code", "quiet"),
    [(24, True), (26, True), (2, False), (16, False), (215, True)],
)
def test_refusals_are_one_line_or_none_and_the_pull_goes_on(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture, code: int, quiet: bool
) -> None:
    got: list[int] = []
    cluster.control.answer("PULL_MESSAGE", code, "because", times=4)
    with caplog.at_level(logging.WARNING, "mqclient.remoting"):
        start(cluster, got, start="first")
        cluster.fill("orders", 1)
        cluster.world.advance(20)
    assert got == [0]
    said = [line for line in lines(caplog) if "because" in line]
    assert len(said) == (0 if quiet else 1)
    assert all(record.exc_info is None for record in caplog.records)


def test_a_lost_broker_is_one_line_and_pulls_go_on_when_it_is_back(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    got: list[int] = []
    push = start(cluster, got, start="first")
    address = ("10.0.0.1", 10911)
    listener = cluster.world.peers[address]
    cluster.world.refuse(address)
    with caplog.at_level(logging.WARNING, "mqclient.remoting"):
        for wire in push.driver.wires:
            if wire.link is not None and wire.link.address.port == 10911:
                wire.lose(ConnectionResetError("gone"))
        cluster.world.advance(30)
        said = [line for line in lines(caplog) if line.startswith("pulling orders queue 0 of broker-a")]
        assert len(said) == 1
        cluster.world.listen(address, listener)
        cluster.fill("orders", 1)
        cluster.world.advance(5)
    assert got == [0]
    assert push.member.not_latest == 0


@pytest.mark.parametrize("ending", ["silence", "loss", "shutdown"])
def test_nothing_is_said_of_pulls_that_the_end_cuts_short(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture, ending: str
) -> None:
    if ending == "silence":  # the time of a pull is over when its consumer is gone
        cluster.control.drop("PULL_MESSAGE", times=1000)
    push = start(cluster, start="first")
    held = list(push.member.queues.values())
    with caplog.at_level(logging.INFO, "mqclient.remoting"):
        if ending == "shutdown":
            with push.driver.enter():
                slot = push.member.client.shutdown()
            push.driver.wait(slot)
        else:
            push.close()
        if ending == "loss":
            for wire in push.driver.wires:
                wire.lose(ConnectionResetError("gone"))
        cluster.world.advance(60)
    assert held
    assert all(process_queue.dropped for process_queue in held)
    assert [line for line in lines(caplog) if "pull" in line] == []


def test_no_route_to_the_broker_asks_for_a_fresh_one(cluster: VirtualCluster) -> None:
    got: list[int] = []
    push = start(cluster, got, start="first")
    push.member.client.routes._routes.clear()
    cluster.fill("orders", 1)
    cluster.world.advance(20)
    cluster.fill("orders", 1)
    cluster.world.advance(20)
    assert got == [0, 1]


def test_a_full_queue_is_not_pulled(cluster: VirtualCluster) -> None:
    from mqclient.rocketmq.remoting.process_queue import Limits

    cluster.fill("orders", 100)
    push = start(cluster, start="first", pull_batch=10, limits=Limits(count=20))
    (held,) = push.next_offsets("orders")
    process_queue = push.member.queues[held]
    process_queue.pause()
    before = cluster.control.count("PULL_MESSAGE")
    cluster.fill("orders", 50)
    cluster.world.advance(10)
    assert cluster.control.count("PULL_MESSAGE") <= before + 2  # the ones that were under way, retry topic's too
    with push.driver.enter():
        process_queue.resume()
    cluster.world.advance(1)
    assert push.next_offsets("orders")[held] == 150


def test_a_broken_body_ends_nothing(cluster: VirtualCluster, caplog: pytest.LogCaptureFixture) -> None:
    push = start(cluster, start="first")
    cluster.control.answer("PULL_MESSAGE", 0, "FOUND")  # a success without fields and body
    cluster.fill("orders", 3)
    cluster.world.advance(20)
    assert sum(push.next_offsets("orders").values()) == 3


def test_an_unsubscribed_topic_is_given_up(cluster: VirtualCluster) -> None:
    push = start(cluster, start="first")
    with push.driver.enter():
        push.member.subscriptions.unsubscribe("orders")
        push.member.rebalance.poke()
    cluster.world.advance(1)
    assert push.queues("orders") == []


def test_folded_lines_tell_how_many_there_were(cluster: VirtualCluster, caplog: pytest.LogCaptureFixture) -> None:
    client = cluster.client()
    folds = Folds(client.engine)
    with caplog.at_level(logging.WARNING, "mqclient.remoting"):
        for _ in range(5):
            folds.warn("key", "again")
        cluster.world.advance(61)
        with client.driver.enter():
            folds.warn("key", "again")
    assert lines(caplog) == ["again", "again (4 more within a minute)", "again"]
