"""Moving to another cluster and back: when, where to, and that everybody moves along."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.config import TLS
from mqclient.errors import ConfigError
from mqclient.pulsar.auth import NoAuthentication, basic, mutual_tls, token
from mqclient.pulsar.failover import Cluster, Failover, Shown, shown
from tests.support.pulsar_world import ADDRESS, PulsarWorld

SECOND, THIRD = ("second", 6650), ("third", 6650)


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    made = PulsarWorld(codec)
    made.world.listen(SECOND, made)
    made.world.listen(THIRD, made)
    return made


def client(world: PulsarWorld, **options: Any) -> Any:
    times: dict[str, Any] = {"check_interval": 1.0, "failover_delay": 5.0, "switch_back_delay": 5.0}
    failover = Failover("pulsar://broker:6650", ["pulsar://second:6650", "pulsar://third:6650"], **times)
    return world.client(failover, connect_timeout=0.5, **options)


def away(world: PulsarWorld, *addresses: tuple[str, int]) -> None:
    for address in addresses:
        world.world.refuse(address)
    world.cut()


def at(made: Any) -> str:
    return str(made.diagnose()["url"])


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"secondaries": []}, "one or more"),
        ({"secondaries": "pulsar://b"}, "one or more"),
        ({"check_interval": 0}, "above 0"),
        ({"failover_delay": -1}, "not negative"),
        ({"secondaries": ["pulsar+ssl://b"]}, "encrypted"),
        ({"secondaries": ["http://b"]}, "over HTTP"),
        ({"secondaries": ["nonsense"]}, "service URL"),
        ({"secondaries": [Cluster("pulsar://b", tls=TLS())]}, "where all URLs begin with pulsar.ssl"),
    ],
)
def test_mistakes(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Failover(**{"primary": "pulsar://a", "secondaries": ["pulsar://b"], **given})


def test_there_and_back(world: PulsarWorld) -> None:
    made = client(world)
    producer, consumer = world.producer(made, "t"), world.consumer(made, "t", "s")
    sender, face = world.sender(producer), world.face(consumer)
    sender.send(b"1")
    world.world.advance(30)
    assert at(made) == "pulsar://broker:6650"
    world.door.url = "pulsar://second:6650"
    away(world, ADDRESS)
    world.world.advance(4)
    assert at(made) == "pulsar://broker:6650"  # it may come back by itself
    world.world.advance(4)
    assert at(made) == "pulsar://second:6650"
    sender.send(b"2")
    assert taken(face, 2) == {b"1", b"2"}
    world.door.url = "pulsar://broker:6650"
    world.world.listen(ADDRESS, world)
    world.world.advance(10)
    assert at(made) == "pulsar://broker:6650"
    sender.send(b"3")
    assert b"3" in taken(face, 1)


def taken(face: Any, count: int) -> set[bytes]:
    """So many different messages; what was not acknowledged may come twice."""
    found: set[bytes] = set()
    while len(found) < count:
        message = face.receive(60)
        face.ack(message)
        found.add(message.body)
    return found


def test_the_next_one_that_answers(world: PulsarWorld) -> None:
    made = client(world)
    world.producer(made, "t")
    away(world, ADDRESS, SECOND)
    world.world.advance(10)
    assert at(made) == "pulsar://third:6650"
    away(world, THIRD)
    world.world.advance(20)
    assert at(made) == "pulsar://third:6650"  # nobody answers: there is no better place
    world.world.listen(SECOND, world)
    world.world.advance(10)
    assert at(made) == "pulsar://second:6650"


def test_a_primary_that_comes_and_goes_is_not_trusted(world: PulsarWorld) -> None:
    made = client(world)
    world.producer(made, "t")
    away(world, ADDRESS)
    world.world.advance(10)
    for _ in range(5):
        world.world.listen(ADDRESS, world)
        world.world.advance(3)
        world.world.refuse(ADDRESS)
        world.world.advance(3)
    assert at(made) == "pulsar://second:6650"


def test_a_short_absence(world: PulsarWorld) -> None:
    made = client(world)
    world.producer(made, "t")
    away(world, ADDRESS)
    world.world.advance(3)
    world.world.listen(ADDRESS, world)
    world.world.advance(30)
    assert at(made) == "pulsar://broker:6650"


def test_a_refusal_is_an_answer(world: PulsarWorld) -> None:
    made = client(world, auth=token(lambda: "x"))
    world.producer(made, "t")
    world.control.answer("CONNECT", 3, "not you", times=100)
    world.world.advance(20)
    assert at(made) == "pulsar://broker:6650"


def test_who_opens_while_the_primary_is_away_waits_and_opens_elsewhere(world: PulsarWorld) -> None:
    world.world.refuse(ADDRESS)
    world.door.url = "pulsar://second:6650"
    made = client(world)
    sender = world.sender(world.producer(made, "t"))
    assert sender.send(b"x").entry == 0
    assert at(made) == "pulsar://second:6650"


def test_a_forked_child_watches_for_itself(world: PulsarWorld) -> None:
    made = client(world)
    world.producer(made, "t")
    with made.driver.enter():
        made.on_fork()
    world.door.url = "pulsar://second:6650"
    world.world.refuse(ADDRESS)
    world.producer(made, "t")
    assert at(made) == "pulsar://second:6650"


def test_a_closed_client_looks_no_more(world: PulsarWorld) -> None:
    made = client(world)
    world.producer(made, "t")
    world.steps(made, made.close_steps)
    world.world.advance(60)
    assert not world.door.sessions


def test_each_cluster_is_shown_its_own_credential(codec: Any) -> None:
    world = PulsarWorld(codec, pulsar_basic={"home": "1"})
    second = PulsarWorld(codec, beside=world.world, at="second", pulsar_basic={"guest": "2"})
    failover = Failover(
        "pulsar://broker:6650",
        [Cluster("pulsar://second:6650", auth=basic("guest", "2"))],
        check_interval=1.0,
        failover_delay=3.0,
        switch_back_delay=3.0,
    )
    made = world.client(failover, auth=basic("home", "1"), connect_timeout=0.5)
    sender = world.sender(world.producer(made, "t"))
    sender.send(b"1")
    away(world, ADDRESS)
    world.world.advance(10)
    assert at(made) == "pulsar://second:6650"
    assert sender.send(b"2").entry == 0  # the first of that cluster
    assert second.sessions
    world.world.listen(ADDRESS, world)
    world.world.advance(10)
    assert at(made) == "pulsar://broker:6650"
    assert sender.send(b"3").entry == 1


def test_what_is_shown_where() -> None:
    home, own = Shown(NoAuthentication(), "sealed"), mutual_tls()
    clusters = [Cluster("pulsar+ssl://b", auth=own), Cluster("pulsar+ssl://c", tls=TLS(server_name="c"))]
    assert shown(Failover("pulsar+ssl://a", clusters), home, lambda tls: tls.server_name) == {
        "pulsar+ssl://a": home,
        "pulsar+ssl://b": (own, "sealed"),
        "pulsar+ssl://c": (home.auth, "c"),
    }
    assert shown("pulsar+ssl://a", home, lambda tls: tls) == {}


def test_a_certificate_needs_an_encrypted_connection(world: PulsarWorld) -> None:
    with pytest.raises(ConfigError, match="mutual_tls"):
        world.client(Failover("pulsar://a", [Cluster("pulsar://b", auth=mutual_tls())]))
