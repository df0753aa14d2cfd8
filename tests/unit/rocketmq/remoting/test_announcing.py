"""Brokers are told of us once a connection."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.core.steps import run_steps
from mqclient.errors import LinkError
from mqclient.rocketmq.model import Message
from mqclient.rocketmq.remoting.announcing import Announcer
from tests.unit.rocketmq.remoting.cluster import VirtualCluster


def test_once_a_connection_and_one_broker_is_enough(codec: Any) -> None:
    cluster = VirtualCluster(codec, brokers=2)
    cluster.topic("orders", 1)
    client = cluster.client()
    client.produce(Message("orders", b"x"))
    announcer = Announcer(client.engine)
    addresses = sorted(client.engine.routes.masters().values())

    def tell() -> Any:
        with client.driver.enter():
            slot = run_steps(announcer.tell_steps(addresses))
        client.driver.wait(slot)

    cluster.control.answer("HEART_BEAT", 1, "no")
    tell()
    assert sorted(map(announcer.known, addresses)) == [False, True]
    tell()
    assert all(map(announcer.known, addresses))
    beats = cluster.control.count("HEART_BEAT")
    tell()
    assert cluster.control.count("HEART_BEAT") == beats
    with client.driver.enter():
        client.engine.links[addresses[0]].abort(LinkError("lost"))
    assert not announcer.known(addresses[0])
    tell()
    with client.driver.enter():
        client.engine.on_fork()
    client.produce(Message("orders", b"over new connections"))
    assert not any(map(announcer.known, addresses))
    tell()
    with client.driver.enter():
        client.engine.links[addresses[0]].abort(LinkError("lost"))
    cluster.control.answer("HEART_BEAT", 1, "no", times=2)
    with client.driver.enter():
        client.engine.links[addresses[1]].abort(LinkError("lost"))
    with pytest.raises(LinkError, match="acknowledged our heartbeat"):
        tell()
