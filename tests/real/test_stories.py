"""The stories on real brokers of each generation: told with the Java client of their time, then with ours, repaired.

4.9.7 is the stories' own generation, 5.5.0 today's, `patched` today's with the operator's two changes of story 3.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mqclient import rocketmq
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.bodies import offset_table, read_body, write_body
from tests.real import story_peers
from tests.real.fixtures import ON_ROCKETMQ, REAL_GENERATIONS
from tests.real.rocketmq import RealRocketMQ
from tests.real.slow_door import SlowHeartbeats
from tests.support.proxy import CuttingProxy
from tests.support.seen import Seen, unique

pytestmark = ON_ROCKETMQ
on_each = pytest.mark.parametrize("generation", REAL_GENERATIONS, indirect=True, scope="session")
of_their_time = pytest.mark.parametrize("generation", REAL_GENERATIONS[:1], indirect=True, scope="session")
COUNT = 20
LATE = 0.5
"""Heartbeats that come so late make pulls overtake them: what load does now and then happens each time."""


def eventually(holds: Callable[[], bool], within: float = 40.0) -> None:
    until = time.monotonic() + within
    while not holds():
        assert time.monotonic() < until, "not so in time"
        time.sleep(0.02)


@pytest.fixture(name="client")
def client_fixture(generation: RealRocketMQ) -> Iterator[rocketmq.Client]:
    with rocketmq.Client(generation.name_server) as client:
        yield client


@pytest.fixture(name="topic")
def topic_fixture(generation: RealRocketMQ, client: rocketmq.Client) -> str:
    """Four queues, on one broker or two."""
    topic = unique("story")
    with client.admin() as admin:
        admin.create_topic(topic, queues=4 // len(generation.brokers))
    return topic


def queues(cluster: RealRocketMQ, topic: str) -> list[MessageQueue]:
    names = [jvm.name for jvm in cluster.brokers]
    return [MessageQueue(topic, name, number) for name in names for number in range(4 // len(names))]


def fill(client: rocketmq.Client, cluster: RealRocketMQ, topic: str, start: int = 0) -> list[bytes]:
    """As many messages into each queue."""
    bodies = [b"%04d" % number for number in range(start, start + COUNT)]
    places = queues(cluster, topic)
    with client.producer(unique("p")) as producer:
        for index, body in enumerate(bodies):
            assert producer.send(rocketmq.Message(topic, body), queue=places[index % len(places)]).ok
    return bodies


# ---- story 1: code 25 at every start


@on_each
def test_story_1_code_25_at_the_start(
    generation: RealRocketMQ, client: rocketmq.Client, topic: str, tmp_path: Path
) -> None:
    bodies = fill(client, generation, topic)
    with SlowHeartbeats(generation.name_server, LATE) as door:
        with story_peers.member(tmp_path / "java", door.name_server, unique("g"), topic) as member:
            eventually(lambda: len(member.consumed()) >= COUNT)
            log = member.logged()
        assert "execute the pull request exception" in log
        assert "CODE: 25  DESC: the consumer's subscription not latest" in log
        seen = Seen()
        with rocketmq.Client(door.name_server, route_interval=1.0) as ours:
            consumer = ours.push_consumer(unique("g"), topic, seen, start="first")
            eventually(lambda: sorted(seen.bodies) == bodies)
            assert consumer.diagnose()["code_25"] == 0


@on_each
def test_members_come_and_go_without_code_25(generation: RealRocketMQ, client: rocketmq.Client, topic: str) -> None:
    group, seen = unique("g"), Seen()
    others = [rocketmq.Client(generation.name_server) for _ in range(2)]
    members = [client.push_consumer(group, topic, seen, start="first")]
    eventually(partial(_shared, members, topic, [4]))
    assert members[0].diagnose()["code_25"] == 0
    for other, shares in zip(others, ([2, 2], [1, 1, 2]), strict=True):
        members.append(other.push_consumer(group, topic, seen, start="first"))
        eventually(partial(_shared, members, topic, shares))
    bodies = fill(client, generation, topic)
    eventually(lambda: set(bodies) <= set(seen.bodies))
    states = [member.diagnose() for member in members]
    members.pop().close()
    eventually(partial(_shared, members, topic, [2, 2]))
    states += [member.diagnose() for member in members]
    for member in members:
        member.close()
    for other in others:
        other.close()
    # A real broker that gets two members' beats at one moment may keep the older version: it looks, then puts. Then
    # each pull of the newer one is refused once, and the beat that follows cures it.
    assert all(state["code_25"] <= 4 for state in states)


def _shared(members: list[Any], topic: str, shares: list[int]) -> bool:
    """Whether the members own so many queues each, smallest share first."""
    return sorted(sum(queue.topic == topic for queue in member.queues) for member in members) == shares


# ---- story 2: equal client ids


@of_their_time
def test_story_2_equal_ids_share_nothing(
    generation: RealRocketMQ, client: rocketmq.Client, topic: str, tmp_path: Path
) -> None:
    group, server = unique("twins"), generation.name_server
    with (
        story_peers.member(tmp_path / "one" / "same", server, group, topic) as one,
        story_peers.member(tmp_path / "two" / "same", server, group, topic) as two,
    ):
        half = ["[broker-a:0, broker-a:1]"]
        eventually(lambda: one.said("owns")[-1:] == two.said("owns")[-1:] == half)
        bodies = [body.decode() for body in fill(client, generation, topic)]
        twice = sorted(body for number, body in enumerate(bodies) if number % 4 < 2)
        eventually(lambda: sorted(one.consumed()) == sorted(two.consumed()) == twice)


@on_each
def test_equal_ids_are_named(
    generation: RealRocketMQ, client: rocketmq.Client, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    group, same = unique("twins"), unique("same@1")
    twins = [rocketmq.Client(generation.name_server, client_id=same) for _ in range(2)]
    seen = [Seen(), Seen()]
    with caplog.at_level(logging.WARNING, "mqclient.remoting"):
        members = [twin.push_consumer(group, topic, one, start="first") for twin, one in zip(twins, seen, strict=True)]
        eventually(lambda: all(member.diagnose()["equal_id_seen"] for member in members), 30)
    told = [record.getMessage() for record in caplog.records if "another client has our id" in record.getMessage()]
    assert len(told) == 2
    eventually(partial(_shared, members, topic, [2, 2]))
    shares = [[queue for queue in member.queues if queue.topic == topic] for member in members]
    assert shares[0] == shares[1]
    fill(client, generation, topic)
    # The pile-up: what is owned twice is consumed twice, and the other half waits for nobody.
    eventually(lambda: [len(set(one.bodies)) for one in seen] == [COUNT // 2] * 2)
    with client.admin() as admin:
        offsets = admin.offsets(topic, group)
    waiting = {queue: (ends["max"] or 0) - (ends["committed"] or 0) for queue, ends in offsets.items()}
    assert {queue for queue, count in waiting.items() if count == COUNT // 4} >= set(offsets) - set(shares[0])
    for twin in twins:
        twin.close()


class Doors:
    """A proxy before each broker, so that the broker sees other addresses than ours."""

    def __init__(self) -> None:
        self.proxies: dict[str, CuttingProxy] = {}
        self.sent = bytearray()

    def to(self, address: str) -> str:
        proxy = self.proxies.get(address)
        if proxy is None:
            host, _, port = address.rpartition(":")
            proxy = self.proxies[address] = CuttingProxy((host, int(port)))
            proxy.tap = self.sent.extend
        return str(proxy.address)

    def looks(self) -> int:
        """How often somebody asked who is connected."""
        return self.sent.count(b'"code":%d,' % Request.GET_CONSUMER_CONNECTION_LIST)


@on_each
def test_a_black_hole_of_our_own_names_nobody(
    generation: RealRocketMQ, client: rocketmq.Client, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    doors, seen = Doors(), Seen()
    impatient: dict[str, Any] = {"request_timeout": 1.0, "heartbeat_interval": 1.0, "rebalance_interval": 0.5}
    fill(client, generation, topic)
    with (
        caplog.at_level(logging.INFO, "mqclient.remoting"),
        rocketmq.Client(generation.name_server, rewrite_address=doors.to, **impatient) as ours,
    ):
        consumer = ours.push_consumer(unique("hole"), topic, seen, start="first")
        eventually(lambda: len(seen.bodies) == COUNT)
        for proxy in doors.proxies.values():
            proxy.lose()
        eventually(lambda: doors.looks() >= 4)  # our id is there twice, and was looked at
        assert not consumer.diagnose()["equal_id_seen"]
    assert "gave up the connection" in caplog.text
    assert "another client has our id" not in caplog.text
    for proxy in doors.proxies.values():
        proxy.close()


# ---- story 3: a broadcasting group cannot be reset, and may be stuck for ever


@on_each
def test_story_3_members_of_that_time_do_not_move(
    generation: RealRocketMQ, client: rocketmq.Client, topic: str, tmp_path: Path
) -> None:
    group, server = unique("audit"), generation.name_server
    fill(client, generation, topic)
    with (
        story_peers.member(tmp_path / "one", server, group, topic, "BROADCASTING") as one,
        story_peers.member(tmp_path / "two", server, group, topic, "BROADCASTING") as two,
    ):
        eventually(lambda: len(one.consumed()) == len(two.consumed()) == COUNT)
        eventually(lambda: all(list(peer.home.glob("offsets/*/*/offsets.json")) for peer in (one, two)))
        with story_peers.reset(tmp_path / "operator", server, group, topic) as operator:
            eventually(lambda: bool(operator.said("moved") or operator.said("refused")))
            moved, refused = operator.said("moved"), operator.said("refused")
        if generation.version == "4.9.7":
            assert refused == [f"CODE: 1  DESC: THe consumer group <{group}> not exist"]
        elif not generation.server_side_reset:
            _told_and_not_moved([one, two], group)
            assert moved == ["4"]
        else:
            _one_notice_for_whoever_pulls_first(client, generation, topic, [one, two])
            assert moved == ["4"]


def _resumed(member: story_peers.StoryPeer, group: str) -> bool:
    return f"resume this consumer, {group}" in member.logged()


def _told_and_not_moved(members: list[story_peers.StoryPeer], group: str) -> None:
    """The push came; the offset in memory was set, neither persisted nor removed, and the file was read again."""
    for member in members:
        eventually(partial(_resumed, member, group))
        told = member.logged().partition("invoke reset offset operation from broker")[2]
        assert told.count("is dropped") >= 4
        assert told.count(f"nextOffset={COUNT // 4}") >= 4
        assert "nextOffset=0" not in told
        assert len(member.consumed()) == COUNT


def _one_notice_for_whoever_pulls_first(
    client: rocketmq.Client, cluster: RealRocketMQ, topic: str, members: list[story_peers.StoryPeer]
) -> None:
    """The server-side form tells nobody; of the two, at most one sees a queue again."""
    late = {body.decode() for body in fill(client, cluster, topic, COUNT)}
    eventually(lambda: any(late <= set(member.consumed()) for member in members))
    again = [len(member.consumed()) - len(set(member.consumed())) for member in members]
    assert sum(again) <= COUNT, "both moved, and that would be no story"
    assert all("invoke reset offset operation from broker" not in member.logged() for member in members)


@on_each
def test_a_broadcasting_reset_moves_every_member(
    generation: RealRocketMQ, client: rocketmq.Client, topic: str, tmp_path: Path
) -> None:
    group, folder = unique("audit"), str(tmp_path)
    bodies = fill(client, generation, topic)
    clients = [rocketmq.Client(generation.name_server, offset_dir=folder) for _ in range(2)]
    seen = [Seen(), Seen()]
    for member, handler in zip(clients, seen, strict=True):
        member.push_consumer(group, topic, handler, model="broadcasting", start="first")
    eventually(lambda: all(len(handler.bodies) == COUNT for handler in seen))
    with client.admin() as admin:
        report = admin.reset_offset(group, topic, "earliest", model="broadcasting")
    status = "moved" if generation.server_side_reset else "asked"
    assert report.members == {member.client_id: status for member in clients}
    assert report.offsets == dict.fromkeys(queues(generation, topic), 0)
    eventually(lambda: all(sorted(handler.bodies) == sorted(bodies * 2) for handler in seen))
    for member in clients:
        member.close()


@on_each
def test_a_clustering_reset_moves_the_group(generation: RealRocketMQ, client: rocketmq.Client, topic: str) -> None:
    group, seen = unique("g"), Seen()
    bodies = fill(client, generation, topic)
    with client.push_consumer(group, topic, seen, start="first"):
        eventually(lambda: len(seen.bodies) == COUNT)
        with client.admin() as admin:
            eventually(lambda: all(ends["committed"] == COUNT // 4 for ends in admin.offsets(topic, group).values()))
            admin.reset_offset(group, topic, "earliest")
        more = fill(client, generation, topic, COUNT)  # wakes the pulls that are held
        eventually(lambda: sorted(seen.bodies) == sorted(bodies * 2 + more))


@on_each
def test_without_force_nothing_moves_forward(generation: RealRocketMQ, client: rocketmq.Client, topic: str) -> None:
    group, seen, each = unique("g"), Seen(), COUNT // 4
    fill(client, generation, topic)
    with client.push_consumer(group, topic, seen, start="first"):
        eventually(lambda: len(seen.bodies) == COUNT)
    fill(client, generation, topic, COUNT)

    def committed() -> set[int | None]:
        return {ends["committed"] for ends in admin.offsets(topic, group).values()}

    with client.admin() as admin:
        assert committed() == {each}
        plan = admin.reset_offset(group, topic, "latest", dry_run=True)
        assert (set(plan.before.values()), set(plan.offsets.values())) == ({each}, {2 * each})
        assert admin.reset_offset(group, topic, "latest", dry_run=True, force=False).offsets == {}
        assert admin.reset_offset(group, topic, "latest", force=False).offsets == {}
        assert committed() == {each}
        assert set(admin.reset_offset(group, topic, "earliest", force=False).offsets.values()) == {0}
        assert committed() == {0}


@pytest.mark.parametrize("generation", REAL_GENERATIONS[1:2], indirect=True, scope="session")
def test_the_old_form_for_a_moment_reaches_java_members_and_is_put_back(
    generation: RealRocketMQ, client: rocketmq.Client, topic: str, tmp_path: Path
) -> None:
    group, seen = unique("audit"), Seen()
    bodies = fill(client, generation, topic)
    with (
        story_peers.member(tmp_path / "java", generation.name_server, group, topic, "BROADCASTING") as java,
        rocketmq.Client(generation.name_server, offset_dir=str(tmp_path)) as ours,
    ):
        ours.push_consumer(group, topic, seen, model="broadcasting", start="first")
        eventually(lambda: len(java.consumed()) == len(seen.bodies) == COUNT)
        with client.admin() as admin:
            report = admin.reset_offset(group, topic, "earliest", model="broadcasting", switch_form=True)
            forms = [admin.broker_config(jvm.name)["useServerSideResetOffset"] for jvm in generation.brokers]
        assert (set(forms), report.failed) == ({"true"}, {})
        assert report.members[ours.client_id] == "asked"
        eventually(lambda: sorted(seen.bodies) == sorted(bodies * 2))
        eventually(partial(_resumed, java, group))  # it was told; that it cannot move is the story's client


@on_each
def test_a_topic_made_anew_is_consumed_from_its_beginning(
    generation: RealRocketMQ, client: rocketmq.Client, topic: str, tmp_path: Path
) -> None:
    group, seen = unique("audit"), Seen()
    fill(client, generation, topic)
    with rocketmq.Client(generation.name_server, offset_dir=str(tmp_path)) as listener, client.admin() as admin:
        listener.push_consumer(group, topic, seen, model="broadcasting", start="first")
        eventually(lambda: len(seen.bodies) == COUNT)
        listener.close()
        admin.delete_topic(topic)
        admin.create_topic(topic, queues=4 // len(generation.brokers))
        eventually(lambda: {ends["max"] for ends in admin.offsets(topic).values()} == {0})
    bodies = fill(client, generation, topic, COUNT) + fill(client, generation, topic, 2 * COUNT)
    with rocketmq.Client(generation.name_server, offset_dir=str(tmp_path)) as listener:
        listener.push_consumer(group, topic, seen, model="broadcasting")
        eventually(lambda: set(bodies) <= set(seen.bodies))


WRONG = 999999999


@of_their_time
def test_story_3_a_member_of_that_time_is_stuck_for_ever(
    generation: RealRocketMQ, client: rocketmq.Client, topic: str, tmp_path: Path
) -> None:
    group, home = unique("stuck"), tmp_path / "java"
    fill(client, generation, topic)
    path = home / "offsets" / "127.0.0.1@java" / group / "offsets.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(write_body({"offsetTable": dict.fromkeys(queues(generation, topic), WRONG)}))
    with story_peers.member(home, generation.name_server, group, topic, "BROADCASTING") as member:
        eventually(lambda: member.logged().count("the pull request offset illegal") >= 8, 60)
        assert member.consumed() == []
        assert set(offset_table(read_body(path.read_bytes())).values()) == {WRONG}


@on_each
def test_offsets_that_are_all_wrong_heal_at_once(
    generation: RealRocketMQ,
    client: rocketmq.Client,
    topic: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    group, seen = unique("stuck"), Seen()
    with rocketmq.Client(generation.name_server, offset_dir=str(tmp_path)) as listener:
        listener.push_consumer(group, topic, seen, model="broadcasting").close()
        (lock,) = tmp_path.glob(f"*/{group}/0/lock")
        path = lock.with_name("offsets.json")
        path.write_bytes(write_body({"offsetTable": dict.fromkeys(queues(generation, topic), WRONG)}))
        with caplog.at_level(logging.WARNING, "mqclient.remoting"):
            consumer = listener.push_consumer(group, topic, seen, model="broadcasting")
            eventually(lambda: consumer.diagnose()["offsets_corrected"] == 4, 10)
            bodies = fill(client, generation, topic)
            eventually(lambda: sorted(seen.bodies) == bodies)
            consumer.close()
    illegal = [record for record in caplog.records if "the pull request offset illegal" in record.getMessage()]
    assert len(illegal) == 4
    assert sum(offset_table(read_body(path.read_bytes())).values()) == COUNT
    caplog.clear()
    with rocketmq.Client(generation.name_server, offset_dir=str(tmp_path)) as again:
        consumer = again.push_consumer(group, topic, seen, model="broadcasting")
        more = fill(client, generation, topic, COUNT)
        eventually(lambda: set(more) <= set(seen.bodies))
        assert consumer.diagnose()["offsets_corrected"] == 0
    assert "the pull request offset illegal" not in caplog.text
