"""The columns of a sink on their way out: options over columns, times, ids of rows, groups."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from mqclient.spark import rows, write_options
from mqclient.spark.rows import Place, Shaper

pa: Any = pytest.importorskip("pyarrow")
MAP = pa.map_(pa.string(), pa.string())
PLACE = Place("query", "7", 3)


def shaped(columns: dict[str, Any], row: int = 0, drop: frozenset[str] = frozenset(), **given: str) -> list[Any]:
    asked = write_options.write_options(
        {"nameServer": "a:1", "topic": "t", "tracking": "false", **given}, write_options.ROCKETMQ_SINK, "f"
    )
    known = {**write_options.ROCKETMQ_COLUMNS, "eventTime": ("timestamp",)}
    made = Shaper(known, asked, PLACE, "f", drop).shape(pa.RecordBatch.from_pydict(columns), row)
    made.validate(full=True)
    return list(made.to_pylist())


def maps(*found: dict[str, str] | None) -> Any:
    return pa.array([None if one is None else list(one.items()) for one in found], MAP)


def test_options_win_over_columns() -> None:
    found = shaped({"VALUE": ["a"], "tags": ["void"]}, tag="paid", queue="2", properties='{"x": "y"}')
    assert found == [{"value": "a", "tag": "paid", "queue": 2, "properties": [("x", "y")]}]


def test_an_option_that_delays_wins_over_every_column_that_does() -> None:
    assert shaped({"value": ["a"], "delayLevel": [3]}, delay="2") == [{"value": "a", "delaySeconds": 2.0}]


def test_times_become_milliseconds_whatever_their_label_says() -> None:
    when = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=timezone.utc)
    times = pa.array([when, None], pa.timestamp("us", tz="Asia/Tokyo"))
    found = shaped({"value": ["a", "b"], "eventTime": times})
    assert [row["eventTime"] for row in found] == [int(when.timestamp() * 1000), None]


def test_ids_of_rows_stand_behind_the_properties() -> None:
    given = {"value": ["a", "b", "c"], "properties": maps({"x": "1", "y": "2"}, None, {})}
    found = shaped(given, row=10, tracking="true")
    assert [dict(row["properties"]) for row in found] == [
        {"x": "1", "y": "2", "sparkRow": "query/7/3/10"},
        {"sparkRow": "query/7/3/11"},
        {"sparkRow": "query/7/3/12"},
    ]
    assert shaped(given, row=10, tracking="true") == found
    assert [dict(row["properties"]) for row in shaped({"value": ["a"]}, tracking="true")] == [
        {"sparkRow": "query/7/3/0"}
    ]


@pytest.mark.parametrize(("first", "count"), [(0, 0), (0, 1), (0, 12), (8, 4), (95, 1010), (10**9 - 2, 5)])
def test_numbers_of_any_width(first: int, count: int) -> None:
    made = rows.numbered("q/7/3/", first, count)
    made.validate(full=True)
    assert made.to_pylist() == [f"q/7/3/{number}" for number in range(first, first + count)]


def test_an_id_from_upstream_is_replaced() -> None:
    given = {"value": ["a"], "properties": maps({"sparkRow": "other/1/2/3"})}
    assert dict(shaped(given, tracking="true")[0]["properties"]) == {"sparkRow": "query/7/3/0"}


def test_slices_give_what_is_in_them() -> None:
    whole = maps({"gone": "0"}, {"a": "1"}, {"b": "2", "c": "3"}, {"gone": "4"})
    found = rows.with_ids(whole[1:3], "p", 0, 2)
    assert found.to_pylist() == [[("a", "1"), ("sparkRow", "p/0")], [("b", "2"), ("c", "3"), ("sparkRow", "p/1")]]
    assert rows.without(whole[1:3], frozenset({"b"})).to_pylist() == [[("a", "1")], [("c", "3")]]
    hidden = pa.MapArray.from_arrays(pa.array([0, None, 2], pa.int32()), ["a", "b"], ["1", "2"])
    assert rows.with_ids(hidden, "p", 0, 2).to_pylist()[1] == [("sparkRow", "p/1")]


def test_what_a_system_makes_itself_is_dropped() -> None:
    given = {"value": ["a", "b"], "properties": maps({"UNIQ_KEY": "1", "x": "2"}, {"TAGS": "t"})}
    found = shaped(given, drop=frozenset({"UNIQ_KEY", "TAGS"}))
    assert [row["properties"] for row in found] == [[("x", "2")], []]
    plain = maps({"x": "1"})
    assert rows.without(plain, frozenset({"TAGS"})) is plain


def test_groups_come_in_the_order_of_their_first_rows() -> None:
    batch = pa.RecordBatch.from_pydict({"q": [2, None, 1, 2, None]})
    found = [(value, None if at is None else at.to_pylist()) for value, at in rows.groups(batch, "q")]
    assert found == [(2, [0, 3]), (None, [1, 4]), (1, [2])]
    assert [value for value, at in rows.groups(batch[:1], "q") if at is None] == [2]
    assert rows.taken(batch, None) is batch
    assert rows.taken(batch, pa.array([2])).to_pylist() == [{"q": 1}]


def test_which_rows_are_delayed() -> None:
    def found(**columns: Any) -> Any:
        mask = rows.delayed(pa.RecordBatch.from_pydict(columns))
        return None if mask is None else mask.to_pylist()

    assert found(value=["a"]) is None
    assert found(delayLevel=[0, None]) is None
    assert found(delayLevel=[0, 3, None], deliverAt=[5, None, None]) == [True, True, False]


def test_the_first_empty_row() -> None:
    assert rows.first_empty(pa.array(["a", "", None])) == 1
    assert rows.first_empty(pa.array([b"a", None])) == 1
    assert rows.first_empty(pa.array(["a"])) is None
    assert rows.first_empty(pa.array([], pa.string())) is None


def test_rows_as_objects_where_they_travel_alone() -> None:
    assert rows.text_of(b"k") == rows.text_of("k") == "k"
    assert rows.bytes_of("k") == rows.bytes_of(b"k") == b"k"
    assert rows.properties_of({"properties": [("a", "1"), ("b", None)]}) == {"a": "1"}
    assert rows.properties_of({}) == {}


def test_pieces_are_about_as_large_as_asked() -> None:
    batch = pa.RecordBatch.from_pydict({"value": ["x" * 96] * 100})
    assert [(len(piece), start) for piece, start in rows.pieces(batch, 5000)] == [(50, 0), (50, 50)]
