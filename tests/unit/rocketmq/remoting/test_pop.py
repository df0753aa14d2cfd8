"""Pop consumption: asked for only while somebody waits, lent for a while, given back."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from mqclient.core.slot import Wake
from mqclient.core.steps import Steps, run_steps
from mqclient.errors import ClosedError, ConfigError, RemoteError
from mqclient.rocketmq.remoting.pop import PopEngine, PopOptions, Popped, pop_options
from tests.unit.rocketmq.remoting.cluster import VirtualClient, VirtualCluster


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("jobs", 2)
    return cluster


class Pop:
    """A consumer that was started."""

    def __init__(self, cluster: VirtualCluster, **options: Any) -> None:
        self.world = cluster.world
        self.client: VirtualClient = cluster.client()
        with self.client.driver.enter():
            self.engine = PopEngine(self.client.engine, "g", "jobs", PopOptions(**options))
            self.engine.start()
        self.world.run()

    def take(self, limit: int = 99) -> list[Popped]:
        with self.client.driver.enter():
            return self.engine.take(limit)

    def wait(self) -> Wake:
        with self.client.driver.enter():
            wake = self.engine.wait()
        self.world.run()
        return wake

    def do(self, steps: Steps[Any]) -> Any:
        with self.client.driver.enter():
            slot = run_steps(steps)
        return self.client.driver.wait(slot)

    def receive(self, limit: int = 99) -> list[Popped]:
        self.world.until(lambda: self.wait().done)
        return self.take(limit)


def test_nothing_is_asked_for_until_somebody_waits(cluster: VirtualCluster) -> None:
    pop = Pop(cluster)
    cluster.fill("jobs", 3)
    cluster.world.advance(60)
    assert cluster.control.count("POP_MESSAGE") == 0
    messages = pop.receive(4) + pop.take()
    assert sorted(message.body for message in messages) == [b"0-0", b"0-1", b"0-2", b"1-0", b"1-1", b"1-2"]
    pop.do(pop.engine.ack_steps(messages))
    cluster.world.advance(120)
    assert pop.take() == []
    assert cluster.control.count("POP_MESSAGE") == 1


def test_one_question_at_a_time_as_long_as_somebody_waits(cluster: VirtualCluster) -> None:
    pop = Pop(cluster)
    wakes = [pop.wait() for _ in range(3)]
    assert pop.engine.diagnose()["asked"] == ["broker-a"]
    cluster.world.advance(40)
    asked = cluster.control.count("POP_MESSAGE")
    assert asked == 3  # 15 s each
    with pop.client.driver.enter():
        for wake in wakes:
            pop.engine.waiters.leave(wake)
    cluster.world.advance(60)
    assert cluster.control.count("POP_MESSAGE") == asked
    assert pop.engine.diagnose()["asked"] == []


def test_what_nobody_took_in_time_is_left_to_others(cluster: VirtualCluster) -> None:
    pop = Pop(cluster, invisible=10.0)
    cluster.fill("jobs", 1)
    pop.wait()
    cluster.world.advance(11)
    assert pop.take() == []
    assert pop.engine.expired == 2
    assert len(pop.receive()) > 0  # they come again


def test_its_time_is_changed(cluster: VirtualCluster) -> None:
    pop = Pop(cluster, invisible=10.0)
    cluster.fill("jobs", 1)
    one, two = pop.receive()
    cluster.world.advance(0.1)
    kept = pop.do(pop.engine.change_steps(one, 300.0))
    soon = pop.do(pop.engine.change_steps(two, 1.0))
    assert (kept.body, kept.expires_ms > one.expires_ms, soon.expires_ms < two.expires_ms) == (one.body, True, True)
    cluster.world.advance(12)
    (again,) = pop.receive()
    assert (again.body, again.attempts, again.topic) == (two.body, 1, "jobs")
    pop.do(pop.engine.ack_steps(again))
    pop.do(pop.engine.ack_steps([kept]))
    with pytest.raises(ConfigError, match="12 hours at most"):
        pop.do(pop.engine.change_steps(one, 0))


@pytest.mark.parametrize("wrong", [None, "x", 5, [1]])
def test_what_was_not_received_is_named(cluster: VirtualCluster, wrong: Any) -> None:
    pop = Pop(cluster)
    with pytest.raises(TypeError, match="what a pop consumer received is acknowledged, not"):
        pop.do(pop.engine.ack_steps(wrong))
    with pytest.raises(TypeError, match="what a pop consumer received is acknowledged, not"):
        pop.do(pop.engine.change_steps(wrong, 1.0))


def test_brokers_that_refuse_are_told_once_and_asked_again(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    pop = Pop(cluster)
    cluster.fill("jobs", 1)
    cluster.control.answer("POP_MESSAGE", 16, "no permission", times=3)
    wake = pop.wait()
    cluster.world.advance(10)
    assert wake.done
    assert sum("cannot pop jobs of broker-a" in record.getMessage() for record in caplog.records) == 1
    messages = pop.take()
    cluster.control.answer("ACK_MESSAGE", 16, "no permission")
    with pytest.raises(RemoteError, match="no permission"):
        pop.do(pop.engine.ack_steps(messages))


def test_a_tag_that_only_has_the_same_hash_is_passed_over(cluster: VirtualCluster) -> None:
    from mqclient.rocketmq.model import Message

    pop = Pop(cluster, expression="Aa")
    pop.client.produce(Message("jobs", b"other", tag="BB"), Message("jobs", b"wanted", tag="Aa"))
    cluster.world.until(lambda: bool(pop.wait().done))
    cluster.world.advance(1)
    assert [message.body for message in pop.take()] == [b"wanted"]
    assert cluster.control.count("ACK_MESSAGE") == 1


def test_at_the_end_others_get_what_nobody_took(cluster: VirtualCluster) -> None:
    pop, late = Pop(cluster), Pop(cluster)
    late.wait()
    with late.client.driver.enter():
        late.engine.close()
    cluster.fill("jobs", 1)
    pop.wait()
    cluster.world.advance(1)
    with pop.client.driver.enter():
        wake = pop.engine.wait()
        slots = [pop.engine.close(), pop.engine.close()]
    cluster.world.advance(3)
    assert wake.done
    assert all(slot.done for slot in slots)
    for call in (pop.take, pop.wait):
        with pytest.raises(ClosedError):
            call()
    other = Pop(cluster)
    got = other.receive()
    cluster.world.advance(3)
    assert len(got) + len(other.take()) == 2
    assert pop.client.engine.unjoined == []


def test_options_and_copies() -> None:
    for wrong in ({"invisible": 1.0}, {"batch": 33}, {"start": "middle"}):
        with pytest.raises(ConfigError):
            PopOptions(**wrong)
    with pytest.raises(ConfigError, match="did you mean 'batch'"):
        pop_options({"bacth": 1})
    handle: Any = type("H", (), {"expires_ms": 5})()
    popped = copy.copy(Popped(type("M", (), {"body": b"x", "__repr__": lambda self: "M"})(), handle))
    assert (popped.body, repr(popped)) == (b"x", "Popped(M, expires_ms=5)")


def test_the_client_ends_it(cluster: VirtualCluster) -> None:
    pop = Pop(cluster)
    wake = pop.wait()
    with pop.client.driver.enter():
        slot = pop.client.engine.shutdown()
    cluster.world.result(slot)
    assert isinstance(wake.error, ClosedError)
