"""Story 3: resets move every broadcasting member, and offsets that are all wrong heal in one round."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from mqclient.core.steps import run_steps
from mqclient.errors import RemoteError
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.admin import AdminEngine
from mqclient.rocketmq.remoting.admin_reset import ResetReport
from mqclient.rocketmq.remoting.bodies import offset_table, read_body, write_body
from mqclient.rocketmq.remoting.reset import reset as move
from tests.unit.rocketmq.remoting.cluster import Push, VirtualClient, VirtualCluster

TOPIC = "broadcast-test-topic"


def reset(client: VirtualClient, group: str, when: Any, **options: Any) -> ResetReport:
    defaults: dict[str, Any] = {"model": "clustering", "force": True, "dry_run": False}
    with client.driver.enter():
        slot = run_steps(AdminEngine(client.engine).reset_offset_steps(group, TOPIC, when, **defaults | options))
    report: ResetReport = client.driver.wait(slot)
    client.cluster.world.advance(1)
    return report


def listener(cluster: VirtualCluster, folder: Path | None, **options: Any) -> tuple[Push, list[bytes]]:
    got: list[bytes] = []
    client = cluster.client(offset_dir=str(folder) if folder else None)
    push = client.push("audit", TOPIC, lambda messages: got.extend(m.body for m in messages), **options)
    cluster.world.advance(1)
    return push, got


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec, server_side_reset=False, mqcloud_patch=True)
    cluster.topic(TOPIC, 4)
    cluster.fill(TOPIC, 5)
    return cluster


def test_every_broadcasting_member_moves_on_a_patched_broker(cluster: VirtualCluster, tmp_path: Path) -> None:
    members = [listener(cluster, tmp_path, model="broadcasting", start="first") for _ in range(2)]
    assert [len(got) for _, got in members] == [20, 20]
    report = reset(cluster.client(), "audit", "earliest", model="broadcasting")
    assert set(report.offsets.values()) == {0}
    assert set(report.members.values()) == {"asked"}
    assert [len(got) for _, got in members] == [40, 40]
    cluster.world.advance(60)  # rebalances do not undo it
    assert [len(got) for _, got in members] == [40, 40]


def test_an_unpatched_broker_refuses_a_broadcasting_group(codec: Any, tmp_path: Path) -> None:
    cluster = VirtualCluster(codec, server_side_reset=False)
    cluster.topic(TOPIC, 4)
    cluster.fill(TOPIC, 1)
    listener(cluster, tmp_path, model="broadcasting")
    with pytest.raises(RemoteError, match="THe consumer group <audit> not exist"):
        reset(cluster.client(), "audit", "earliest")


@pytest.mark.parametrize("server_side", [True, False])
def test_a_clustering_group_moves_in_both_forms(codec: Any, server_side: bool) -> None:
    cluster = VirtualCluster(codec, server_side_reset=server_side)
    cluster.topic(TOPIC, 4)
    cluster.fill(TOPIC, 5)
    push, got = listener(cluster, None, start="first")
    cluster.world.advance(10)
    assert len(got) == 20
    reset(cluster.client(), "audit", "earliest")
    cluster.world.advance(30)  # a held pull sees a server-side reset when its suspension ends
    assert len(got) == 40
    assert push.member.not_latest == 0


def test_the_skipped_backlog_stays_skipped(cluster: VirtualCluster, tmp_path: Path) -> None:
    push, got = listener(cluster, tmp_path, model="broadcasting", start="last")
    report = reset(cluster.client(), "audit", "latest", model="broadcasting")
    assert set(report.offsets.values()) == {5}
    cluster.fill(TOPIC, 1)
    cluster.world.advance(1)
    assert len(got) == 4
    assert set(push.next_offsets(TOPIC).values()) == {6}


def test_all_wrong_offsets_heal_in_one_round_and_reach_the_file(
    cluster: VirtualCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, _ = listener(cluster, tmp_path, model="broadcasting")
    (lock,) = tmp_path.glob("*/audit/0/lock")
    first.close()
    wrong = {MessageQueue(TOPIC, "broker-a", number): 999999999 for number in range(4)}
    path = lock.with_name("offsets.json")
    path.write_bytes(write_body({"offsetTable": wrong}))
    with caplog.at_level(logging.WARNING, "mqclient.remoting"):
        push, got = listener(cluster, tmp_path, model="broadcasting")
        illegal = [record for record in caplog.records if "the pull request offset illegal" in record.getMessage()]
        assert len(illegal) == 4  # each queue once, within the first second
        cluster.fill(TOPIC, 1)
        cluster.world.advance(60)
    assert len(got) == 4
    assert push.member.corrected == 4
    assert offset_table(read_body(path.read_bytes())) == dict.fromkeys(wrong, 6)
    push.close()
    again, got = listener(cluster, tmp_path, model="broadcasting")
    assert again.member.corrected == 0
    assert got == []


def test_a_broken_file_costs_one_warning_and_memory_goes_on(
    cluster: VirtualCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, _ = listener(cluster, tmp_path, model="broadcasting")
    (lock,) = tmp_path.glob("*/audit/0/lock")
    first.close()
    for name in ("offsets.json", "offsets.json.bak"):
        lock.with_name(name).write_text('{"offsetTable":{{"brokerN')
    with caplog.at_level(logging.WARNING, "mqclient.remoting"):
        _, got = listener(cluster, tmp_path, model="broadcasting", start="first")
    assert len(got) == 20
    assert len([record for record in caplog.records if "cannot read its offsets" in record.getMessage()]) == 1
    cluster.world.advance(6)
    assert set(offset_table(read_body(lock.with_name("offsets.json").read_bytes())).values()) == {5}


def test_two_members_on_one_host_have_a_file_each(cluster: VirtualCluster, tmp_path: Path) -> None:
    for _ in range(2):
        listener(cluster, tmp_path, model="broadcasting", start="first")
    cluster.world.advance(6)
    assert len(list(tmp_path.glob("*/audit/*/offsets.json"))) == 2


def test_queues_and_topics_that_are_not_meant_stay(cluster: VirtualCluster, tmp_path: Path) -> None:
    push, got = listener(cluster, tmp_path, model="broadcasting", start="first")
    held, absent = MessageQueue(TOPIC, "broker-a", 0), MessageQueue(TOPIC, "broker-b", 9)
    table = {held: 4, absent: 7, MessageQueue("other", "broker-a", 0): 1}
    with push.driver.enter():
        moved = move(push.member, TOPIC, table)
    assert moved == {held: 4, absent: 7}  # a broadcasting member remembers queues that it does not hold yet
    assert push.member.offsets.memory[absent] == 7
    cluster.world.advance(1)
    assert len(got) == 21


def test_a_clustering_member_moves_only_what_it_holds(codec: Any) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic(TOPIC, 2)
    push, _ = listener(cluster, None)
    with push.driver.enter():
        assert move(push.member, TOPIC, {MessageQueue(TOPIC, "broker-b", 0): 1}) == {}
