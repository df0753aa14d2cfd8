"""Faults happen as often as asked, to whom asked; the clock moves what waits for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mqclient import pulsar
from mqclient.broker import EmbeddedBroker
from mqclient.broker.control import Clock, Control
from mqclient.rocketmq.codes import Request
from tests.unit.broker.remoting.raw import Raw


def test_faults_come_in_order_and_end() -> None:
    control = Control(Clock())
    control.answer("PULL", 7, "no")
    control.drop("PULL", times=2)
    found = [control.fault("PULL", "a:1") for _ in range(4)]
    assert [fault and fault.action for fault in found] == ["answer", "drop", "drop", None]
    assert control.count("PULL") == 4
    assert control.count("SEND") == 0


def test_some_are_let_through_first_and_others_are_not_meant() -> None:
    control = Control(Clock())
    control.delay("PULL", 1.0, skip=1, peer="a:1")
    assert control.fault("PULL", "b:2") is None
    assert control.fault("PULL", "a:1") is None
    fault = control.fault("PULL", "a:1")
    assert fault is not None
    assert (fault.action, fault.seconds) == ("delay", 1.0)


def test_chances_are_the_same_by_the_same_seed_whatever_else_is_asked_for() -> None:
    def drops(seed: int, others: int) -> list[int]:
        control = Control(Clock(), seed)
        fault = control.drop("PULL", times=30, chance=0.3)
        other = control.cut("SEND", times=1000, chance=0.5)
        for _ in range(others):
            control.fault("SEND", "")
        assert other.seen == others
        met = [number for number in range(1000) if control.fault("PULL", "") is fault]
        assert (len(met), fault.left) == (30, 0)
        return met

    assert drops(7, 0) == drops(7, 5) != drops(8, 0)
    assert 60 < drops(7, 0)[-1] < 200


def test_two_faults_of_one_kind_have_chances_of_their_own() -> None:
    control = Control(Clock(), 7)
    first, second = (control.drop("PULL", times=20, chance=0.5, peer=peer) for peer in ("a", "b"))
    met = [[control.fault("PULL", peer) is fault for _ in range(20)] for peer, fault in (("a", first), ("b", second))]
    assert met[0] != met[1]


def test_clear_ends_all() -> None:
    control = Control(Clock())
    control.cut("PULL", times=9)
    control.cut("PULL", after=True)
    control.clear()
    assert control.fault("PULL", "") is None


def test_the_clock_without_a_loop_moves_what_waits() -> None:
    clock = Clock()
    control, called = Control(clock), []
    clock.after(10, lambda: called.append("ten"))
    clock.after(5, lambda: called.append("five"))
    clock.after(6, lambda: called.append("never")).cancel()
    before = clock.wall_ms()
    control.move_clock(7)
    assert called == ["five"]
    control.move_clock(4)
    assert called == ["five", "ten"]
    assert clock.wall_ms() - before >= 11_000
    with pytest.raises(RuntimeError, match="not running"):
        control.call(print)


def test_the_clock_on_a_loop_wakes_by_itself() -> None:
    async def scenario() -> list[str]:
        clock, called = Clock(), []
        clock.attach(asyncio.get_running_loop())
        clock.after(0.02, lambda: called.append("later"))
        clock.after(0.01, lambda: called.append("sooner"))
        await asyncio.sleep(0.1)
        return called

    assert asyncio.run(scenario()) == ["sooner", "later"]


def test_a_running_brokers_clock_and_state_are_reached_from_any_thread(codec: Any) -> None:
    with EmbeddedBroker(doors=["rocketmq"], impl=codec) as broker:
        called: list[int] = []
        broker.control.call(broker.house.clock.after, 60, lambda: called.append(1))
        broker.control.move_clock(61)
        assert called == [1]


def test_a_broker_hands_its_seed_to_its_faults(codec: Any) -> None:
    found = []
    for seed in (3, 3, 4):
        with EmbeddedBroker(doors=["rocketmq"], impl=codec, seed=seed) as broker:
            broker.control.answer("GET_BROKER_CONFIG", 2, "busy", times=99, chance=0.5)
            with Raw(codec.remoting, broker.addresses()["broker-a"]) as raw:
                found.append([raw.answer(raw.tell(Request.GET_BROKER_CONFIG)).code for _ in range(40)])
    assert found[0] == found[1] != found[2]
    assert set(found[0]) == {0, 2}


def test_a_pause(codec: Any) -> None:
    with EmbeddedBroker(impl=codec) as broker, Raw(codec.remoting, broker.addresses()["broker-a"]) as raw:
        with broker.control.pause():
            opaque = raw.tell(Request.GET_BROKER_CONFIG)
            with pytest.raises(TimeoutError):
                raw.answer(opaque, 0.1)
            with Raw(codec.remoting, broker.addresses()["broker-a"]) as other:
                asked = other.tell(Request.GET_BROKER_CONFIG)
                with pytest.raises(TimeoutError):
                    other.answer(asked, 0.1)
        assert raw.answer(opaque).code == 0


def test_a_broker_that_is_paused_can_be_stopped(codec: Any) -> None:
    with EmbeddedBroker(doors=["rocketmq"], impl=codec) as broker, broker.control.pause():
        broker.stop()
    with pytest.raises(RuntimeError, match="not running"), EmbeddedBroker(impl=codec).control.pause():
        pass


def test_a_topic_is_unloaded(codec: Any) -> None:
    with (
        EmbeddedBroker(impl=codec) as broker,
        pulsar.Client(broker.pulsar_url) as client,
        client.consumer("t", "s") as consumer,
    ):
        subscribed = broker.control.count("SUBSCRIBE")
        broker.control.unload("t")
        with client.producer("t") as producer:
            producer.send(b"x")
        assert consumer.receive(20).body == b"x"
        assert broker.control.count("SUBSCRIBE") == subscribed + 1
