"""The client: name servers in turn, links made anew, answers matched, everything ended at the close."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from mqclient.core.steps import run_steps
from mqclient.errors import ClosedError, ConfigError, DeadlineError, LinkError
from mqclient.rocketmq.codes import BrokerError, Request
from mqclient.rocketmq.model import Message
from mqclient.rocketmq.remoting.client import ClientEngine, Options, check_options
from mqclient.rocketmq.remoting.consumer import PushEngine
from mqclient.rocketmq.remoting.member_options import topics_of
from mqclient.rocketmq.remoting.push_options import push_options
from mqclient.rocketmq.signing import acl
from tests.support.fake_driver import Script
from tests.support.leaks import assert_quiet
from tests.unit.rocketmq.remoting.cluster import VirtualClient, VirtualCluster

TOPICS = Request.GET_ALL_TOPIC_LIST_FROM_NAMESERVER


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders")
    return cluster


def ask(client: VirtualClient, code: Request, fields: dict[str, str]) -> Any:
    with client.driver.enter():
        return run_steps(client.engine.ask_name_server_steps(code, fields))


def test_the_next_name_server_is_asked_and_remembered(cluster: VirtualCluster) -> None:
    client = cluster.client()
    with client.driver.enter():
        client.engine.name_servers.addresses = ["nobody:1", "names:9876"]
    slot = ask(client, TOPICS, {})
    cluster.world.run()
    assert b"orders" in slot.result()
    assert client.engine.name_servers.current == "names:9876"


def test_when_none_answers_the_error_names_them(cluster: VirtualCluster) -> None:
    client = cluster.client()
    with client.driver.enter():
        client.engine.name_servers.addresses = ["nobody:1", "nobody:2"]
    slot = ask(client, TOPICS, {})
    cluster.world.run()
    assert isinstance(slot.error, LinkError)
    assert "nobody:1;nobody:2" in str(slot.error)


def test_an_answer_with_an_error_is_raised_with_who_and_what(cluster: VirtualCluster) -> None:
    slot = ask(cluster.client(), Request.GET_ROUTEINFO_BY_TOPIC, {"topic": "nowhere"})
    cluster.world.run()
    error = slot.error
    assert isinstance(error, BrokerError)
    assert (error.code, error.remote, error.request) == (17, "names:9876", "GET_ROUTEINFO_BY_TOPIC")


def test_no_answer_ends_at_the_deadline_and_a_late_one_is_passed_over(cluster: VirtualCluster) -> None:
    cluster.control.delay("GET_ALL_TOPIC_LIST_FROM_NAMESERVER", 5.0)
    client = cluster.client()
    with client.driver.enter():
        slot = client.engine.ask("names:9876", TOPICS, {}, timeout=1.0)
    cluster.world.advance(2)
    assert isinstance(slot.error, DeadlineError)
    cluster.world.advance(5)
    assert client.engine.links["names:9876"].inflight.late == 1


def test_a_lost_connection_is_made_anew_by_the_next_request(cluster: VirtualCluster) -> None:
    client = cluster.client()
    cluster.control.cut("GET_ALL_TOPIC_LIST_FROM_NAMESERVER")
    with client.driver.enter():
        first = client.engine.ask("names:9876", TOPICS, {})
    cluster.world.run()
    assert isinstance(first.error, LinkError)
    with client.driver.enter():
        second = client.engine.ask("names:9876", TOPICS, {})
    cluster.world.run()
    assert second.result().code == 0
    assert client.engine.links["names:9876"].epoch == 2


def test_routes_are_refreshed_and_beats_go_out_by_themselves(cluster: VirtualCluster) -> None:
    client = cluster.client()
    client.push("billing", "orders")
    before = [cluster.control.count(name) for name in ("GET_ROUTEINFO_BY_TOPIC", "HEART_BEAT")]
    cluster.world.advance(61)
    after = [cluster.control.count(name) for name in ("GET_ROUTEINFO_BY_TOPIC", "HEART_BEAT")]
    assert all(later >= earlier + 2 for earlier, later in zip(before, after, strict=True))


def test_new_queues_are_found_with_the_next_refresh(cluster: VirtualCluster) -> None:
    push = cluster.client().push("billing", "orders")
    cluster.broker.broker.topics["orders"].read_queues = 6
    cluster.world.advance(35)
    assert push.queues("orders") == [0, 1, 2, 3, 4, 5]


def test_diagnose_and_close(cluster: VirtualCluster) -> None:
    client = cluster.client()
    client.push("billing", "orders")
    client.produce(Message("orders", b"x"))
    state = client.engine.diagnose()
    assert state["producers"] == ["producers"]
    assert state["consumers"]["billing"]["code_25"] == 0
    assert "orders" in state["topics"]
    with client.driver.enter():
        slot = client.engine.shutdown()
    client.driver.wait(slot)
    cluster.world.run()
    assert_quiet(client.engine.links.values())
    assert cluster.broker.members.consumers == {}
    with client.driver.enter():
        assert client.engine.shutdown().done
        with pytest.raises(ClosedError):
            client.engine.link("names:9876")
    cluster.world.advance(120)  # no timer goes on


def test_who_leaves_without_close_sends_what_gathers_and_tells_what_is_left(cluster: VirtualCluster) -> None:
    client = cluster.client()
    client.produce(Message("orders", b"x"))
    producer: Any = client.engine.producers["producers"]
    prepared = producer.prepare(Message("orders", b"y"))
    with client.driver.enter():
        producer.send(prepared, None)
        assert client.engine.unsettled() == {"producer 'producers'": 1}
        left = client.engine.on_exit()
    cluster.world.run()
    assert left.done
    assert client.engine.unsettled() == {}


def test_in_a_namespace_names_are_wrapped_on_the_wire_only(cluster: VirtualCluster) -> None:
    cluster.topic("paid%orders")
    client = cluster.client(namespace="paid")
    heard: list[Any] = []
    client.push("billing", "orders", heard.extend)
    client.produce(Message("orders", b"x"))
    cluster.world.advance(5)
    assert [(message.topic, message.body) for message in heard] == [("orders", b"x")]
    assert set(cluster.broker.members.consumers) == {"paid%billing"}


def test_connections_are_counted_while_they_are_young(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine = client.engine
    assert engine.local_address("names:9876") == ""
    for _ in range(3):
        slot = ask(client, TOPICS, {})
        cluster.world.run()
        assert b"orders" in slot.result()
        (wire,) = (wire for wire in client.driver.wires if wire.open)
        wire.lose()
        cluster.world.run()
    assert engine.local_address("names:9876") == "client:1"

    def opened(address: str) -> int:
        with client.driver.enter():
            return engine.opened_lately(address, 10)

    assert (opened("names:9876"), opened("nobody:1")) == (3, 1)
    cluster.world.advance(11)
    assert opened("names:9876") == 1


def test_it_is_ready_when_every_consumer_can_work(cluster: VirtualCluster) -> None:
    client = cluster.client()
    assert not client.engine.ready()
    slot = ask(client, TOPICS, {})
    cluster.world.run()
    assert slot.done
    assert client.engine.ready()
    with client.driver.enter():
        engine = PushEngine(client.engine, "billing", topics_of("orders"), print, *push_options({}))
        engine.start()
    assert not client.engine.ready()
    cluster.world.advance(1)
    assert client.engine.ready()
    with client.driver.enter():
        closed = client.engine.shutdown()
    client.driver.wait(closed)
    assert not client.engine.ready()


@pytest.mark.parametrize("options", [{}, {"auth": acl("key", "secret")}])
def test_what_is_told_without_an_answer_arrives(cluster: VirtualCluster, options: Any) -> None:
    cluster.broker.broker.group("billing")
    client = cluster.client(**options)
    client.produce(Message("orders", b"x"))
    fields = {"consumerGroup": "billing", "topic": "orders", "queueId": "0", "commitOffset": "7"}
    with client.driver.enter():
        address = client.engine.broker_address("broker-a")
        client.engine.tell(address, Request.UPDATE_CONSUMER_OFFSET, fields)
        assert len(client.engine.links[address].inflight) == 0
        slot = client.engine.ask(address, Request.QUERY_CONSUMER_OFFSET, fields)
    assert client.driver.wait(slot).field("offset") == "7"


def test_a_brokers_request_is_answered_unless_it_wants_no_answer(cluster: VirtualCluster) -> None:
    client = cluster.client()
    client.push("billing", "orders")
    (member,) = cluster.broker.members.consumers["billing"].members.values()
    heard: list[Any] = []
    (wire,) = (wire for wire in client.driver.wires if wire.link is not None and wire.link.address.port == 10911)
    before = len(wire.sent)
    member.peer.push(9999, {})
    cluster.world.run()
    assert len(wire.sent) == before
    member.peer.ask(9999, {}, b"", 5.0, heard.append)
    cluster.world.run()
    assert [(answer.code, answer.remark) for answer in heard] == [(3, " request type 9999 not supported")]


def test_who_needs_the_page_of_name_servers_waits_for_one_answer(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    page = b"nobody:1"
    site = Script(lambda wire, data: wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(page) + page))
    driver = cluster.world.driver()
    with driver.enter():
        engine = ClientEngine(driver, cluster.codec, "", Options(seed=1, address_server="http://pages:8080/list"))
        lost = [run_steps(engine.ask_name_server_steps(TOPICS, {})) for _ in range(3)]
    cluster.world.run()
    assert all("http://pages:8080/list" in str(slot.error) for slot in lost)
    cluster.world.listen(("pages", 8080), site)
    with driver.enter():
        slots = [run_steps(engine.ask_name_server_steps(TOPICS, {})) for _ in range(3)]
    cluster.world.run()
    assert len(site.wires) == 1
    assert all("from http://pages:8080/list" in str(slot.error) for slot in slots)
    page = b"names:9876"
    with caplog.at_level(logging.INFO, "mqclient.remoting"):
        cluster.world.advance(15)  # it is looked at again soon after the start
    assert len(site.wires) == 2
    assert "name servers by http://pages:8080/list: names:9876" in caplog.messages
    with driver.enter():
        found = run_steps(engine.ask_name_server_steps(TOPICS, {}))
    assert b"orders" in cluster.world.result(found)
    cluster.world.refuse(("pages", 8080))
    caplog.clear()
    cluster.world.advance(120)
    assert [record.levelname for record in caplog.records if "pages:8080" in record.getMessage()] == ["WARNING"]
    assert engine.name_servers.addresses == ["names:9876"]


def test_work_outside_comes_back_inside(cluster: VirtualCluster) -> None:
    client = cluster.client()
    with client.driver.enter():
        good, bad = client.engine.outside(lambda: 7), client.engine.outside(lambda: 1 // 0)
    cluster.world.run()
    assert good.result() == 7
    assert isinstance(bad.error, ZeroDivisionError)


def test_brokers_that_no_route_names(cluster: VirtualCluster) -> None:
    with pytest.raises(LinkError, match="no route names the broker nowhere"):
        cluster.client().engine.broker_address("nowhere")


def test_options() -> None:
    assert Options.of({"route_interval": 5.0}).route_interval == 5.0
    with pytest.raises(ConfigError, match="did you mean 'offset_dir'"):
        Options.of({"offsetdir": "/"})
    with pytest.raises(ConfigError, match="there are a, b"):
        check_options({"quite_different": 1}, ["b", "a"])


def test_only_a_client_of_threads_blocks(cluster: VirtualCluster) -> None:
    driver = cluster.world.driver()
    with driver.enter():
        assert ClientEngine(driver, cluster.codec, "names", Options()).blocking


def test_in_a_forked_child_it_is_somebody_else(cluster: VirtualCluster) -> None:
    client = cluster.client(client_id="given@1")
    push = client.push("billing", "orders")
    client.produce(Message("orders", b"x"))
    with client.driver.enter():
        asked = client.engine.ask("names:9876", TOPICS, {})
        client.engine.on_fork()
    assert isinstance(asked.error, ClosedError)
    assert client.engine.client_id != "given@1"
    assert (client.engine.consumers, client.engine.links, push.queues("orders")) == ({}, {}, [])
    assert client.produce(Message("orders", b"x"))[0].ok
    cluster.world.advance(65)
    assert cluster.control.count("HEART_BEAT") > 2  # its timers run again


def test_addresses_are_rewritten_and_sends_may_take_the_vip_channel(codec: Any) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    told: list[str] = []

    def rewrite(address: str) -> str:
        told.append(address)
        return "outside:30911"

    peer = cluster.world.peers[(cluster.broker.broker.name, 10911)]
    cluster.world.listen(("outside", 30909), peer)
    client = cluster.client(rewrite_address=rewrite, vip_channel=True)
    (receipt,) = client.produce(Message("orders", b"x"))
    assert receipt.ok
    assert set(told) == {"10.0.0.1:10911"}
    assert "outside:30909" in client.engine.links


def test_an_address_that_nobody_outside_can_reach_names_the_cure(codec: Any) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    cluster.world.refuse(cluster.broker.broker.host)
    (error,) = cluster.client().produce(Message("orders", b"x"))
    assert "told by name server names:9876: the broker's brokerIP1, or rewrite_address=, can change it" in str(error)


@pytest.mark.parametrize(
    ("script", "hint"),
    [
        (Script(lambda wire, data: wire.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")), "speaks another protocol"),
        (Script(lambda wire, data: wire.lose()), r"does it want TLS"),
        (Script(lambda wire, data: wire.lose(ConnectionResetError("reset"))), r"is it a name server"),
    ],
)
def test_what_listens_at_a_wrong_port_is_guessed(codec: Any, script: Script, hint: str) -> None:
    cluster = VirtualCluster(codec)
    cluster.world.listen(("names", 9876), script)
    (error,) = cluster.client().produce(Message("orders", b"x"))
    assert isinstance(error, LinkError)
    assert hint in str(error)
    assert "names:9876" in str(error)


def test_a_topic_that_nobody_makes_is_named(codec: Any) -> None:
    cluster = VirtualCluster(codec, autoCreateTopicEnable=False)
    (error,) = cluster.client().produce(Message("nowhere", b"x"))
    assert isinstance(error, BrokerError)
    assert "for the topic: nowhere" in str(error)
    assert "create_topic" in str(error)
