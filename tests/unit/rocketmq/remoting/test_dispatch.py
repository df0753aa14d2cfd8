"""What both ways of calling a handler share: what it returns, who is stuck, which messages bear witness."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.broker.remoting.state import Incoming
from mqclient.rocketmq.remoting.dispatch import Dispatch
from mqclient.rocketmq.remoting.handling import Retry
from mqclient.rocketmq.remoting.push_options import PushOptions
from tests.unit.rocketmq.remoting.cluster import VirtualCluster


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    return cluster


def said(caplog: pytest.LogCaptureFixture, text: str) -> int:
    return sum(text in record.getMessage() for record in caplog.records)


def test_a_returned_value_means_nothing_and_is_told_once(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.fill("orders", 3)
    cluster.client().push("g", "orders", lambda messages: False, start="first", batch=1)
    cluster.world.advance(6)
    assert said(caplog, "the handler returned bool, which means nothing") == 1
    assert cluster.broker.offsets.stored["g", "orders", 0] == 3


def test_a_stuck_handler_is_told_once_and_shown_with_its_place(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    class Never:
        def __await__(self) -> Any:
            yield

    client = cluster.client()

    def handle(messages: Any) -> None:
        """As long as it runs, the world goes on for a while."""
        cluster.world.mono += 12
        with client.driver.enter() as now:
            work._look_for_stuck(now)
            work._look_for_stuck(now)
            states.append(push.engine.diagnose())

    states: list[dict[str, Any]] = []
    push = client.push("g", "orders", handle, start="first", stuck_after=10.0)
    work: Any = push.engine._work
    assert push.engine.diagnose()["oldest"] is None
    cluster.fill("orders", 2)
    cluster.world.run()
    assert said(caplog, "a handler runs for 12 s on 1 messages") + said(caplog, "a handler runs for 12 s on 2") == 1
    oldest = states[0]["oldest"]
    assert (oldest["offset"], oldest["seconds"], oldest["queue"].topic) == (0, 12.0, "orders")
    assert any(line.endswith("in handle") and "test_dispatch.py" in line for line in oldest["stack"])


def test_the_watch_ends_with_the_consumer(cluster: VirtualCluster) -> None:
    push = cluster.client().push("g", "orders", stuck_after=2.0)
    cluster.world.advance(5)
    push.close()
    work: Any = push.engine._work
    assert work._look is None
    quiet = cluster.client().push("quiet", "orders", stuck_after=None)
    assert quiet.engine._work._look is None


def test_what_was_consumed_bears_witness_of_its_time(cluster: VirtualCluster, tmp_path: Any) -> None:
    push = cluster.client(offset_dir=str(tmp_path)).push("g", "orders", model="broadcasting", start="first")
    cluster.fill("orders", 3)
    cluster.world.advance(1)
    (witness,) = push.member.offsets._witnesses.values()
    assert witness == (2, cluster.broker.broker.topics["orders"].queues[0].log.time(2))


def test_each_way_does_the_rest_in_its_own_manner(cluster: VirtualCluster) -> None:
    member = cluster.client().push("g", "orders").member
    with member.client.driver.enter():
        plain = Dispatch(member, print, PushOptions(stuck_after=None))
        plain.on_granted(None)  # type: ignore[arg-type]
        plain.on_revoked(None)  # type: ignore[arg-type]
        for call in (plain.on_resumed, plain.quiet):
            with pytest.raises(NotImplementedError):
                call(None)  # type: ignore[arg-type]
        with pytest.raises(NotImplementedError):
            plain.on_batch(None, [])  # type: ignore[arg-type]


def test_retries_that_are_too_old_and_failures_are_told(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    topic = cluster.broker.broker.make_topic("%RETRY%g", 1)
    for born in (5, 20, 30, 6, 40, 7):
        cluster.broker.broker.store(Incoming(topic.name, 0, b"%d" % born, b"", born_at=born, attempts=1))
    seen: list[bytes] = []

    def handle(messages: Any) -> None:
        seen.extend(one.body for one in messages)
        if b"40" in seen and len(messages) == 1:
            raise Retry(messages, level=-1)

    with caplog.at_level("INFO", "mqclient.remoting"):
        push = cluster.client().push("g", "orders", handle, start="first", skip_retries_before=10, rate=100.0)
        cluster.world.advance(6)
        work: Any = push.engine._work
        work.clear()
        push.close()
    assert sorted(seen) == [b"20", b"30", b"40"]
    assert cluster.broker.offsets.stored["g", "%RETRY%g", 0] == 6
    assert said(caplog, "skipped 3 retries that were born too early") == 1
    assert said(caplog, "the handler failed on 1 messages") == 1
    assert (push.engine.handled, push.engine.failed) == (2, 1)


def test_what_is_consumed_is_traced_and_told(cluster: VirtualCluster) -> None:
    told: list[Any] = []

    class Meter:
        def after_consume(self, consumed: Any) -> None:
            told.append(consumed)

    client = cluster.client()
    push = client.push("g", "orders", start="first", message_trace=True, hooks=(Meter(),))
    cluster.fill("orders", 2)
    cluster.world.advance(2)
    assert [(one.topic, one.group, one.error) for one in told] == [("orders", "g", None)] * len(told)
    assert sum(len(one.messages) for one in told) == 2
    work: Any = push.engine._work
    with client.driver.enter():
        work.abandon()
    assert not work.running
