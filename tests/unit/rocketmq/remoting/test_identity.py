"""Story 2: ids are unique by construction; an equal one is seen, confirmed, and named once."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from mqclient.rocketmq.remoting.identity import Identity
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
    assert (
        "consumer:billing another client has our id same@1: ours is at client:1, the other at 10.0.1.2:40000."
        in lines[0]
    )
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
