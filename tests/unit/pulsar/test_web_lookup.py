"""Lookups over HTTP against the embedded broker's own web service, in the virtual world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from mqclient.broker.pulsar.http import Request
from mqclient.errors import ConfigError, LinkError, ProtocolError
from mqclient.io.web import Reply
from mqclient.pulsar import opening
from mqclient.pulsar.auth import basic, token
from mqclient.pulsar.codes import BrokerError, ServerError
from mqclient.pulsar.names import ServiceUrl, TopicName
from tests.support.pulsar_world import PulsarWorld

URL = "http://web:8080,spare:81"


class DoorWeb:
    """Asks the door directly; `answers` come first."""

    def __init__(self, world: PulsarWorld, *answers: Any) -> None:
        self.world = world
        self.answers = list(answers)
        self.seen: list[tuple[str, Mapping[str, str]]] = []

    def get(self, url: str, headers: Mapping[str, str]) -> Any:
        self.seen.append((url, headers))
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        parts = urlsplit(url)
        place = tuple(unquote(part) for part in parts.path.strip("/").split("/"))
        found = self.world.door.rest.answer(Request("GET", place, dict(parse_qsl(parts.query))))
        return Reply(found.status, found.content)


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def test_everything_is_found(world: PulsarWorld) -> None:
    web = DoorWeb(world)
    client = world.client(URL, web=web)
    world.rest("PUT", "persistent/public/default/parted/partitions", 3)
    assert world.do(client, lambda: opening.partitions(client, "parted", None)) == [
        f"persistent://public/default/parted-partition-{number}" for number in range(3)
    ]
    consumer = world.consumer(client, "t/with space?".replace("/", "-"), "s")
    world.sender(world.producer(client, "t-with space?")).send(b"x")
    assert world.face(consumer).receive(5).body == b"x"
    assert "t-with%20space%3F" in web.seen[-1][0]
    assert {url.split("/")[2] for url, _ in web.seen} == {"web:8080", "spare:81"}
    assert world.do(client, lambda: opening.ping(client))


def test_patterns_ask_a_broker_of_the_namespace(world: PulsarWorld) -> None:
    import re

    web = DoorWeb(world)
    client = world.client(URL, web=web)
    world.sender(world.producer(client, "paid-north")).send(b"x")
    web.seen.clear()
    many = world.multi(client, re.compile("public/default/paid-.*"), "s", start="earliest")
    assert world.face(many).receive(5).body == b"x"
    assert web.seen[0][0].endswith("/lookup/v2/topic/persistent/public/default/any")


@pytest.mark.parametrize(
    ("auth", "shown"),
    [
        (None, {}),
        (token("secret"), {"Authorization": "Bearer secret"}),
        (basic("a", "b"), {"Authorization": "Basic YTpi", "X-Pulsar-Auth-Method-Name": "basic"}),
    ],
)
def test_credentials(world: PulsarWorld, auth: Any, shown: dict[str, str]) -> None:
    web = DoorWeb(world)
    client = world.client(URL, web=web, auth=auth)
    world.do(client, lambda: opening.partitions(client, "t", None))
    assert web.seen[0][1] == shown


def test_the_name_of_a_listener(world: PulsarWorld) -> None:
    web = DoorWeb(world)
    client = world.client(URL, web=web, listener="outside")
    world.producer(client, "t")
    assert web.seen[-1][0].endswith("?listenerName=outside")


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, ServerError.AuthenticationError),
        (403, ServerError.AuthorizationError),
        (404, ServerError.TopicNotFound),
        (412, ServerError.NotAllowedError),
    ],
)
def test_refusals(world: PulsarWorld, status: int, code: ServerError) -> None:
    client = world.client(URL, web=DoorWeb(world, Reply(status, "because")))
    with pytest.raises(BrokerError, match=rf"HTTP {status}: because") as refused:
        world.do(client, lambda: opening.partitions(client, "t", None))
    assert refused.value.code == code
    assert refused.value.remote


def test_who_is_known_and_may_not(world: PulsarWorld) -> None:
    said = "Unauthorized to validateTopicOperation for operation [LOOKUP]"
    client = world.client(URL, web=DoorWeb(world, Reply(401, said)))
    with pytest.raises(BrokerError) as refused:
        world.do(client, lambda: opening.partitions(client, "t", None))
    assert refused.value.code == ServerError.AuthorizationError


def test_what_passes_is_tried_again(world: PulsarWorld) -> None:
    web = DoorWeb(world, Reply(503, "not yet"), LinkError("away"), ValueError("odd"))
    client = world.client(URL, web=web)
    assert world.do(client, lambda: opening.partitions(client, "t", None)) == ["persistent://public/default/t"]
    assert len(web.seen) == 4


@pytest.mark.parametrize("content", [[], {"partitions": "3"}, {"partitions": -1}, {}])
def test_strange_answers(world: PulsarWorld, content: Any) -> None:
    client = world.client(URL, web=DoorWeb(world, Reply(200, content)))
    with pytest.raises(ProtocolError, match=r"no JSON object|no number"):
        world.do(client, lambda: opening.partitions(client, "t", None))


@pytest.mark.parametrize("url", ["http://x", "nonsense"])
def test_a_broker_that_is_none(world: PulsarWorld, url: str) -> None:
    client = world.client(URL, web=DoorWeb(world, Reply(200, {"partitions": 0}), Reply(200, {"brokerUrl": url})))
    with pytest.raises(ProtocolError, match="named no usable broker"):
        world.producer(client, "t")


def test_encrypted_lookups_lead_to_encrypted_brokers(world: PulsarWorld) -> None:
    answers = [Reply(200, {"brokerUrl": "pulsar://broker:6650", "brokerUrlTls": None})]
    client = world.client("https://web", web=DoorWeb(world, *answers), tls="context")
    with pytest.raises(ConfigError, match="no address for encrypted connections"):
        world.steps(client, lambda: client.lookup_steps(TopicName.parse("t"), client.deadline()))


def test_somebody_has_to_ask(world: PulsarWorld) -> None:
    with pytest.raises(ConfigError, match="need somebody who asks"):
        world.client(URL)


def test_a_probe(world: PulsarWorld) -> None:
    refused, away = Reply(403, "no"), Reply(503, "no")
    client = world.client(URL, web=DoorWeb(world, refused, away, away, LinkError("gone")))
    url = ServiceUrl.parse(URL)
    world.steps(client, lambda: client.probe_steps(url))
    with pytest.raises(LinkError, match="HTTP 503"):
        world.steps(client, lambda: client.probe_steps(url))
    world.steps(client, lambda: client.probe_steps(url))  # the first host is gone, the second one is there
