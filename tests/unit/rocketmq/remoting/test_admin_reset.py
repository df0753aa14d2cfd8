"""A broadcasting reset moves every member on every generation of brokers, and says who did not move (story 3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqclient.core.steps import run_steps
from mqclient.errors import RemoteError
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.admin_reset import FOREIGN, GroupReset
from mqclient.rocketmq.remoting.bodies import write_body
from mqclient.rocketmq.remoting.relayed import RESET_FIELD
from mqclient.rocketmq.signing import acl
from tests.unit.rocketmq.remoting.cluster import Push, VirtualCluster

TOPIC = "news"


def make(codec: Any, *, brokers: int = 1, **settings: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec, brokers=brokers, **settings)
    cluster.topic(TOPIC, 2)
    cluster.fill(TOPIC, 5)
    return cluster


def listen(cluster: VirtualCluster, folder: Path, **options: Any) -> tuple[Push, list[bytes]]:
    got: list[bytes] = []
    client = cluster.client(offset_dir=str(folder), **options)
    push = client.push(
        "audit", TOPIC, lambda messages: got.extend(m.body for m in messages), model="broadcasting", start="first"
    )
    cluster.world.advance(1)
    return push, got


def reset(
    cluster: VirtualCluster, steps: str = "broadcasting_steps", when: int = 0, *arguments: Any, auth: Any = None
) -> Any:
    client = cluster.client(auth=auth)
    with client.driver.enter():
        slot = run_steps(getattr(GroupReset(client.engine, "audit", TOPIC, when), steps)(*arguments))
    report = client.driver.wait(slot)
    cluster.world.advance(1)
    return report


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ({}, "moved"),
        ({"server_side_reset": False}, "asked"),
        ({"server_side_reset": False, "mqcloud_patch": True}, "asked"),
    ],
    ids=["today", "old form", "patched"],
)
def test_every_member_moves(codec: Any, tmp_path: Path, settings: dict[str, Any], status: str) -> None:
    cluster = make(codec, brokers=2, **settings)
    members = [listen(cluster, tmp_path) for _ in range(3)]
    assert [len(got) for _, got in members] == [10, 10, 10]
    report = reset(cluster)
    assert [len(got) for _, got in members] == [20, 20, 20]
    assert set(report.offsets) == {MessageQueue(TOPIC, f"broker-{name}", number) for name in "ab" for number in (0, 1)}
    assert report.members == {push.member.client.client_id: status for push, _ in members}
    assert report.failed == {}
    cluster.world.advance(60)
    assert [len(got) for _, got in members] == [20, 20, 20]
    assert all(push.member.corrected == 0 for push, _ in members)
    sent = cluster.control.count("INVOKE_BROKER_TO_RESET_OFFSET")
    assert sent == (0 if not settings else 2 if "mqcloud_patch" in settings else 4)


def test_a_member_of_another_make_is_named(codec: Any, tmp_path: Path) -> None:
    cluster = make(codec)
    push, got = listen(cluster, tmp_path)
    java, _ = listen(cluster, tmp_path)
    java.member.client.asked._table[Request.GET_CONSUMER_RUNNING_INFO] = lambda link, frame: java.member.client.respond(
        link, frame, 0, body=b"{}"
    )
    deaf, _ = listen(cluster, tmp_path, allow_relayed_reset=False)
    report = reset(cluster)
    assert len(got) == 20
    assert report.members[push.member.client.client_id] == "moved"
    assert report.members[java.member.client.client_id] == FOREIGN
    assert "relayed resets are not allowed" in report.members[deaf.member.client.client_id]


def test_a_repeated_relay_is_absorbed(codec: Any, tmp_path: Path) -> None:
    cluster = make(codec)
    push, got = listen(cluster, tmp_path)
    heard: list[Any] = []
    (member,) = cluster.broker.members.consumers["audit"].members.values()
    body = write_body({"offsetTable": {MessageQueue(TOPIC, "broker-a", 0): 3}})
    for number in (1, 1, 2):
        fields = {"consumerGroup": "audit", "clientId": "x", "topic": TOPIC, RESET_FIELD: f"id-{number}"}
        member.peer.ask(Request.GET_CONSUMER_RUNNING_INFO, fields, body, 5.0, heard.append)
        cluster.world.advance(1)
    assert [frame.field("mqclientMoved") for frame in heard] == ["1", "0", "1"]
    assert len(got) == 10 + 2 + 2
    assert push.member.offsets.memory[MessageQueue(TOPIC, "broker-a", 0)] == 5


def test_a_broker_that_fails_is_reported_and_the_other_goes_on(codec: Any, tmp_path: Path) -> None:
    cluster = make(codec, brokers=2)
    _, got = listen(cluster, tmp_path)
    cluster.control.answer("GET_BROKER_CONFIG", 1, "no permission")
    report = reset(cluster)
    assert set(report.failed) == {"broker-a"}
    assert {queue.broker_name for queue in report.offsets} == {"broker-b"}
    cluster.control.answer("GET_BROKER_CONFIG", 1, "no permission", times=2)
    with pytest.raises(RemoteError, match="no permission"):
        reset(cluster)
    assert len(got) == 10  # its queues of broker-b were at the beginning


def test_looking_moves_nothing(codec: Any, tmp_path: Path) -> None:
    cluster = make(codec)
    _, got = listen(cluster, tmp_path)
    assert set(reset(cluster, "dry_steps", 0).offsets.values()) == {0}
    assert set(reset(cluster, "dry_steps", -1).offsets.values()) == {5}
    held = reset(cluster, "dry_steps", 0, True)
    assert set(held.before.values()) == {5}
    assert set(reset(cluster, "dry_steps", 0).before.values()) == {None}  # the broker knows nothing of them
    cluster.control.answer("INVOKE_BROKER_TO_GET_CONSUMER_STATUS", 1, "no members")
    assert set(reset(cluster, "dry_steps", 0, True).before.values()) == {None}
    assert len(got) == 10


def test_looking_without_force_names_only_what_would_go_back(codec: Any) -> None:
    cluster = make(codec)
    push = cluster.client().push("audit", TOPIC, start="first")
    cluster.world.advance(10)
    with push.driver.enter():
        push.engine.close(1.0)
    cluster.world.run()
    back = reset(cluster, "dry_steps", 0, False, False)
    assert set(back.offsets.values()) == {0}
    assert set(back.before.values()) == {5}
    assert reset(cluster, "dry_steps", -1, False, False).offsets == {}


def test_an_old_broker_without_members_is_told_where_to_go_back_to(codec: Any) -> None:
    cluster = make(codec, server_side_reset=False)
    push = cluster.client().push("audit", TOPIC, start="first")
    cluster.world.advance(10)
    with push.driver.enter():
        push.engine.close(1.0)
    cluster.world.run()
    assert set(reset(cluster, "clustering_steps", 0, False).offsets.values()) == {0}
    assert cluster.broker.offsets.stored["audit", TOPIC, 0] == 0
    cluster.broker.offsets.stored["audit", TOPIC, 0] = 3
    cluster.control.answer("INVOKE_BROKER_TO_RESET_OFFSET", 1, "no")
    with pytest.raises(RemoteError):
        reset(cluster, "clustering_steps", 0, False)


def test_an_old_broker_that_refuses_for_another_reason(codec: Any, tmp_path: Path) -> None:
    cluster = make(codec, server_side_reset=False)
    listen(cluster, tmp_path)
    cluster.control.answer("INVOKE_BROKER_TO_RESET_OFFSET", 206, "Consumer not online")
    with pytest.raises(RemoteError, match="not online"):
        reset(cluster)


def test_clustering_by_222(codec: Any) -> None:
    cluster = make(codec)
    cluster.client().push("audit", TOPIC, start="first")
    cluster.world.advance(10)
    assert set(reset(cluster, "clustering_steps", 0, True).offsets.values()) == {0}


def test_without_the_right_to_read_the_form_it_goes_both_ways_and_counts_once(codec: Any, tmp_path: Path) -> None:
    for settings in ({}, {"server_side_reset": False, "mqcloud_patch": True}):
        cluster = make(codec, **settings)
        members = [listen(cluster, tmp_path / str(len(settings))) for _ in range(2)]
        cluster.control.answer("GET_BROKER_CONFIG", 16, "no permission")
        report = reset(cluster)
        assert set(report.members.values()) == {"moved"}
        cluster.world.advance(40)  # until the held pulls have come back with what the broker left for them
        assert [len(got) for _, got in members] == [20, 20]
        assert all(push.member.corrected == 0 for push, _ in members)


def test_the_old_form_for_a_moment_moves_members_of_every_make(codec: Any, tmp_path: Path) -> None:
    cluster = make(codec)
    _, got = listen(cluster, tmp_path)
    report = reset(cluster, "broadcasting_steps", 0, True)
    assert len(got) == 20
    assert set(report.members.values()) == {"asked"}
    assert cluster.broker.broker.setting("useServerSideResetOffset")
    cluster.control.answer("INVOKE_BROKER_TO_RESET_OFFSET", 206, "Consumer not online")
    with pytest.raises(RemoteError, match="not online"):
        reset(cluster, "broadcasting_steps", 0, True)
    assert cluster.broker.broker.setting("useServerSideResetOffset")


def test_members_with_credentials_are_reached_by_who_has_the_same(codec: Any, tmp_path: Path) -> None:
    cluster = make(codec)
    push, got = listen(cluster, tmp_path, auth=acl("key", "secret"))
    own = push.member.client.client_id
    assert "not signed" in reset(cluster).members[own]
    assert reset(cluster, auth=acl("key", "secret")).members == {own: "moved"}
    assert len(got) == 20


@pytest.mark.parametrize("server_side", [True, False])
def test_without_force_no_queue_goes_forward(codec: Any, server_side: bool) -> None:
    cluster = make(codec, server_side_reset=server_side)
    cluster.client().push("audit", TOPIC, start="first")
    cluster.world.advance(10)
    one, two = (("audit", TOPIC, number) for number in (0, 1))
    stored = cluster.broker.offsets.stored
    assert (stored[one], stored[two]) == (5, 5)
    assert reset(cluster, "clustering_steps", -1, False).offsets == {}
    report = reset(cluster, "clustering_steps", 0, False)
    assert set(report.offsets.values()) == {0}
    assert len(report.offsets) == 2


def test_a_group_without_members_is_reset_in_the_old_form_too(codec: Any) -> None:
    cluster = make(codec, server_side_reset=False)
    push = cluster.client().push("audit", TOPIC, start="first")
    cluster.world.advance(10)
    push.close()
    assert set(reset(cluster, "clustering_steps", 0, True).offsets.values()) == {0}
    assert cluster.broker.offsets.stored["audit", TOPIC, 0] == 0
