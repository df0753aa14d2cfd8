"""What a producer refuses or slows down by itself."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError, LinkError
from mqclient.rocketmq.codes import BrokerError
from mqclient.rocketmq.model import CircuitOpenError, Message, QueueFullError
from mqclient.rocketmq.remoting.guards import Guards
from mqclient.rocketmq.remoting.many import plan, results
from mqclient.rocketmq.remoting.producer import ProducerEngine
from mqclient.rocketmq.remoting.producer_options import ProducerOptions
from tests.unit.rocketmq.remoting.cluster import VirtualClient, VirtualCluster


def guards(**options: Any) -> Guards:
    return Guards(ProducerOptions(**options))


def test_the_pace_is_kept_after_a_burst() -> None:
    guard = guards(rate_limit=100)
    pauses = [guard.enter(1, 50.0, 60.0) for _ in range(30)]
    assert pauses[:10] == [0.0] * 10
    assert pauses[29] == pytest.approx(0.19)
    assert guard.enter(1, 55.0, 60.0) == 0.0
    guard.enter(1000, 55.0, 60.0)
    with pytest.raises(QueueFullError, match="rate_limit=100"):
        guard.enter(1, 55.0, 60.0)


def test_the_breaker_opens_pauses_and_lets_one_try() -> None:
    guard = guards(breaker_failures=2, breaker_pause=5.0)
    guard.told(LinkError("lost"), 0.0)
    guard.told(None, 0.0)
    guard.told(LinkError("lost"), 0.0)
    guard.told(ConfigError("not the broker's fault"), 0.0)
    guard.told(LinkError("lost"), 1.0)
    with pytest.raises(CircuitOpenError, match=r"last 2 sends failed.* 5\.0 s"):
        guard.enter(1, 1.0, 9.0)
    assert guard.enter(1, 6.0, 9.0) == 0.0
    with pytest.raises(CircuitOpenError):  # another one while the first tries
        guard.enter(1, 6.0, 9.0)
    guard.told(LinkError("lost"), 6.0)
    with pytest.raises(CircuitOpenError):
        guard.enter(1, 10.0, 19.0)
    guard.enter(1, 11.0, 19.0)
    guard.told(BrokerError(13, "too large"), 11.0)  # it answers, so it is there
    guard.enter(1, 11.0, 19.0)
    assert not guards().needed


def engine_of(client: VirtualClient, **options: Any) -> ProducerEngine:
    with client.driver.enter():
        return ProducerEngine(client.engine, "producers", ProducerOptions(**options))


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    return cluster


def test_every_way_of_sending_keeps_the_pace(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine = engine_of(client, rate_limit=10)
    before = cluster.world.mono
    assert all(receipt.ok for receipt in client.produce(*[Message("orders", b"x")] * 11))
    assert cluster.world.mono - before == pytest.approx(0.9)
    chains = plan(engine, [Message("orders", b"x")] * 10, None)
    with client.driver.enter():
        many = engine.submit_many(chains, None)
        oneway = engine.submit_oneway(engine.prepare(Message("orders", b"x")))
        assert engine.submit(engine.prepare(Message("orders", b"x"))) is None
    late = engine.submit_late(engine.prepare(Message("orders", b"x")))
    client.driver.wait(oneway)
    assert all(one.ok for one in results(client.driver.wait(many)))
    assert late.result(5).ok
    assert cluster.world.mono - before == pytest.approx(2.2, abs=0.2)


def test_an_open_breaker_refuses_at_once(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine = engine_of(client, breaker_failures=1, attempts=1)
    cluster.control.answer("SEND_MESSAGE_V2", 2, "busy")
    client.produce(Message("orders", b"x"))
    prepared = engine.prepare(Message("orders", b"x"))
    with pytest.raises(CircuitOpenError), client.driver.enter():
        engine.send(prepared, None)
    with pytest.raises(CircuitOpenError), client.driver.enter():
        engine.submit(prepared)
    assert engine.budget.items == 0
    cluster.world.advance(6)
    assert client.produce(Message("orders", b"x"))[0].ok
