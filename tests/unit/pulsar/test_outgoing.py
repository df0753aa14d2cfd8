"""The form of messages to be sent: what is accepted, what is refused with its cure."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.pulsar.outgoing import (
    Mixed,
    Scattered,
    Special,
    as_item,
    as_run,
    moment,
    plain,
    prepare,
    prepare_many,
    preparing,
    results,
    size_of,
    valued,
    within,
)
from mqclient.pulsar.schema import AUTO_CONSUME, BYTES, STRING, KeyValue


def test_plain_ones_are_tuples() -> None:
    born = datetime(1970, 1, 1, 0, 0, 5, tzinfo=timezone.utc)
    assert prepare(b"x", "k", {"a": "b"}, born, b"o", 7) == (b"x", "k", {"a": "b"}, 5000, b"o", 7, False)
    assert prepare(None)[0] is None
    assert (size_of(prepare(None)), size_of(prepare(b"abc"))) == (0, 3)
    assert as_item(b"x") == prepare(b"x")
    assert plain(prepare(b"x")) == prepare(b"x")


def test_keys_of_bytes_travel_as_base64() -> None:
    assert prepare(b"x", b"\xff\x00") == (b"x", "/wA=", None, 0, None, -1, True)


def test_values_of_a_schema() -> None:
    make = valued(STRING)
    assert make("\u00e9", "k", sequence_id=3) == prepare(b"\xc3\xa9", "k", sequence_id=3)
    assert not make.pairs
    apart = valued(KeyValue(STRING, STRING, "separated"))
    assert prepare_many([("k", "v")], apart) == [prepare(b"v", b"k")]
    with pytest.raises(ConfigError, match="the key is that of the value"):
        apart(("k", "v"), "another")
    with pytest.raises(ConfigError, match="AUTO_CONSUME is for consumers"):
        valued(AUTO_CONSUME)


def test_another_schema_than_the_producer_s_travels_with_the_message() -> None:
    assert preparing(STRING, None) is prepare
    assert preparing(STRING, STRING)("x") == prepare(b"x")
    for own in (None, BYTES):
        assert preparing(own, STRING)("x") == Special(prepare(b"x"), schema=STRING.info)


def test_special_ones_carry_a_plain_one() -> None:
    item = prepare(b"x")
    when = datetime(1970, 1, 2, tzinfo=timezone.utc)
    assert prepare(b"x", deliver_at=when) == Special(item, 86_400_000)
    assert prepare(b"x", deliver_after=timedelta(seconds=1.5)) == Special(item, None, 1500)
    assert prepare(b"x", deliver_after=0.25) == Special(item, None, 250)
    assert prepare(b"x", replicate_to=[]).replicate_to == ("__local__",)
    assert prepare(b"x", replicate_to=["north"]).replicate_to == ("north",)
    assert plain(prepare(b"x", deliver_at=5)) == item


@pytest.mark.parametrize(
    ("given", "cure"),
    [
        ({"sequence_id": -1}, "not negative"),
        ({"sequence_id": "1"}, "whole number"),
        ({"sequence_id": True}, "whole number"),
        ({"event_time": datetime(2024, 1, 1)}, "time zone"),
        ({"deliver_at": 1, "deliver_after": 1}, "one of them"),
        ({"deliver_after": -1}, "before it is sent"),
        ({"replicate_to": "north"}, "a list of cluster names"),
    ],
)
def test_mistakes_name_the_cure(given: Any, cure: str) -> None:
    with pytest.raises(ConfigError, match=cure):
        prepare(b"x", **given)


@pytest.mark.parametrize("properties", [{"a": 1}, {1: "a"}, {"a": None}, {"a": b"x"}])
def test_properties_are_text(properties: Any) -> None:
    with pytest.raises(TypeError, match=r"names and values are text, not .*: str\(\) them"):
        prepare(b"x", properties=properties)


def test_bodies_are_bytes() -> None:
    wrong: Any
    for wrong, cure in (("text", "encode"), ({"a": 1}, "json"), (5, "bytes-like")):
        with pytest.raises(TypeError, match=cure):
            prepare(wrong)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"key": 7}, "a key is str or bytes, not int"),
        ({"ordering_key": "x"}, "an ordering key is bytes, not str"),
        ({"properties": ["a"]}, "properties are a mapping of str to str, not list"),
    ],
)
def test_what_belongs_to_a_body_is_of_its_kind(given: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        prepare(b"x", **given)
    assert prepare(b"x", properties=MappingProxyType({"a": "b"}))[2] == {"a": "b"}


def test_many_stay_simple_where_they_can() -> None:
    bodies = [b"a", b"b"]
    assert prepare_many(bodies) is bodies
    items = prepare_many([b"a", (b"b", "k"), {"body": b"c", "key": "k"}])
    assert [item[:2] for item in items] == [(b"a", None), (b"b", "k"), (b"c", "k")]
    assert type(items) is list
    assert type(prepare_many([b"a", {"body": b"b", "sequence_id": 4}])) is Mixed
    assert type(prepare_many([{"body": b"b", "deliver_after": 1}])) is Mixed
    assert type(as_run([b"a", prepare(b"b")])) is list


def test_times() -> None:
    assert moment("event_time", 5) == 5
    assert moment("event_time", datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone(timedelta(hours=1)))) == -3_599_000


class Done:
    """A batch whose outcomes are its name and a number."""

    def __init__(self, name: str) -> None:
        self.name = name

    def outcomes(self, start: int, stop: int) -> list[str]:
        return [f"{self.name}{number}" for number in range(start, stop)]


def test_outcomes_in_the_order_of_what_was_given() -> None:
    a: Any = Done("a")
    b: Any = Done("b")
    assert results([(a, 0, 2), (b, 3, 4)]) == ["a0", "a1", "b3"]  # type: ignore[list-item]
    ways: Any = [([0, 2], [(a, 0, 2)]), (range(1, 2), [(b, 0, 1)])]
    assert results(Scattered(3, ways)) == ["a0", "b0", "a1"]


def test_messages_of_a_transaction() -> None:
    engine: Any = object()
    txn = SimpleNamespace(engine=engine)
    make = within(prepare, txn)
    assert make(b"x", "key").txn is engine
    assert [one.txn for one in prepare_many([b"1", (b"2", "key"), {"body": b"3"}], make)] == [engine] * 3
    assert within(prepare, None) is prepare
    with pytest.raises(ConfigError, match=r"what client.transaction\(\) gave, not a str"):
        prepare(b"x", txn="txn")
