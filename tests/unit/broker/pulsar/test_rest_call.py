"""What a call names, and its body."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.broker.pulsar.http import Request
from mqclient.broker.pulsar.rest_call import Call, RestError
from tests.support.pulsar_world import PulsarWorld

PARTS = {"domain": "persistent", "tenant": "public", "namespace": "default", "topic": "t"}


def call(codec: Any, body: bytes = b"", query: dict[str, str] | None = None, **parts: str) -> Call:
    world = PulsarWorld(codec)
    world.rest("PUT", "persistent/public/default/t")
    world.rest("PUT", "persistent/public/default/p/partitions", 2)
    return Call(world.door, Request("GET", (), query or {}, body=body), {**PARTS, **parts})


def test_bodies(codec: Any) -> None:
    assert call(codec, b" ").json("nothing") == "nothing"
    assert call(codec, b"3").number(1) == 3
    assert call(codec, b'{"a": 1}').object() == {"a": 1}
    for body in (b"true", b"0", b'"3"'):
        with pytest.raises(RestError):
            call(codec, body).number(1)
    with pytest.raises(RestError):
        call(codec, b"[]").object()
    assert call(codec, query={"force": "TRUE"}).flag("force")


def test_names(codec: Any) -> None:
    assert str(call(codec).name) == "persistent://public/default/t"
    assert [topic.text for topic in call(codec).stored()] == ["persistent://public/default/t"]
    assert [topic.partition for topic in call(codec, topic="p").stored()] == [0, 1]
    assert call(codec).one().partition == -1
    refused_parts: tuple[tuple[dict[str, Any], int], ...] = (
        ({"namespace": "x"}, 404),
        ({"topic": "a/b"}, 412),
        ({"topic": "nobody"}, 404),
        ({"topic": "p"}, 405),
    )
    for parts, status in refused_parts:
        with pytest.raises(RestError) as refused:
            call(codec, **parts).one()
        assert refused.value.status == status
