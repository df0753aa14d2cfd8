"""Buffers become record batches as Spark wants them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import pytest

from mqclient._impl import Impl
from mqclient.spark.arrow import Column, Maker, Piece, gathered
from mqclient.spark.schema import MAP, PULSAR, ROCKETMQ, by_name

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


class Given(NamedTuple):
    """A batch of offsets, or of nothing."""

    rows: int

    def columns(self, names: Collection[str], more: Sequence[Given] = ()) -> dict[str, tuple[Any, ...]]:
        return dict.fromkeys(names, (None, bytes(8 * sum(one.rows for one in (self, *more)))))


def entries(codec: Impl, *counts: int) -> list[Piece]:
    """Entries of Pulsar, whose rows tell where they are from."""
    found, pulsar = [], codec.pulsar
    for number, count in enumerate(counts):
        builder = pulsar.BatchBuilder()
        for row in range(count):
            builder.add(b"%d-%d" % (number, row), f"k{row}" if row % 2 else None, {"n": str(number)})
        payload, _ = builder.seal()
        metadata = pulsar.encode_metadata("p", 0, 1_700_000_000_000 + number, num_messages=count)
        checked = pulsar.encode_send(0, 0, metadata, payload)
        ((_, entry),) = pulsar.FrameReader().feed(
            pulsar.encode_message(1, 7, number, checked[checked.index(b"\x0e\x01") :])
        )
        same = {"topic": "orders", "partition": -1, "ledgerId": 7, "entryId": number}
        found.append(Piece(pulsar.decode_messages(entry), count, len(payload), same, 0, count))
    return found


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


def whole(batch: Any, first: int = 0, last: int | None = None) -> Piece:
    same = {"topic": "orders", "broker": "a", "queue": 7}
    return Piece(batch, len(batch), batch.size, same, first, len(batch) if last is None else last)


def test_every_column_as_spark_wants_it(codec: Impl) -> None:
    batch, maker = stored(codec, 3), Maker(SPARK, by_name(ROCKETMQ))
    made = maker.record_batch([whole(batch)])
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
    made = maker.record_batch([whole(batch, 1, 3), whole(batch), whole(batch, 5)])
    made.validate(full=True)
    rows = made.to_pylist()
    assert [row["offset"] for row in rows] == [1, 2, 0, 1, 2, 3, 4, 5, 5]
    assert [row["tag"] for row in rows] == ["t", None, None, "t", None, "t", None, "t", "t"]
    assert rows[-1] == {**rows[7]}


@pytest.mark.parametrize("cut", [False, True])
def test_entries_become_one_batch(codec: Impl, cut: bool) -> None:
    kinds = {"binary": pa.binary(), "string": pa.string(), "int": pa.int32(), "bigint": pa.int64()}
    kinds |= {"timestamp": pa.timestamp("us", tz="UTC"), MAP: pa.map_(pa.string(), pa.string())}
    wanted = pa.schema([(column.name, kinds[column.type]) for column in PULSAR if column.default])
    maker, pieces = Maker(wanted, by_name(PULSAR)), entries(codec, 3, 1, 4)
    if cut:  # where a range begins and ends
        pieces = [pieces[0]._replace(first=1), pieces[1], pieces[2]._replace(last=2)]
    made = maker.record_batch(pieces)
    made.validate(full=True)
    assert made.schema.equals(wanted)
    places = [(number, row) for number, count in enumerate((3, 1, 4)) for row in range(count)]
    places = places[1:-2] if cut else places
    rows = made.to_pylist()
    assert [row["value"] for row in rows] == [b"%d-%d" % place for place in places]
    assert [(row["entryId"], row["batchIndex"]) for row in rows] == places
    assert [row["key"] for row in rows] == [b"k%d" % row if row % 2 else None for _, row in places]
    assert [dict(row["properties"]) for row in rows] == [{"n": str(number)} for number, _ in places]
    assert [row["timestamp"].microsecond for row in rows] == [1000 * number for number, _ in places]
    assert {(row["topic"], row["partition"], row["ledgerId"]) for row in rows} == {("orders", -1, 7)}


def test_shared_values_change_with_their_piece() -> None:
    columns = {"topic": Column("topic", "string"), "entryId": Column("entryId", "bigint")}
    maker = Maker(pa.schema([("topic", pa.string()), ("entryId", pa.int64())]), columns)

    def piece(number: int) -> Piece:
        return Piece(Given(number), number, 8 * number, {"topic": f"t{number // 7}", "entryId": number}, 0, number)

    for number in range(1, 20):
        rows = maker.record_batch([piece(number), piece(number + 1)]).to_pylist()
        wanted = [number] * number + [number + 1] * (number + 1)
        assert [row["entryId"] for row in rows] == wanted
        assert [row["topic"] for row in rows] == [f"t{other // 7}" for other in wanted]


def test_small_pieces_are_gathered_up_to_the_limits() -> None:
    maker = Maker(pa.schema([("offset", pa.int64())]), {"offset": Column("offset", "bigint", "offset")})

    def sizes(rows: int, size: int, *counts: int) -> list[int]:
        pieces = [Piece(Given(count), count, 8 * count, {}, 0, count) for count in counts]
        return [len(batch) for batch in gathered(pieces, maker, rows, size)]

    assert sizes(10, 1 << 20, 4, 4, 4, 20, 1) == [8, 4, 20, 1]
    assert sizes(1000, 100, 4, 4, 4, 4) == [12, 4]
    assert sizes(1000, 80, 1, 20, 1, 1) == [1, 20, 2]
    assert sizes(10, 10) == []
