"""Keys choose partitions as in every other Pulsar client."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient._impl import Impl
from mqclient.spark.hashing import routes

pa: Any = pytest.importorskip("pyarrow")
KEYS = ["a", "", None, "key-0000017", "ключ", "日本", "\U0001f600", *(f"k{number}" for number in range(300))]


@pytest.mark.parametrize("first", [0, 4])
@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_as_the_client_itself_hashes(codec: Impl, first: int, kind: Any) -> None:
    digest = codec.digest
    wanted = [None if key is None else (digest.java_string_hash(key) & 0x7FFFFFFF) % 7 for key in KEYS[first:]]
    assert routes(pa.array(KEYS).cast(kind)[first:], 7).to_pylist() == wanted
