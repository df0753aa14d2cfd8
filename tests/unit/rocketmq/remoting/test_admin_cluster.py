"""Brokers and topics, as operators ask for them."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.core.steps import Steps, run_steps
from mqclient.errors import ConfigError, RemoteError
from mqclient.rocketmq.codes import BrokerError, Request
from mqclient.rocketmq.remoting.admin_cluster import NOTHING_HERE, ClusterAdmin, each_master_steps, masters_steps
from mqclient.rocketmq.remoting.bodies import write_body
from tests.unit.rocketmq.remoting.cluster import VirtualClient, VirtualCluster


def run(client: VirtualClient, steps: Steps[Any]) -> Any:
    with client.driver.enter():
        slot = run_steps(steps)
    return client.driver.wait(slot)


def test_brokers_and_their_options(codec: Any) -> None:
    cluster = VirtualCluster(codec, brokers=2)
    client = cluster.client()
    admin = ClusterAdmin(client.engine)
    brokers = run(client, admin.cluster_steps())
    assert [broker.name for broker in brokers] == ["broker-a", "broker-b"]
    assert all(broker.version and broker.cluster and 0 in broker.addresses for broker in brokers)
    by_name = run(client, admin.config_steps("broker-a"))
    assert by_name == run(client, admin.config_steps(brokers[0].addresses[0]))
    assert by_name["enablePropertyFilter"] == "false"
    with pytest.raises(ConfigError, match="no broker 'x'"):
        run(client, admin.config_steps("x"))


def test_a_topic_goes_everywhere(codec: Any) -> None:
    cluster = VirtualCluster(codec, brokers=2)
    cluster.topic("orders", 1)
    client = cluster.client()
    run(client, ClusterAdmin(client.engine).delete_topic_steps("orders"))
    assert all("orders" not in service.broker.topics for service in cluster.door.services)


def test_a_name_server_that_knows_no_broker(codec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = VirtualCluster(codec)
    client = cluster.client()

    def nothing(*_: Any) -> Steps[bytes]:
        yield from ()
        return write_body({"brokerAddrTable": {"b": {"cluster": "c", "brokerAddrs": {1: "replica:1"}}}})

    monkeypatch.setattr(client.engine, "ask_name_server_steps", nothing)
    with pytest.raises(ConfigError, match="knows no broker"):
        run(client, masters_steps(client.engine))
    (broker,) = run(client, ClusterAdmin(client.engine).cluster_steps())
    assert (broker.name, broker.addresses, broker.version) == ("b", {1: "replica:1"}, "")


def test_a_broker_that_cannot_tell_its_version_is_listed(codec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = VirtualCluster(codec, brokers=2)
    client = cluster.client()
    first, second = run(client, ClusterAdmin(client.engine).cluster_steps())
    ask = client.engine.ask_body_steps

    def just_started(address: str, code: Request, fields: dict[str, str]) -> Steps[Any]:
        if address == first.addresses[0]:
            raise BrokerError(1, "java.util.NoSuchElementException", remote=address, request=code.name)
        return (yield from ask(address, code, fields))

    monkeypatch.setattr(client.engine, "ask_body_steps", just_started)
    assert run(client, ClusterAdmin(client.engine).cluster_steps()) == [first._replace(version=""), second]


def test_brokers_that_have_nothing_are_passed_over(codec: Any) -> None:
    cluster = VirtualCluster(codec, brokers=2)
    client = cluster.client()

    def stats(name: str, address: str) -> Steps[Any]:
        fields = {"topic": "orders"}
        return (yield from client.engine.ask_body_steps(address, Request.GET_TOPIC_STATS_INFO, fields))

    with pytest.raises(RemoteError):
        run(client, each_master_steps(client.engine, stats, NOTHING_HERE))
    cluster.door.services[1].broker.make_topic("orders", 1)
    assert len(run(client, each_master_steps(client.engine, stats, NOTHING_HERE))) == 1
    with pytest.raises(RemoteError):
        run(client, each_master_steps(client.engine, stats))
