"""Lookups against a scripted broker: redirects, proxies, wrong answers; and the pool."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from mqclient import _schema
from mqclient.config import TLS
from mqclient.core.slot import Slot
from mqclient.core.steps import run_steps
from mqclient.errors import ClosedError, ConfigError, LinkError, ProtocolError
from mqclient.pulsar.auth import token
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.codes import BrokerError, ServerError
from mqclient.pulsar.connection import Connection
from mqclient.pulsar.failover import Cluster, Failover
from mqclient.pulsar.names import ServiceUrl, TopicName
from mqclient.pulsar.schema import STRING
from tests.support.fake_driver import FakeDriver, Script, Wire, World
from tests.support.pulsar_world import PulsarWorld
from tests.support.tree import ROOT

TOPIC = TopicName.parse("t")


class Lookup:
    """Brokers by address, each with its answers to LOOKUP."""

    def __init__(self, codec: Any) -> None:
        self.codec = codec
        self.world = World()
        self.seen: list[tuple[str, Any]] = []
        self.answers: dict[str, list[dict[str, Any]]] = {}

    def listen(self, host: str, *answers: dict[str, Any]) -> None:
        self.answers[host] = list(answers)
        readers: dict[Wire, Any] = {}

        def answer(wire: Wire, data: bytes) -> None:
            for event in readers.setdefault(wire, self.codec.pulsar.FrameReader()).feed(data):
                request = _schema.read_command(*event)
                self.seen.append((host, request))
                if event[0] == 2:
                    wire.send(self.frame(3, "CommandConnected", server_version=host, protocol_version=21))
                else:
                    reply = self.answers[host].pop(0)
                    wire.send(self.frame(24, "CommandLookupTopicResponse", request_id=request.request_id, **reply))

        self.world.listen((host, 6650), Script(answer))

    def frame(self, kind: int, name: str, **fields: Any) -> bytes:
        frame: bytes = self.codec.pulsar.encode_command(kind, _schema.message(name)(**fields).SerializeToString())
        return frame

    def run(self, url: str = "pulsar://a:6650", **options: Any) -> Connection:
        driver = self.world.driver()
        client = ClientEngine(driver, self.codec, url, **options)
        with driver.enter():
            driver.attach(client)
            slot = run_steps(client.lookup_steps(TOPIC, client.deadline()))
        return self.world.result(slot)


def test_served_there(codec: Any) -> None:
    lookup = Lookup(codec)
    lookup.listen("a", {"response": 1, "brokerServiceUrl": "pulsar://b:6650"})
    lookup.listen("b")
    assert lookup.run().server == "b"


def test_redirects_are_followed_with_their_authority(codec: Any) -> None:
    lookup = Lookup(codec)
    lookup.listen("a", {"response": 0, "brokerServiceUrl": "pulsar://b:6650", "authoritative": True})
    lookup.listen("b", {"response": 1, "brokerServiceUrl": "pulsar://b:6650"})
    assert lookup.run().server == "b"
    assert [(host, request.authoritative) for host, request in lookup.seen if hasattr(request, "authoritative")] == [
        ("a", False),
        ("b", True),
    ]


def test_redirects_without_end(codec: Any) -> None:
    lookup = Lookup(codec)
    lookup.listen("a", *[{"response": 0, "brokerServiceUrl": "pulsar://a:6650"}] * 30)
    with pytest.raises(LinkError, match="redirects"):
        lookup.run()


def test_through_a_proxy(codec: Any) -> None:
    lookup = Lookup(codec)
    lookup.listen("a", {"response": 1, "brokerServiceUrl": "pulsar://b:6650", "proxy_through_service_url": True})
    assert lookup.run().server == "a"
    connects = [request for _, request in lookup.seen if hasattr(request, "client_version")]
    assert [request.proxy_to_broker_url for request in connects] == ["", "b:6650"]


def test_a_broker_named_by_the_last_one_is_reached_by_the_same_proxy(codec: Any) -> None:
    lookup = Lookup(codec)
    lookup.listen("a", {"response": 1, "brokerServiceUrl": "pulsar://b:6650", "proxy_through_service_url": True})
    connection = lookup.run()
    assert connection.proxy is not None
    client = connection._client
    with client.driver.enter():
        slot = run_steps(client.connect_to_steps("pulsar://c:6650", client.deadline(), proxy=connection.proxy))
    assert lookup.world.result(slot).server == "a"
    connects = [request for _, request in lookup.seen if hasattr(request, "client_version")]
    assert [request.proxy_to_broker_url for request in connects] == ["", "b:6650", "c:6650"]


def test_a_standalone_broker_that_names_itself_needs_no_second_connection(codec: Any) -> None:
    lookup = Lookup(codec)
    lookup.listen("a", {"response": 1, "brokerServiceUrl": "pulsar://a:6650", "proxy_through_service_url": True})
    assert lookup.run().server == "a"
    assert len([request for _, request in lookup.seen if hasattr(request, "client_version")]) == 1


def test_wrong_answers(codec: Any) -> None:
    lookup = Lookup(codec)
    lookup.listen("a", {"response": 1, "brokerServiceUrl": "nonsense"})
    with pytest.raises(ProtocolError, match="no usable broker"):
        lookup.run()
    lookup.listen("a", {"response": 2, "error": 11, "message": "none such"})
    with pytest.raises(BrokerError, match="none such"):
        lookup.run()


def test_the_pool_replaces_what_is_gone(codec: Any) -> None:
    world = PulsarWorld(codec)
    client = world.client()
    world.steps(client, lambda: client.ping_steps(client.deadline()))
    world.cut()
    world.world.run()
    assert client.diagnose()["connections"] == []
    assert "mqclient" in world.steps(client, lambda: client.ping_steps(client.deadline()))


def test_a_broker_named_by_the_last_one(codec: Any) -> None:
    world = PulsarWorld(codec)
    client = world.client()
    connection = world.steps(client, lambda: client.connect_to_steps("pulsar://broker:6650", client.deadline()))
    assert connection.ready


def test_closing_closes_members_first(codec: Any) -> None:
    world = PulsarWorld(codec)
    client = world.client()
    producer = world.producer(client, "t")
    consumer = world.consumer(client, "t", "s")
    with client.driver.enter():
        future = producer.submit((b"x", None, None, 0, None, -1, False))
    world.steps(client, client.close_steps)
    world.steps(client, client.close_steps)
    assert future is not None
    assert future.result().entry == 0
    assert (producer.diagnose()["state"], consumer.diagnose()["state"]) == ("closed", "closed")
    world.world.run()
    assert not world.door.sessions
    for make in (lambda: world.producer(client, "t"), lambda: world.consumer(client, "t", "s")):
        with pytest.raises(ClosedError):
            make()


def test_a_credential_is_no_text(codec: Any) -> None:
    with pytest.raises(ConfigError, match=r"pulsar.token\(\), basic\(\).* give, no str"):
        ClientEngine(World().driver(), codec, "pulsar://a", auth="secret")  # type: ignore[arg-type]


def test_encrypted_clients_go_to_the_encrypted_address(codec: Any) -> None:
    lookup = Lookup(codec)
    there = {"response": 1, "brokerServiceUrl": "pulsar://c:6650", "brokerServiceUrlTls": "pulsar+ssl://b:6650"}
    lookup.listen("a", there)
    lookup.listen("b")
    connection = lookup.run("pulsar+ssl://a:6650", tls="context")
    assert (connection.server, connection.link.address.tls) == ("b", "context")
    for url, tls in (("pulsar+ssl://a", None), ("pulsar://a", "context")):
        with pytest.raises(ConfigError, match="encrypted"):
            lookup.run(url, tls=tls)


NOT_RENEWED: list[dict[str, Any]] = [{"name": "mine"}, {"access": "exclusive"}]


@pytest.mark.parametrize("options", NOT_RENEWED, ids=["named", "exclusive"])
def test_a_forked_child_has_a_client_and_nothing_open(codec: Any, options: dict[str, Any]) -> None:
    world = PulsarWorld(codec)
    client = world.client()
    producer, consumer = world.producer(client, "t", **options), world.consumer(client, "t", "s")
    with client.driver.enter():
        client.on_fork()
    with pytest.raises(ClosedError, match="parent process"):
        world.sender(producer).send(b"x")
    with pytest.raises(ClosedError, match="parent process"):
        world.face(consumer).receive(1)
    assert client.diagnose()["connections"] == []
    assert world.sender(world.producer(client, "other")).send(b"x").entry == 0


@pytest.mark.parametrize("partitions", [0, 3])
def test_producers_go_on_in_a_forked_child(codec: Any, partitions: int) -> None:
    world = PulsarWorld(codec)
    if partitions:
        world.rest("PUT", "persistent/public/default/t/partitions", partitions)
    client, reader = world.client(), world.consumers(world.client(), "t", "s")
    engine = world.producer(client, "t", schema=STRING, max_pending=100, partition_refresh=5)
    sender = world.sender(engine)
    sender.send("before")
    name = sender.name
    world.control.drop("SEND", times=10)
    with client.driver.enter():
        lost = [engine.submit(engine.prepare(f"in flight {number}")) for number in range(3)]
    world.world.advance(0.1)
    with client.driver.enter():
        gathers: Any = engine.submit(engine.prepare("gathers"))
        client.on_fork()
    world.control.clear()
    world.world.run()
    assert {type(future.exception()) for future in [*lost, gathers]} == {ClosedError}  # these are the parent's
    assert (client.budget.bytes, client.diagnose()["connections"]) == (0, [])
    for number in range(5):
        sender.send(f"{number}")
    assert all(one.ok for one in sender.send_many([f"many {number}" for number in range(5)]))
    assert sender.name != name
    face = world.face(reader)
    got = [face.receive(5) for _ in range(11)]
    expected = {"before", *(f"{number}" for number in range(5)), *(f"many {number}" for number in range(5))}
    assert {message.body.decode() for message in got} == expected
    assert {message.schema_version for message in got} == {b"\0" * 8}
    assert len({message.producer_name for message in got} - {name}) >= 1
    if partitions:
        world.rest("POST", "persistent/public/default/t/partitions", partitions + 1)
        world.world.advance(20)
        assert len(engine.diagnose()["partitions"]) == partitions + 1
    sender.close()


def test_who_submits_in_a_forked_child_joins_what_gathers_there(codec: Any) -> None:
    world = PulsarWorld(codec)
    client, reader = world.client(), world.consumer(world.client(), "t", "s")
    engine = world.producer(client, "t")
    face, driver = world.sender(engine), engine.client.driver
    assert isinstance(driver, FakeDriver)
    world.control.drop("SEND", times=10)
    lost = [face.submit(b"in flight")]
    world.world.advance(0.001)
    lost += [face.submit(b"gathers"), face.submit(b"joined")]
    before = driver.entries
    lost.append(face.submit(b"joined"))
    assert driver.entries == before
    with driver.enter():
        client.on_fork()
    world.control.clear()
    world.world.run()
    assert {type(future.exception()) for future in lost} == {ClosedError}
    world.world.latency = 0.001
    futures = [face.submit(b"0"), face.submit(b"1")]
    world.world.advance(0.0005)
    before = driver.entries
    futures.append(face.submit(b"2"))
    assert driver.entries == before
    world.world.advance(0.1)
    assert all(future.result().entry >= 0 for future in futures)
    assert [world.face(reader).receive(5).body for _ in range(3)] == [b"0", b"1", b"2"]


def test_a_forked_child_s_producer_that_is_refused_says_so(codec: Any) -> None:
    world = PulsarWorld(codec)
    client = world.client()
    sender = world.sender(world.producer(client, "t"))
    with client.driver.enter():
        client.on_fork()
    world.control.answer("PRODUCER", ServerError.TopicTerminatedError, "it has ended", times=100)
    with pytest.raises(BrokerError, match="it has ended"):
        sender.send(b"x")


FORK = """
import os, sys
from mqclient.broker import EmbeddedBroker
from mqclient.errors import ClosedError
from mqclient.pulsar import sync

