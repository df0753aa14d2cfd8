"""Offset stores: where each is read, when it is told, and what a broken one costs."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from mqclient.core.steps import run_steps
from mqclient.errors import RemoteError
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.offset_file import OffsetFile
from mqclient.rocketmq.remoting.offsets import LocalOffsets, RemoteOffsets
from tests.unit.rocketmq.remoting.cluster import VirtualClient, VirtualCluster

QUEUE = MessageQueue("orders", "broker-a", 0)
OTHER = MessageQueue("orders", "broker-a", 1)


@pytest.fixture(name="client")
def client_fixture(codec: Any) -> VirtualClient:
    cluster = VirtualCluster(codec)
    cluster.topic("orders")
    cluster.broker.broker.group("g")
    client = cluster.client()
    with client.driver.enter():
        client.engine.routes.fetch("orders")
    cluster.world.run()
    return client


def run(client: VirtualClient, steps: Any) -> Any:
    with client.driver.enter():
        slot = run_steps(steps)
    client.cluster.world.run()
    return slot.result()


def stored(client: VirtualClient) -> dict[int, int]:
    return {key[2]: offset for key, offset in client.cluster.broker.offsets.stored.items()}


def test_marks_only_rise_and_puts_go_anywhere(client: VirtualClient) -> None:
    offsets = RemoteOffsets(client.engine, "g")
    offsets.mark(QUEUE, 5)
    offsets.mark(QUEUE, 3)
    assert offsets.memory == {QUEUE: 5}
    offsets.put(QUEUE, 1)
    assert offsets.memory == {QUEUE: 1}


def test_only_what_changed_is_told_to_brokers(client: VirtualClient) -> None:
    offsets = RemoteOffsets(client.engine, "g")
    run(client, offsets.load_steps())
    with client.driver.enter():
        offsets.mark(QUEUE, 5)
        offsets.flush()
        offsets.flush()
    client.cluster.world.run()
    assert stored(client) == {0: 5}
    assert client.cluster.control.count("UPDATE_CONSUMER_OFFSET") == 1
    with client.driver.enter():
        offsets.mark(OTHER, 7)
        offsets.forget(OTHER)
        offsets.flush()
    assert run(client, offsets.close_steps()) is None
    assert stored(client) == {0: 5}


def test_clustering_reads_the_store_and_forgets_memory(client: VirtualClient) -> None:
    offsets = RemoteOffsets(client.engine, "g")
    assert run(client, offsets.read_steps(QUEUE)) is None
    client.cluster.broker.offsets.stored["g", "orders", 0] = 9  # another member went on
    offsets.put(QUEUE, 4)
    assert run(client, offsets.read_steps(QUEUE)) == 9
    assert offsets.memory == {}
    client.cluster.control.answer("QUERY_CONSUMER_OFFSET", 2, "busy")
    with pytest.raises(RemoteError, match="busy"):
        run(client, offsets.read_steps(QUEUE))


def test_at_the_close_an_untold_offset_is_named(client: VirtualClient, caplog: pytest.LogCaptureFixture) -> None:
    offsets = RemoteOffsets(client.engine, "g")
    offsets.put(QUEUE, 4)
    client.cluster.control.cut("UPDATE_CONSUMER_OFFSET")
    with caplog.at_level(logging.WARNING, "mqclient.remoting"):
        run(client, offsets.close_steps())
    assert any("could not tell an offset" in record.getMessage() for record in caplog.records)


def test_the_last_word_comes_after_what_was_told_before(client: VirtualClient) -> None:
    offsets = RemoteOffsets(client.engine, "g")
    with client.driver.enter():
        offsets.mark(QUEUE, 5)
        client.cluster.control.delay("UPDATE_CONSUMER_OFFSET", 1.0)  # a broker whose threads overtake each other
        offsets.flush()
        offsets.mark(QUEUE, 6)
        slot = run_steps(offsets.flush_steps())
    client.cluster.world.advance(0.5)
    assert stored(client) == {}
    client.cluster.world.advance(2)
    assert slot.done
    assert stored(client) == {0: 6}


def test_the_first_word_about_a_topic_is_alone(client: VirtualClient) -> None:
    """Two at once, and a real broker that makes its table of the topic for both of them keeps only one."""
    offsets = RemoteOffsets(client.engine, "g")
    control = client.cluster.control
    with client.driver.enter():
        offsets.mark(QUEUE, 5)
        offsets.mark(OTHER, 7)
        assert offsets.told_by_pull(QUEUE) == 0  # a pull's word would be one of the two
        control.delay("UPDATE_CONSUMER_OFFSET", 1.0)
        slot = run_steps(offsets.flush_steps())
    client.cluster.world.advance(0.5)
    assert control.count("UPDATE_CONSUMER_OFFSET") == 1
    client.cluster.world.advance(1)
    assert slot.done
    assert stored(client) == {0: 5, 1: 7}
    with client.driver.enter():
        assert offsets.told_by_pull(QUEUE) == 5
        offsets.mark(QUEUE, 6)
        offsets.mark(OTHER, 8)
        control.delay("UPDATE_CONSUMER_OFFSET", 1.0, times=2)
        offsets.flush()
    client.cluster.world.advance(0.5)
    assert control.count("UPDATE_CONSUMER_OFFSET") == 4  # later words are told at once
    client.cluster.world.advance(1)
    assert stored(client) == {0: 6, 1: 8}


def test_after_a_first_word_that_was_lost_the_next_is_first(client: VirtualClient) -> None:
    offsets = RemoteOffsets(client.engine, "g")
    client.cluster.control.cut("UPDATE_CONSUMER_OFFSET")
    with client.driver.enter():
        offsets.mark(QUEUE, 5)
        offsets.mark(OTHER, 7)
        offsets.flush()
    client.cluster.world.advance(5)
    with client.driver.enter():
        offsets.flush()
    client.cluster.world.advance(5)
    assert stored(client) == {0: 5, 1: 7}
    assert offsets.told_by_pull(OTHER) == 7


def test_what_a_broker_did_not_hear_is_told_again(client: VirtualClient) -> None:
    offsets = RemoteOffsets(client.engine, "g")
    client.cluster.control.cut("UPDATE_CONSUMER_OFFSET")
    with client.driver.enter():
        offsets.mark(QUEUE, 5)
        offsets.flush()
    client.cluster.world.advance(5)
    assert stored(client) == {}
    with client.driver.enter():
        offsets.flush()
    client.cluster.world.advance(5)
    assert stored(client) == {0: 5}


def local(client: VirtualClient, folder: Path) -> LocalOffsets:
    return LocalOffsets(client.engine, "g", OffsetFile(str(folder), "host", "g"))


def test_broadcasting_reads_memory_first_then_the_file(client: VirtualClient, tmp_path: Path) -> None:
    offsets = local(client, tmp_path)
    run(client, offsets.load_steps())
    assert run(client, offsets.read_steps(QUEUE)) is None
    with client.driver.enter():
        offsets.mark(QUEUE, 5)
        offsets.mark(QUEUE, 2)
        offsets.persist(QUEUE)
    run(client, offsets.close_steps())
    again = local(client, tmp_path)
    run(client, again.load_steps())
    assert run(client, again.read_steps(QUEUE)) == 5
    again.put(QUEUE, 1)  # a reset: memory, before the file knows
    again.forget(QUEUE)
    assert run(client, again.read_steps(QUEUE)) == 1
    assert again.told_by_pull(QUEUE) == 0


def test_a_queue_that_is_not_ours_now_keeps_its_entry(client: VirtualClient, tmp_path: Path) -> None:
    first = local(client, tmp_path)
    run(client, first.load_steps())
    first.put(QUEUE, 5)
    first.put(OTHER, 6)
    run(client, first.close_steps())
    second = local(client, tmp_path)
    run(client, second.load_steps())
    second.put(QUEUE, 7)
    run(client, second.close_steps())
    third = local(client, tmp_path)
    run(client, third.load_steps())
    assert [run(client, third.read_steps(queue)) for queue in (QUEUE, OTHER)] == [7, 6]


def test_a_change_during_a_write_is_written_next(client: VirtualClient, tmp_path: Path) -> None:
    offsets = local(client, tmp_path)
    run(client, offsets.load_steps())
    with client.driver.enter():
        offsets.put(QUEUE, 1)
        offsets.flush()
        offsets.put(QUEUE, 2)
        offsets.flush()  # one write at a time
    client.cluster.world.run()
    run(client, offsets.close_steps())
    again = local(client, tmp_path)
    run(client, again.load_steps())
    assert run(client, again.read_steps(QUEUE)) == 2


def test_a_disk_that_cannot_be_written_costs_one_warning(
    client: VirtualClient, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets = local(client, tmp_path)
    run(client, offsets.load_steps())

    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(OffsetFile, "save", full)
    with caplog.at_level(logging.WARNING, "mqclient.remoting"):
        for offset in range(3):
            with client.driver.enter():
                offsets.put(QUEUE, offset)
                offsets.flush()
            client.cluster.world.run()
    assert [record.getMessage() for record in caplog.records] == [
        "consumer:g cannot write its offsets, and goes on in memory: [Errno 28] No space left on device"
    ]
    assert run(client, offsets.read_steps(QUEUE)) == 2


def test_a_topic_made_anew_is_asked_for_by_its_witness(client: VirtualClient, tmp_path: Path) -> None:
    cluster = client.cluster
    cluster.topic("anew", 1)
    queue = MessageQueue("anew", "broker-a", 0)
    with client.driver.enter():
        fetched = client.engine.routes.fetch("anew")
    client.driver.wait(fetched)

    def offsets() -> Any:
        made = LocalOffsets(client.engine, "g", OffsetFile(str(tmp_path), "h", "anew"))
        run(client, made.load_steps())
        return made

    cluster.fill("anew", 3)
    before = offsets()
    with client.driver.enter():
        before.put(queue, 3)
        before.witness(queue, 2, 5)  # stored long ago, as a message of another topic was
    run(client, before.close_steps())
    for refused in ("PULL_MESSAGE", "SEARCH_OFFSET_BY_TIMESTAMP"):  # who cannot look goes on as stored
        cluster.control.answer(refused, 1, "no")
        after = offsets()
        assert run(client, after.read_steps(queue)) == 3
        run(client, after.close_steps())
    again = offsets()
    assert run(client, again.read_steps(queue)) == 0
    assert run(client, again.read_steps(queue)) == 0
    run(client, again.close_steps())


def test_brokers_that_have_none_are_asked_not_to_invent_one(client: VirtualClient) -> None:
    cluster = client.cluster
    cluster.topic("young", 1)
    cluster.fill("young", 3)
    queue = MessageQueue("young", "broker-a", 0)
    with client.driver.enter():
        fetched = client.engine.routes.fetch("young")
    client.driver.wait(fetched)
    assert run(client, RemoteOffsets(client.engine, "g").read_steps(queue)) == 0
    assert run(client, RemoteOffsets(client.engine, "g", strict=True).read_steps(queue)) is None
    cluster.control.answer("QUERY_CONSUMER_OFFSET", 16, "no permission")
    with pytest.raises(RemoteError, match="no permission"):
        run(client, RemoteOffsets(client.engine, "g").read_steps(queue))
