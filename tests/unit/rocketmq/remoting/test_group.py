"""A member of a group: where it begins, what it keeps, how it leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqclient.errors import ClosedError, ConfigError
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import MessageQueue
from tests.unit.rocketmq.remoting.cluster import VirtualCluster


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    return cluster


@pytest.mark.parametrize(("start", "offset"), [("first", 2), ("last", 10), ("time", 6)])
def test_where_a_new_group_begins(cluster: VirtualCluster, start: str, offset: int) -> None:
    cluster.fill("orders", 6)
    cluster.world.advance(100)
    middle = cluster.world.wall_ms
    cluster.fill("orders", 4)
    cluster.broker.broker.topics["orders"].queues[0].log.trim(2)
    push = cluster.client().push("fresh", "orders", start=middle if start == "time" else start)
    (queue,) = (queue for queue in push.member.queues if queue.topic == "orders")
    assert push.member.queues[queue].started_at == offset


def test_what_is_stored_beats_the_start(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 6)
    cluster.broker.offsets.stored["known", "orders", 0] = 4
    push = cluster.client().push("known", "orders", start="first")
    assert sorted(held.started_at for held in push.member.queues.values()) == [0, 4]


def test_offsets_are_told_every_five_seconds_and_at_the_end(cluster: VirtualCluster) -> None:
    push = cluster.client().push("g", "orders", start="first")
    cluster.fill("orders", 3)
    cluster.world.advance(6)
    key = ("g", "orders", 0)
    assert cluster.broker.offsets.stored[key] == 3
    cluster.fill("orders", 2)
    cluster.world.advance(0.1)
    push.close()
    assert cluster.broker.offsets.stored[key] == 5
    assert cluster.broker.members.consumers == {}
    with pytest.raises(ClosedError):
        push.member.check_open()
    push.close()


@pytest.mark.parametrize("model", ["concurrent", "orderly"])
def test_a_pull_under_way_has_not_the_last_word(cluster: VirtualCluster, model: str) -> None:
    cluster.fill("orders", 3)
    client = cluster.client()
    push = client.push("g", "orders", start="first", pull_batch=3, orderly=model == "orderly")
    cluster.world.advance(12)  # the first word about the topic is told, and pulls may tell the next
    cluster.control.delay("PULL_MESSAGE", 0.5, times=9)  # the broker looks at it after what the closing tells
    cluster.fill("orders", 6)
    cluster.world.advance(0.1)
    (held,) = (held for queue, held in push.member.queues.items() if queue.topic == "orders")
    assert held.telling is not None
    assert push.member.offsets.memory[held.queue] == 6
    push.close()
    cluster.world.advance(5)
    assert cluster.broker.offsets.stored["g", "orders", 0] == 6


def test_a_broker_that_says_nothing_does_not_keep_us(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 3)
    push = cluster.client().push("g", "orders", start="first", pull_batch=3)
    cluster.world.advance(12)
    cluster.control.drop("PULL_MESSAGE", times=9)
    cluster.fill("orders", 6)
    cluster.world.advance(0.1)
    began = cluster.world.mono
    push.close()
    assert cluster.world.mono - began == pytest.approx(3, abs=0.5)
    assert cluster.broker.offsets.stored["g", "orders", 0] == 6


def test_ready_is_who_can_pull_all_that_is_his(cluster: VirtualCluster) -> None:
    client = cluster.client()
    assert not client.engine.ready()  # nobody was asked yet
    cluster.control.drop("HEART_BEAT", times=9)
    push = client.push("g", "orders", start="first")
    assert not client.engine.ready()
    cluster.world.advance(40)
    assert client.engine.ready()
    (held,) = (held for queue, held in push.member.queues.items() if queue.topic == "orders")
    held.version += 1
    assert not client.engine.ready()
    held.version -= 1
    for link in client.engine.links.values():
        link.state, kept = "connecting", link.state
        assert not push.member.ready() or str(link.address) == "names:9876"
        link.state = kept
    assert client.engine.ready()
    push.close()
    assert not push.member.ready()
    assert client.engine.ready()  # a client without consumers
    with client.driver.enter():
        client.engine.close()
    assert not client.engine.ready()


def test_a_queue_given_up_is_told_at_once(cluster: VirtualCluster) -> None:
    cluster.topic("wide", 2)
    first = cluster.client().push("g", "wide", start="first")
    cluster.fill("wide", 3)
    cluster.world.advance(1)
    second = cluster.client().push("g", "wide", start="first")
    cluster.world.advance(1)
    assert [len(first.queues("wide")), len(second.queues("wide"))] == [1, 1]
    (given,) = second.queues("wide")
    assert cluster.broker.offsets.stored["g", "wide", given] == 3
    (held,) = (held for queue, held in second.member.queues.items() if queue.topic == "wide")
    assert held.started_at == 3  # nothing comes twice


def test_one_consumer_of_a_group_in_a_client(cluster: VirtualCluster) -> None:
    client = cluster.client()
    client.push("g", "orders")
    again = client.push("g", "orders")
    assert isinstance(again.started.error, ConfigError)
    assert client.engine.consumers["g"] is not again.member


def test_a_start_that_fails_leaves_nothing_behind(cluster: VirtualCluster) -> None:
    cluster.world.refuse(("names", 9876))
    client = cluster.client()
    push = client.push("g", "orders")
    cluster.world.advance(10)
    assert push.started.error is not None
    assert client.engine.consumers == {}


def test_the_heartbeat_says_how_we_consume(cluster: VirtualCluster) -> None:
    push = cluster.client().push("g", "orders", start=5)
    entry = push.member.heartbeat_entry()
    assert (entry["consumeFromWhere"], entry["messageModel"]) == ("CONSUME_FROM_TIMESTAMP", "CLUSTERING")
    listener = cluster.client(offset_dir="/nonexistent").push("b", "orders", model="broadcasting", start="first")
    entry = listener.member.heartbeat_entry()
    assert (entry["consumeFromWhere"], entry["messageModel"]) == ("CONSUME_FROM_FIRST_OFFSET", "BROADCASTING")
    assert listener.member.subscriptions.topics() == ["orders"]


def test_diagnose_tells_queues_and_counters(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 3)
    push = cluster.client().push("g", "orders", start="first")
    cluster.world.advance(1)
    state = push.engine.diagnose()
    (queue,) = (queue for queue in state["queues"] if queue.topic == "orders")
    told = state["queues"][queue]
    assert (told["next_offset"], told["committed"], told["cached"], told["cached_bytes"]) == (3, 3, 0, 0)
    assert (state["code_25"], state["handled"], state["equal_id_seen"]) == (0, 3, False)


def test_a_clash_that_cannot_be_looked_at(cluster: VirtualCluster) -> None:
    cluster.control.answer("GET_CONSUMER_CONNECTION_LIST", 16, "no permission", times=9)
    twins = [cluster.client(client_id="same@1").push("g", "orders") for _ in range(2)]
    cluster.world.advance(30)
    assert all(twin.member.diagnose()["equal_id_seen"] for twin in twins)
    assert cluster.control.count(Request.GET_CONSUMER_CONNECTION_LIST.name) == 4


def test_what_is_wrong_is_said(cluster: VirtualCluster) -> None:
    client = cluster.client()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"model": "anycast"}, "model='anycast'"),
        ({"rule": "fair"}, "allocation rule 'fair'"),
    ]
    for options, says in wrong:
        with pytest.raises(ConfigError, match=says):
            client.push("g", "orders", **options)
    with pytest.raises(ConfigError, match="illegal"):
        client.push("g", "bad topic!")


def test_abandoned_it_holds_and_tells_nothing(cluster: VirtualCluster, tmp_path: Path) -> None:
    client = cluster.client(offset_dir=str(tmp_path))
    members = [client.push("g", "orders").member, client.push("b", "orders", model="broadcasting").member]
    cluster.world.advance(1)
    told = cluster.control.count("UPDATE_CONSUMER_OFFSET")
    with client.driver.enter():
        for member in members:
            member.abandon()
    cluster.world.advance(30)
    assert [member.queues for member in members] == [{}, {}]
    assert cluster.control.count("UPDATE_CONSUMER_OFFSET") == told
    with pytest.raises(ClosedError, match="belongs to the parent process"):
        members[0].check_open()


def test_running_info_shows_what_is_cached(cluster: VirtualCluster) -> None:
    client = cluster.client()
    push = client.push("g", "orders", start="first")
    cluster.fill("orders", 2)
    cluster.world.advance(1)
    (table,) = [row for queue, row in push.member.running_info()["mqTable"].items() if queue.topic == "orders"]
    assert (table["commitOffset"], table["cachedMsgCount"], table["droped"]) == (2, 0, False)
    with client.driver.enter():
        push.member.on_route("orders")
        push.member.on_route("unrelated")
    cluster.world.run()
    assert push.queues("orders") == [0]


def orderly(cluster: VirtualCluster, **options: Any) -> Any:
    return cluster.client().push("g", "orders", start="first", orderly=True, **options)


def test_an_orderly_member_takes_what_it_can_lock(cluster: VirtualCluster) -> None:
    cluster.topic("wide", 2)
    owners = cluster.broker.locks._owners.setdefault("h", {})
    queues = [MessageQueue("wide", "broker-a", number) for number in (0, 1)]
    owners[queues[0]] = ("other", cluster.world.mono)
    push = cluster.client().push("h", "wide", start="first", orderly=True)
    assert push.queues("wide") == [1]
    del owners[queues[0]]
    cluster.world.advance(1)
    assert push.queues("wide") == [0, 1]


def test_a_queue_that_cannot_be_begun_with_is_unlocked(cluster: VirtualCluster) -> None:
    cluster.control.answer("QUERY_CONSUMER_OFFSET", 1, "no", times=4)
    push = orderly(cluster)
    unlocked = cluster.control.count("UNLOCK_BATCH_MQ")
    assert unlocked >= 1
    cluster.world.advance(5)
    assert push.queues("orders") == [0]
    assert cluster.broker.locks.held("g")


def test_a_handler_that_ends_after_the_hand_over_began_counts(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    push = orderly(cluster)
    cluster.world.advance(1)
    (held,) = (held for held in push.member.queues.values() if held.queue.topic == "orders")
    work: Any = push.engine._work
    work._busy.add(held.queue)
    with push.driver.enter():
        push.member.revoke(held)
    cluster.fill("orders", 7)
    cluster.world.advance(30)
    assert cluster.broker.locks._owners["g"][held.queue][0] == push.member.client.client_id
    assert push.queues("orders") == []  # it is wanted back, and waits until it is free
    with push.driver.enter():
        push.member.offsets.mark(held.queue, 5)
        work._free(held.queue)
    cluster.world.advance(2)
    assert push.queues("orders") == [0]
    assert push.member.queues[held.queue].started_at == 5

    def fail(queue: Any) -> Any:
        raise RuntimeError("a bug")

    push.member.taker.quiet = fail
    with push.driver.enter():
        push.member.revoke(next(iter(push.member.queues.values())))
    assert any("could not hand over" in record.getMessage() for record in caplog.records)


def test_a_lost_lock_ends_the_work_at_once(cluster: VirtualCluster) -> None:
    push = orderly(cluster)
    cluster.world.advance(1)
    queue = MessageQueue("orders", "broker-a", 0)
    held = push.member.queues[queue]
    with push.driver.enter():
        push.member._lock_lost(queue)
        push.member._lock_lost(queue)
    assert held.dropped
    cluster.world.advance(2)
    assert push.queues("orders") == [0]


def test_an_illegal_offset_is_corrected_in_place(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 3)
    cluster.broker.offsets.stored["g", "orders", 0] = 99
    push = cluster.client().push("g", "orders", start="first")
    cluster.world.advance(1)
    assert (push.member.corrected, push.next_offsets("orders")) == (1, {MessageQueue("orders", "broker-a", 0): 3})