with EmbeddedBroker(doors=["pulsar"], impl="pure") as broker, sync.Client(broker.pulsar_url, impl="pure") as client:
    consumer = client.consumer("t", "s")
    producer = client.producer("t")
    producer.send(b"1")
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            consumer.receive(1)
        except ClosedError:
            producer.send(b"2", timeout=10)
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    producer.send(b"3", timeout=10)
    assert [consumer.receive(10).body for _ in range(3)] == [b"1", b"2", b"3"]
print("both")
"""


def test_parent_and_child_both_go_on() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == ("both\n", 0), done.stderr


def test_credentials_are_asked_where_user_code_runs(codec: Any) -> None:
    world = PulsarWorld(codec, pulsar_token="right")

    def supply() -> str:
        for driver in world.world.drivers:
            driver.outside("a token supplier")
        return "right"

    client = world.client(auth=token(supply))
    assert "mqclient" in world.steps(client, lambda: client.ping_steps(client.deadline()))

    def fail() -> str:
        raise RuntimeError("no vault")

    client = world.client(auth=token(fail))
    with pytest.raises(LinkError, match="no vault"):
        world.steps(client, lambda: client.ping_steps(client.deadline()))


def test_timers_and_keep_alive(codec: Any) -> None:
    world = PulsarWorld(codec)
    client = world.client(keep_alive=10)
    world.steps(client, lambda: client.ping_steps(client.deadline()))
    world.world.advance(25)
    assert world.control.count("PING") == 2


def test_a_client_that_is_closed_makes_nothing(codec: Any) -> None:
    world = PulsarWorld(codec)
    client = world.client()
    world.steps(client, client.close_steps)
    with pytest.raises(ClosedError), client.driver.enter():
        client.join(None)  # type: ignore[arg-type]
    with pytest.raises(ClosedError):
        world.steps(client, lambda: client.ping_steps(client.deadline()))


def test_a_partition_has_no_partitions(codec: Any) -> None:
    world = PulsarWorld(codec)
    client = world.client()
    topic = TopicName.parse("t-partition-3")
    assert world.steps(client, lambda: client.partitions_steps(topic, client.deadline())) == 0
    assert world.control.count("PARTITIONED_METADATA") == 0


class Web:
    """A web service that knows one broker."""

    def get(self, url: str, headers: Any) -> Any:
        content = {"partitions": 2} if "partitions" in url else {"brokerUrl": "pulsar://broker:6650"}
        return SimpleNamespace(status=200, content=content)


def test_lookups_over_http(codec: Any) -> None:
    world = PulsarWorld(codec)
    client = world.client("http://web", web=Web())
    assert world.steps(client, lambda: client.partitions_steps(TOPIC, client.deadline())) == 2
    assert world.steps(client, lambda: client.service_steps(client.deadline())).link.address.host == "broker"
    assert world.steps(client, lambda: client.lookup_steps(TOPIC, client.deadline())).ready
    world.steps(client, lambda: client.probe_steps(client.url))
    with pytest.raises(ConfigError, match="need somebody who asks"):
        world.client("http://web")
    with pytest.raises(ProtocolError, match="no address of the binary protocol"):
        client.broker_address("http://broker:8080")


def test_moving_and_looking_where_to(codec: Any) -> None:
    world = PulsarWorld(codec)
    world.world.listen(("second", 6650), world)
    failover = Failover("pulsar://broker:6650", ["pulsar://away:1,second:6650"], check_interval=1, failover_delay=1)
    client = world.client(failover)
    producer = world.producer(client, "t")
    with pytest.raises(LinkError):
        world.steps(client, lambda: client.probe_steps(ServiceUrl.parse("pulsar://away:1")))
    world.door.url = "pulsar://second:6650"
    world.world.refuse(("broker", 6650))
    world.cut()
    world.world.advance(20)
    assert client.url.text == "pulsar://away:1,second:6650"
    assert world.sender(producer).send(b"x").entry == 0
    with client.driver.enter():
        client.on_fork()


def test_the_user_s_code_is_asked_outside(codec: Any) -> None:
    world = PulsarWorld(codec)
    client = world.client()

    async def later() -> int:
        return 7

    async def never() -> int:
        raise KeyError("no")

    def wrong() -> int:
        raise KeyError("no")

    asked: list[Any] = [lambda: 5, later, wrong, never]
    found: list[Slot[Any]] = [world.ask(client, partial(client.ask_user, ask)) for ask in asked]
    world.world.run()
    assert [found[0].result(), found[1].result()] == [5, 7]
    assert [type(slot.error) for slot in found[2:]] == [KeyError, KeyError]
    assert client.coordinators is client.coordinators


def test_members_take_the_connections_to_their_broker_in_turn(codec: Any) -> None:
    world = PulsarWorld(codec)
    client = world.client(connections_per_broker=3)
    producers = [world.producer(client, "t") for _ in range(6)]
    used = [producer.attachment.connection for producer in producers]
    assert [used.count(connection) for connection in dict.fromkeys(used)] == [2, 2, 2]
    assert len(client.diagnose()["connections"]) == 3
    world.cut()
    world.world.advance(5)
    again = [producer.attachment.connection for producer in producers]
    assert [again.count(connection) for connection in dict.fromkeys(again)] == [2, 2, 2]
    assert again[:3] == again[3:]
    assert not set(again) & set(used)
    with pytest.raises(ConfigError, match="at least 1"):
        world.client(connections_per_broker=0)


def test_ready_when_everybody_is_open(codec: Any) -> None:
    world = PulsarWorld(codec)
    client = world.client()
    assert not client.ready()
    world.rest("PUT", "persistent/public/default/parted/partitions", 2)
    world.producer(client, "t")
    world.producer(client, "parted")
    world.consumer(client, "t", "s")
    world.consumers(client, "parted", "s")
    assert client.ready()
    world.cut()
    world.world.advance(0.01)
    assert not client.ready()
    world.world.advance(5)
    assert client.ready()
    world.control.answer("PRODUCER", 6, "not now", times=9)
    world.cut()
    world.world.advance(0.4)
    assert not client.ready()  # connected again, and not all of them open
    world.world.advance(10)
    assert client.ready()
    world.steps(client, client.close_steps)
    assert not client.ready()


def test_encrypted_clusters_need_somebody_who_encrypts(codec: Any) -> None:
    failover = Failover("pulsar+ssl://a", [Cluster("pulsar+ssl://b", tls=TLS())])
    with pytest.raises(ConfigError, match="somebody who makes them"):
        ClientEngine(World().driver(), codec, failover, tls="context")
