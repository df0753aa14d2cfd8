"""Which partition: hashes as the other clients have them, and the user's function, checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqclient import _impl
from mqclient.errors import ConfigError
from mqclient.pulsar.routing import Routed, key_hash, router

RECORDED = Path(__file__).parents[2] / "vectors" / "digest.json"


@pytest.mark.parametrize("name", ["java", "murmur3"])
def test_hashes(codec: Any, name: str) -> None:
    assert key_hash(codec.digest, name)("k1") % 2**31 == key_hash(_impl.select("pure").digest, name)("k1")
    assert key_hash(codec.digest, name)("ключ") >= 0


@pytest.mark.parametrize("name", ["murmur3", "boost"])
def test_as_the_official_client_has_them(codec: Any, name: str) -> None:
    """By its own functions (see the file): each name means the hash that it says."""
    recorded = [(bytes.fromhex(one["hex"]), one[name]) for one in json.loads(RECORDED.read_text())["keys"]]
    texts = [(key.decode(), number) for key, number in recorded if key.isascii()]
    assert len(texts) > 5
    assert [(key, key_hash(codec.digest, name)(key)) for key, _ in texts] == texts


def test_java_s_own(codec: Any) -> None:
    """`"order-42".hashCode() & Integer.MAX_VALUE`, by the definition of String.hashCode."""
    value = 0
    for letter in "order-42":
        value = (31 * value + ord(letter)) % 2**32
    assert key_hash(codec.digest, "java")("order-42") == value & 0x7FFFFFFF


def test_boost_is_not_negative(codec: Any) -> None:
    assert all(key_hash(codec.digest, "boost")(f"key-{number}") >= 0 for number in range(50))


def test_the_user_s_function() -> None:
    asked: list[Any] = []

    def route(key: str | None, properties: Any, count: int) -> int:
        asked.append((key, properties, count))
        return 1

    prepare = router(route, lambda: 3)
    assert prepare(b"x", "k", {"a": "b"}) == Routed((b"x", "k", {"a": "b"}, 0, None, -1, False), 1)
    assert asked == [("k", {"a": "b"}, 3)]


@pytest.mark.parametrize("answer", [3, -1, None, "0"])
def test_what_it_may_not_return(answer: Any) -> None:
    with pytest.raises(ConfigError, match="0 to 2"):
        router(lambda *_: answer, lambda: 3)(b"x")
