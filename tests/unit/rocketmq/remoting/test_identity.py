"""Story 2: ids are unique by construction; an equal one is seen, confirmed, and named once."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from mqclient.core.slot import Slot, completed
from mqclient.core.steps import run_steps
from mqclient.errors import LinkError
from mqclient.rocketmq.remoting.identity import ClashWatch, Identity
from tests.unit.rocketmq.remoting.cluster import VirtualCluster


def test_ids_of_one_host_pid_and_time_differ() -> None:
    assert len({Identity(1).client_id for _ in range(100)}) == 100


def test_a_given_id_is_used_as_it_is() -> None:
    assert Identity(1, "10.0.0.1@7").client_id == "10.0.0.1@7"
    assert Identity(1, None, "unit-a").client_id.endswith("@unit-a")


def test_equal_ids_pile_up_and_are_named_within_thirty_seconds(codec: Any, caplog: pytest.LogCaptureFixture) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 4)
    with caplog.at_level(logging.WARNING, "mqclient.remoting"):
        twins = [cluster.client(client_id="same@1").push("billing", "orders") for _ in range(2)]
        cluster.world.advance(30)
    assert [twin.queues("orders") for twin in twins] == [[0, 1], [0, 1]]  # the pile-up: 2 and 3 belong to nobody
    lines = [record.getMessage() for record in caplog.records if "has our id" in record.getMessage()]
    assert len(lines) == 2
    told = "consumer:billing another client has our id same@1: ours is at client:1, the other at "
    assert f"{told}10.0.1.1:40000, 10.0.1.2:40000." in lines[0]  # the virtual world rewrites addresses, as proxies do
    assert twins[0].member.diagnose()["equal_id_seen"]
    cluster.world.advance(120)
    assert len([record for record in caplog.records if "has our id" in record.getMessage()]) == 2


def test_our_own_old_connection_is_no_clash(codec: Any, caplog: pytest.LogCaptureFixture) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 4)
    with caplog.at_level(logging.WARNING, "mqclient.remoting"):
        client = cluster.client()
        push = client.push("billing", "orders")
        (wire,) = [wire for wire in client.driver.wires if wire.link is not None and wire.link.address.port == 10911]
        link = wire.link
        assert link is not None
        wire.link = None  # a black hole: the broker does not see it end
        with client.driver.enter():
            link.handle = None
            link.on_lost(ConnectionResetError())
        cluster.world.advance(60)
    assert push.queues("orders") == [0, 1]  # until the broker sees the old connection end
    assert not [record for record in caplog.records if "has our id" in record.getMessage()]


class Rewritten:
    """A client and a broker with something between them that rewrites addresses."""

    client_id = "same@1"

    def __init__(self, addresses: list[str], opened: int) -> None:
        self.ever_local = {"10.0.0.9:1"}
        self.timers = self
        self._addresses = addresses
        self._opened = opened

    def local_address(self, address: str) -> str:
        return "10.0.0.9:1"

    def opened_lately(self, address: str, seconds: float) -> int:
        return self._opened

    def ask_body_steps(self, *_: Any) -> Any:
        yield from ()
        return {"connectionSet": [{"clientId": "same@1", "clientAddr": text} for text in self._addresses]}

    def sleep(self, seconds: float) -> Slot[None]:
        return completed(None)


@pytest.mark.parametrize(("opened", "named"), [(1, True), (2, False)])
def test_behind_a_proxy_our_own_old_connection_is_told_by_the_count(opened: int, named: bool) -> None:
    warned: list[Any] = []
    watch = ClashWatch(Rewritten(["172.16.0.1:5", "172.16.0.1:6"], opened), lambda *told: warned.append(told))
    run_steps(watch.look_steps("billing", "broker:10911"))
    assert bool(warned) is named
    assert not named or warned[0][3] == ["172.16.0.1:5", "172.16.0.1:6"]


@pytest.mark.parametrize("stranger", ["10.0.0.7:9", ""])
def test_where_the_broker_sees_our_address_any_other_is_the_strangers(stranger: str) -> None:
    warned: list[Any] = []
    client = Rewritten(["10.0.0.9:1", *([stranger] if stranger else ["10.0.0.9:0"])], opened=5)
    client.ever_local.add("10.0.0.9:0")  # an old connection of ours
    watch = ClashWatch(client, lambda *told: warned.append(told))
    run_steps(watch.look_steps("billing", "broker:10911"))
    assert [told[3] for told in warned] == ([[stranger]] if stranger else [])


def test_connections_are_counted_as_long_as_brokers_remember_them(codec: Any) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    client = cluster.client()
    client.push("billing", "orders")
    address = "10.0.0.1:10911"
    assert client.engine.opened_lately(address, 180) == 1
    for _ in range(2):
        with client.driver.enter():
            client.engine.links[address].abort(LinkError("lost"))
        cluster.world.advance(40)
    assert client.engine.opened_lately(address, 180) == 3
    assert client.engine.opened_lately(address, 60) == 1
    cluster.world.advance(200)
    assert client.engine.opened_lately(address, 180) == 1


def test_without_the_right_to_look_the_other_is_unknown(codec: Any, caplog: pytest.LogCaptureFixture) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 4)
    cluster.control.answer("GET_CONSUMER_CONNECTION_LIST", 16, "no permission", times=9)
    with caplog.at_level(logging.WARNING, "mqclient.remoting"):
        for _ in range(2):
            cluster.client(client_id="same@1").push("billing", "orders")
        cluster.world.advance(30)
    assert any("the other at unknown." in record.getMessage() for record in caplog.records)


def test_a_look_that_fails_is_made_again(codec: Any, caplog: pytest.LogCaptureFixture) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 4)
    cluster.control.drop("GET_CONSUMER_CONNECTION_LIST", times=2)
    with caplog.at_level(logging.INFO, "mqclient.remoting"):
        for _ in range(2):
            cluster.client(client_id="same@1").push("billing", "orders")
        cluster.world.advance(60)
    lines = [record.getMessage() for record in caplog.records]
    assert any("could not look for an equal client id" in line for line in lines)
    assert sum("has our id" in line for line in lines) == 2
