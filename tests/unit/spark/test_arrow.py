"""Buffers become record batches as Spark wants them."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient._impl import Impl
from mqclient.spark.arrow import Column, Maker, Piece, gathered
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


def whole(batch: Any, maker: Maker, first: int = 0, last: int | None = None) -> Piece:
    same = {"topic": "orders", "broker": "a", "queue": 7}
    return Piece(batch.columns(maker.native), len(batch), same, first, len(batch) if last is None else last)


def test_every_column_as_spark_wants_it(codec: Impl) -> None:
    batch, maker = stored(codec, 3), Maker(SPARK, by_name(ROCKETMQ))
    made = maker.record_batch([whole(batch, maker)])
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


def test_pieces_are_joined_and_cut(codec: Impl) -> None:
    maker = Maker(SPARK, by_name(ROCKETMQ))
    batch = stored(codec, 6)
    made = maker.record_batch([whole(batch, maker, 1, 3), whole(batch, maker), whole(batch, maker, 5)])
    made.validate(full=True)
    rows = made.to_pylist()
    assert [row["offset"] for row in rows] == [1, 2, 0, 1, 2, 3, 4, 5, 5]
    assert [row["tag"] for row in rows] == ["t", None, None, "t", None, "t", None, "t", "t"]
    assert rows[-1] == {**rows[7]}


def test_shared_values_change_with_their_piece() -> None:
    columns = {"topic": Column("topic", "string"), "entryId": Column("entryId", "bigint")}
    maker = Maker(pa.schema([("topic", pa.string()), ("entryId", pa.int64())]), columns)

    def piece(number: int) -> Piece:
        return Piece({}, number, {"topic": f"t{number // 7}", "entryId": number}, 0, number)

    for number in range(1, 20):
        rows = maker.record_batch([piece(number), piece(number + 1)]).to_pylist()
        wanted = [number] * number + [number + 1] * (number + 1)
        assert [row["entryId"] for row in rows] == wanted
        assert [row["topic"] for row in rows] == [f"t{other // 7}" for other in wanted]


def test_small_pieces_are_gathered_up_to_the_limits() -> None:
    maker = Maker(pa.schema([("offset", pa.int64())]), {"offset": Column("offset", "bigint", "offset")})

    def sizes(rows: int, size: int, *counts: int) -> list[int]:
        pieces = [Piece({"offset": (None, bytes(8 * count))}, count, {}, 0, count) for count in counts]
        return [len(batch) for batch in gathered(pieces, maker, rows, size)]

    assert sizes(10, 1 << 20, 4, 4, 4, 20, 1) == [8, 4, 20, 1]
    assert sizes(1000, 100, 4, 4, 4, 4) == [12, 4]
    assert sizes(1000, 80, 1, 4, 1, 1) == [1, 4, 2]  # a large one alone, and not copied
    assert sizes(10, 10) == []
