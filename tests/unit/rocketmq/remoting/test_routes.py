"""Routes: parsed, kept over an empty answer, told when they change, asked for once at a time."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.routes import WATCH, Route, Routes, parse_route
from tests.unit.rocketmq.remoting.cluster import VirtualCluster

BODY: dict[str, Any] = {
    "brokerDatas": [
        {"brokerName": "b", "brokerAddrs": {"1": "10.0.0.3:1"}},
        {"brokerName": "a", "brokerAddrs": {"0": "10.0.0.1:1", "1": "10.0.0.2:1"}},
    ],
    "queueDatas": [
        {"brokerName": "b", "perm": 6, "readQueueNums": 1, "writeQueueNums": 1},
        {"brokerName": "a", "perm": 6, "readQueueNums": 2, "writeQueueNums": 3},
    ],
}


def test_only_masters_are_written_to_and_all_are_read() -> None:
    route = parse_route("t", BODY)
    assert [(queue.broker_name, queue.queue_id) for queue in route.writable] == [("a", 0), ("a", 1), ("a", 2)]
    assert [(queue.broker_name, queue.queue_id) for queue in route.readable] == [("a", 0), ("a", 1), ("b", 0)]
    assert route == parse_route("t", BODY)
    assert route != "route"


def test_permissions_and_the_template() -> None:
    body = BODY | {"queueDatas": [{"brokerName": "a", "perm": 4, "readQueueNums": 8, "writeQueueNums": 8}]}
    assert parse_route("t", body).writable == []
    body = BODY | {"queueDatas": [{"brokerName": "a", "perm": 7, "readQueueNums": 8, "writeQueueNums": 8}]}
    assert len(parse_route("t", body, 4).writable) == 4


def test_addresses_of_brokers() -> None:
    routes = Routes(None, Random(1))
    routes._keep(parse_route("t", BODY))
    assert [routes.address("a"), routes.address("a", 1), routes.address("a", 9)] == [
        "10.0.0.1:1",
        "10.0.0.2:1",
        "10.0.0.1:1",
    ]
    assert (routes.address("b"), routes.address("c")) == ("10.0.0.3:1", None)
    assert routes.masters() == {"a": "10.0.0.1:1", "b": "10.0.0.3:1"}


def test_a_good_route_outlives_an_empty_one_and_changes_are_told() -> None:
    changed: list[str] = []
    routes = Routes(None, Random(1))
    routes.on_change.append(changed.append)
    routes._keep(parse_route("t", BODY))
    routes._keep(parse_route("t", {}))
    kept = routes.get("t")
    assert kept is not None
    assert len(kept.readable) == 3
    assert changed == []
    grown = BODY | {"queueDatas": [{"brokerName": "a", "perm": 6, "readQueueNums": 5, "writeQueueNums": 5}]}
    routes._keep(parse_route("t", grown))
    assert changed == ["t"]


def test_queues_in_turn_but_not_the_broker_that_failed() -> None:
    routes = Routes(None, Random(1))
    body = BODY | {"brokerDatas": [{"brokerName": name, "brokerAddrs": {"0": f"{name}:1"}} for name in "ab"]}
    route = parse_route("t", body)
    picked = [routes.pick(route, None) for _ in range(8)]
    assert len(set(picked[:4])) == 4
    assert picked[:4] == picked[4:]
    assert {routes.pick(route, "a").broker_name for _ in range(5)} == {"b"}
    only = parse_route("u", BODY)
    assert isinstance(routes.pick(only, "a"), MessageQueue)  # no other broker: better the same than none


def test_whoever_looks_at_the_turn_does_not_take_it() -> None:
    routes = Routes(None, Random(1))
    route = parse_route("t", BODY)
    turn = routes.turn(route)
    assert routes.turn(route) == routes.turns["t"] == turn
    assert routes.pick(route, None) == route.writable[(turn + 1) % len(route.writable)]
    assert routes.turn(route) == turn + 1


def test_one_question_for_all_who_ask(codec: Any) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders")
    client = cluster.client()
    with client.driver.enter():
        slots = [client.engine.routes.fetch("orders") for _ in range(3)]
    cluster.world.run()
    assert len({id(slot) for slot in slots}) == 1
    assert cluster.control.count("GET_ROUTEINFO_BY_TOPIC") == 1
    with client.driver.enter():
        client.engine.routes.refresh()
    cluster.world.run()
    assert cluster.control.count("GET_ROUTEINFO_BY_TOPIC") == 2


def test_what_cannot_be_read_or_written_is_said(codec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("sealed")
    cluster.broker.broker.topics["sealed"].perm = 4
    client = cluster.client()
    with client.driver.enter():
        slot = client.engine.routes.publish("sealed")
        gone = client.engine.routes.publish("fine")
    cluster.world.run()
    assert isinstance(slot.error, ConfigError)
    assert gone.result().writable
    cluster.control.answer("GET_ROUTEINFO_BY_TOPIC", 0)  # success without a body
    with client.driver.enter():
        broken = client.engine.routes.fetch("other")
    cluster.world.run()
    assert broken.error is not None
    monkeypatch.setattr("mqclient.rocketmq.remoting.routes.read_body", lambda body: {"brokerDatas": [{}]})
    with client.driver.enter():
        broken = client.engine.routes.fetch("sealed")
    cluster.world.run()
    assert "cannot be read" in str(broken.error)


def test_an_error_other_than_no_such_topic_does_not_ask_for_the_template(codec: Any) -> None:
    cluster = VirtualCluster(codec)
    cluster.control.answer("GET_ROUTEINFO_BY_TOPIC", 1, "not ready")
    client = cluster.client()
    with client.driver.enter():
        slot = client.engine.routes.publish("orders")
    cluster.world.run()
    assert slot.error is not None
    assert cluster.control.count("GET_ROUTEINFO_BY_TOPIC") == 1


def test_a_broker_that_was_there_is_looked_for(codec: Any) -> None:
    cluster = VirtualCluster(codec, brokers=2)
    cluster.topic("orders")
    client = cluster.client()
    with client.driver.enter():
        client.engine.routes.fetch("orders")
    cluster.world.run()
    whole = client.engine.routes.get("orders")
    assert whole is not None
    brokers = {name: dict(numbers) for name, numbers in whole.brokers.items() if name != "broker-b"}
    alone = Route("orders", brokers, whole.readable[:1], whole.writable[:1])
    asked = cluster.control.count("GET_ROUTEINFO_BY_TOPIC")
    with client.driver.enter():
        client.engine.routes._keep(alone)
    cluster.world.advance(WATCH + 0.1)
    assert client.engine.routes.get("orders") == whole
    cluster.world.advance(5)
    assert cluster.control.count("GET_ROUTEINFO_BY_TOPIC") == asked + 1  # it is back: as often as ever


def test_a_broker_that_is_gone_for_good_is_not_looked_for_for_ever(codec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders")
    client = cluster.client()
    monkeypatch.setattr("mqclient.rocketmq.remoting.routes.WATCHED", 3.0)
    with client.driver.enter():
        client.engine.routes.fetch("orders")
    cluster.world.run()
    route = client.engine.routes.get("orders")
    assert route is not None
    with client.driver.enter():
        client.engine.routes._keep(Route("orders", {**route.brokers, "gone": {0: "g:1"}}, route.readable, []))
        client.engine.routes._keep(route)
    asked = cluster.control.count("GET_ROUTEINFO_BY_TOPIC")
    cluster.world.advance(4)
    looked = cluster.control.count("GET_ROUTEINFO_BY_TOPIC") - asked
    assert 4 <= looked <= 6
    cluster.world.advance(4)
    assert cluster.control.count("GET_ROUTEINFO_BY_TOPIC") == asked + looked
