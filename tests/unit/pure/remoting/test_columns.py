"""Arrow columns out of a batch, and rows of Arrow into one, by both twins."""

from __future__ import annotations

from itertools import accumulate
from types import ModuleType
from typing import Any

import pytest

from mqclient._impl import Impl
from mqclient.errors import ConfigError
from tests.support.remoting import message


@pytest.fixture
def remoting(codec: Impl) -> ModuleType:
    return codec.remoting


def test_columns_are_what_arrow_expects(remoting: ModuleType) -> None:
    pa = pytest.importorskip("pyarrow")
    maps = [{"TAGS": "a", "KEYS": "k1 k2", "x": "1"}, {}, {"UNIQ_KEY": "ID", "ä": "ö", "TAGS": "b"}]
    data = b"".join(
        message(remoting, b"body" * i, offset=i, mapping=mapping, flag=-i, attempts=i) for i, mapping in enumerate(maps)
    )
    batch = remoting.decode_messages(data)
    columns = batch.columns()
    assert tuple(columns) == remoting.COLUMNS

    def array(name: str, kind: Any) -> Any:
        return pa.Array.from_buffers(kind, 3, [part and pa.py_buffer(part) for part in columns[name]]).to_pylist()

    for name in ("body", "topic", "message_id"):
        kind = pa.binary() if name == "body" else pa.utf8()
        assert array(name, kind) == [getattr(one, name) for one in batch]
    assert array("tag", pa.utf8()) == ["a", None, "b"]
    assert array("keys", pa.utf8()) == ["k1 k2", None, None]
    for name in ("offset", "physical_offset", "born_at", "stored_at"):
        assert array(name, pa.int64()) == [getattr(one, name) for one in batch]
    for name in ("queue_id", "flag", "sys_flag", "attempts"):
        assert array(name, pa.int32()) == [getattr(one, name) for one in batch]
    _, rows, *texts = columns["properties"]
    names, values = (
        pa.Array.from_buffers(pa.utf8(), 6, [None, *(pa.py_buffer(part) for part in pair)])
        for pair in (texts[:2], texts[2:])
    )
    made = pa.MapArray.from_arrays(pa.Array.from_buffers(pa.int32(), 4, [None, pa.py_buffer(rows)]), names, values)
    assert [dict(row) for row in made.to_pylist()] == maps
    with pytest.raises(ConfigError, match="nonesuch"):
        batch.columns(["nonesuch"])


def test_columns_of_several_batches_are_one(remoting: ModuleType) -> None:
    pa = pytest.importorskip("pyarrow")
    rows = [{"TAGS": f"t{number}"} if number % 2 else {"n": str(number), "m": "x"} for number in range(12)]
    stored = [
        message(remoting, b"%d" % number, offset=number, mapping=row, attempts=number)
        for number, row in enumerate(rows)
    ]
    first, *more = (remoting.decode_messages(b"".join(stored[start:stop])) for start, stop in ((0, 2), (2, 3), (3, 12)))
    columns = first.columns(None, more)
    assert tuple(columns) == remoting.COLUMNS

    def array(name: str, kind: Any) -> Any:
        return pa.Array.from_buffers(kind, 12, [part and pa.py_buffer(part) for part in columns[name]]).to_pylist()

    assert array("body", pa.binary()) == [b"%d" % number for number in range(12)]
    assert array("tag", pa.utf8()) == [row.get("TAGS") for row in rows]
    assert array("offset", pa.int64()) == array("attempts", pa.int32()) == list(range(12))
    assert array("message_id", pa.utf8()) == [one.message_id for batch in (first, *more) for one in batch]
    assert list(memoryview(columns["properties"][1]).cast("i")) == [0, *accumulate(map(len, rows))]
    with pytest.raises(TypeError, match="not of str"):
        first.columns(["body"], ["no batch"])


def test_rows_of_arrow_become_a_batch(remoting: ModuleType) -> None:
    batch = remoting.decode_messages(
        b"".join(message(remoting, b"b%d" % i, mapping={"TAGS": f"t{i}", "x": str(i)} if i else {}) for i in range(4))
    )
    columns = batch.columns(["body", "tag", "keys"])
    keys = remoting.UniqueKeys(b"\x7f\0\0\1", 1, 2)
    body = remoting.encode_columns(columns, 0, 2, unique=keys, now_ms=1_700_000_000_000)
    first, second = ((one, remoting.decode_properties(text)) for _, one, text in remoting.split_batch(body))
    assert first[0] == b"b0"
    assert first[1].keys() == {"UNIQ_KEY", "WAIT"}
    assert remoting.parse_unique_key(second[1].pop("UNIQ_KEY"))[4] == 1
    assert second == (b"b1", {"WAIT": "true", "TAGS": "t1"})
    columns = batch.columns(["body", "properties", "flag"])
    (last,) = remoting.split_batch(remoting.encode_columns(columns, 3, 4, wait=False))
    assert last == (0, b"b3", b"WAIT\x01false\x02TAGS\x01t3\x02x\x013\x02")
    assert remoting.encode_columns(columns, 2, 2) == b""
    for start, stop, wrong in ((0, 5, columns), (2, 1, columns), (0, 1, {}), (0, 1, {**columns, "topic": ()})):
        with pytest.raises(ConfigError):
            remoting.encode_columns(wrong, start, stop)
