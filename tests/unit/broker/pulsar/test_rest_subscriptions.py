"""Subscriptions over HTTP: where they begin, go on and end."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.broker.pulsar.http import Request
from tests.support.pulsar_world import PulsarWorld, RawClient

T = "persistent/public/default/t"


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


@pytest.fixture
def raw(world: PulsarWorld) -> RawClient:
    raw = RawClient(world)
    raw.produce([b"a"], [b"b", b"c"], [b"d"], [b"e"])
    return raw


def bodies(raw: RawClient, **fields: Any) -> list[bytes]:
    """What a subscription has left."""
    raw.subscribe(**fields)
    found = [message.body for entry in raw.flow(100) for message in raw.codec.decode_messages(entry)]
    raw.ask("CLOSE_CONSUMER", consumer_id=0)
    return found


@pytest.mark.parametrize(
    ("position", "left"),
    [
        ({"ledgerId": -1, "entryId": -1}, [b"a", b"b", b"c", b"d", b"e"]),
        ({"ledgerId": 2**63 - 1, "entryId": 2**63 - 1}, []),
        ({"ledgerId": 1, "entryId": 2}, [b"d", b"e"]),
        ("earliest", [b"a", b"b", b"c", b"d", b"e"]),
        ("latest", []),
        (None, []),
    ],
)
def test_where_a_new_one_begins(world: PulsarWorld, raw: RawClient, position: Any, left: list[bytes]) -> None:
    assert world.rest("PUT", f"{T}/subscription/s", position) is None
    assert bodies(raw) == left


def test_making_listing_deleting(world: PulsarWorld, raw: RawClient) -> None:
    assert world.rest("PUT", f"{T}/subscription/s", {"entryId": 1}) == 400
    world.rest("PUT", f"{T}/subscription/s")
    assert world.rest("PUT", f"{T}/subscription/s") == 409
    raw.subscribe(subscription="reader", durable=False)
    assert world.rest("GET", f"{T}/subscriptions") == ["s"]
    raw.subscribe(1)
    assert world.rest("DELETE", f"{T}/subscription/s") == 412
    assert world.rest("DELETE", f"{T}/subscription/s", force="true") is None
    assert [name for name, _ in raw.events][-1] == "CLOSE_CONSUMER"
    assert world.rest("DELETE", f"{T}/subscription/s") == 404


def test_moving(world: PulsarWorld, raw: RawClient) -> None:
    world.rest("PUT", f"{T}/subscription/s", "earliest")
    assert world.rest("POST", f"{T}/subscription/s/skip/2") is None
    assert bodies(raw) == [b"d", b"e"]
    world.rest("POST", f"{T}/subscription/s/resetcursor", {"ledgerId": 1, "entryId": 3})
    assert bodies(raw) == [b"e"]
    world.rest("POST", f"{T}/subscription/s/skip_all")
    assert bodies(raw) == []
    world.rest("POST", f"{T}/subscription/s/resetcursor/0")
    assert len(bodies(raw)) == 5
    world.rest("POST", f"{T}/subscription/s/resetcursor/{world.world.wall_ms + 1000}")
    assert bodies(raw) == []
    assert world.rest("POST", f"{T}/subscription/s/resetcursor/yesterday") == 400
    assert world.rest("POST", f"{T}/subscription/nobody/skip_all") == 404


def test_looking(world: PulsarWorld, raw: RawClient) -> None:
    world.rest("PUT", f"{T}/subscription/s", "earliest")
    place = ("admin", "v2", *T.split("/"), "subscription", "s", "position")
    first = world.door.rest.answer(Request("GET", (*place, "1")))
    assert (first.content, first.headers["X-Pulsar-Message-ID"]) == (b"a", "1:0")
    assert world.door.rest.answer(Request("GET", (*place, "2"))).headers["X-Pulsar-num-batch-message"] == "2"
    assert world.door.rest.answer(Request("GET", (*place, "5"))).status == 404


def test_properties_that_fit_into_headers(world: PulsarWorld, raw: RawClient) -> None:
    raw.ask("PRODUCER", topic="u", producer_id=5)
    properties = {"good": "one", "bad": "a\r\nSet-Cookie: x"}
    metadata = raw.codec.encode_metadata("raw", 0, 1, properties=properties)
    raw.write(raw.codec.encode_send(5, 0, metadata, b"x"))
    world.rest("PUT", "persistent/public/default/u/subscription/s", "earliest")
    place = ("admin", "v2", "persistent", "public", "default", "u", "subscription", "s", "position", "1")
    headers = world.door.rest.answer(Request("GET", place)).headers
    assert [name for name in headers if "PROPERTY" in name] == ["X-Pulsar-PROPERTY-good"]
