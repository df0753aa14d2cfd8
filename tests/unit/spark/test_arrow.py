"""Buffers become record batches as Spark wants them."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient._impl import Impl
from mqclient.spark.arrow import Column, Maker, gathered
from mqclient.spark.schema import ROCKETMQ, by_name

pa: Any = pytest.importorskip("pyarrow")
SPARK = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("broker", pa.string()),
        ("queue", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("tag", pa.string()),
        ("properties", pa.map_(pa.string(), pa.string())),
    ]
)


def stored(codec: Impl, count: int) -> Any:
    """A pull reply's batch."""
    encode = codec.remoting.encode_properties
    records = [
        codec.remoting.encode_message(
            b"body %d" % number,
            "orders",
            properties=encode({"TAGS": "t", "n": str(number)} if number % 2 else {"KEYS": "k"}),
            offset=number,
            stored_at=1_700_000_000_000 + number,
        )
        for number in range(count)
    ]
    return codec.remoting.decode_messages(b"".join(records))


def test_every_column_as_spark_wants_it(codec: Impl) -> None:
    batch, maker = stored(codec, 3), Maker(SPARK, by_name(ROCKETMQ))
    made = maker.record_batch(batch.columns(maker.native), 3, {"topic": "orders", "broker": "a", "queue": 7})
    made.validate(full=True)
    assert made.schema.equals(SPARK)
    rows = made.to_pylist()
    assert [row["value"] for row in rows] == [b"body 0", b"body 1", b"body 2"]
    assert [(row["key"], row["tag"]) for row in rows] == [(b"k", None), (None, "t"), (b"k", None)]
    assert [dict(row["properties"]).get("n") for row in rows] == [None, "1", None]
    assert {(row["topic"], row["broker"], row["queue"]) for row in rows} == {("orders", "a", 7)}
    assert rows[1]["timestamp"].timestamp() == 1_700_000_000.001


def test_only_what_is_wanted_is_asked_for() -> None:
    maker = Maker(pa.schema([("offset", pa.int64()), ("topic", pa.string())]), by_name(ROCKETMQ))
    assert maker.native == ["offset"]


def test_repeated_values_change_with_their_batch() -> None:
    columns = {"topic": Column("topic", "string"), "entryId": Column("entryId", "bigint")}
    maker = Maker(pa.schema([("topic", pa.string()), ("entryId", pa.int64())]), columns)
    for number in range(200):
        rows = maker.record_batch({}, number + 1, {"topic": f"t{number % 3}", "entryId": number}).to_pylist()
        assert rows == [{"topic": f"t{number % 3}", "entryId": number}] * (number + 1)


def test_small_batches_are_joined_up_to_the_limits() -> None:
    def pieces(*sizes: int) -> list[Any]:
        return [pa.RecordBatch.from_arrays([pa.array(range(size), pa.int64())], ["n"]) for size in sizes]

    def joined(rows: int, size: int, *sizes: int) -> list[int]:
        return [len(batch) for batch in gathered(pieces(*sizes), rows, size)]

    assert joined(10, 1 << 20, 4, 4, 4, 20, 1) == [8, 4, 20, 1]
    assert joined(1000, 80, 4, 4, 4) == [8, 4]
    assert joined(10, 10) == []
