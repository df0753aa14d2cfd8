"""The Pulsar source without Spark: what is planned, and that each range is read exactly, whatever entries it cuts."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from mqclient import pulsar
from mqclient.broker import EmbeddedBroker
from mqclient.errors import DeadlineError
from mqclient.spark import pulsar_source
from mqclient.spark.filters import Bounds
from mqclient.spark.pulsar_places import BEGIN, Range
from mqclient.spark.pulsar_source import plan, read, window
from mqclient.spark.read_options import ReadOptions, read_options
from tests.unit.spark.test_filters import EqualTo, GreaterThan, LessThan

SCHEMA = pa.schema([("value", pa.binary()), ("topic", pa.string()), ("partition", pa.int32())])


def fill(client: pulsar.Client, topic: str, count: int, each: int = 10) -> list[Any]:
    """Numbered messages, so many in each entry; their ids."""
    with client.producer(topic, batch_max_messages=each) as producer:
        return producer.send_many([b"%d" % number for number in range(count)])


def asked(broker: EmbeddedBroker, **given: str) -> ReadOptions:
    wanted = {"serviceUrl": broker.pulsar_url, "timeoutSeconds": "30", **given}
    return read_options(wanted, pulsar_source.OPTIONS, pulsar_source.FORMAT)


def bodies(options: ReadOptions, parts: list[Range]) -> list[int]:
    found = [batch for part in parts for batch in read(options, part, SCHEMA)]
    return sorted(int(value.as_py()) for batch in found for value in batch.column("value"))


@pytest.mark.parametrize(("given", "pieces"), [({"minPartitions": "4"}, 4), ({"maxRecordsPerPartition": "30"}, 4)])
def test_ranges_are_cut_by_entries_and_lose_nothing(
    broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str, given: dict[str, str], pieces: int
) -> None:
    ids = fill(pulsar_client, topic, 120)
    starts, stops = (json.dumps({topic: [at.ledger, at.entry, at.batch_index]}) for at in (ids[4], ids[111]))
    options = asked(broker, topic=topic, startingOffsets=starts, endingOffsets=stops, **given)
    parts = plan(options)
    assert len(parts) == pieces
    assert all(one.upto == other.after for one, other in pairwise(parts))
    assert bodies(options, parts) == list(range(5, 112))


def test_conditions_of_a_query_narrow_what_is_planned(
    broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str
) -> None:
    ids = fill(pulsar_client, topic, 5)
    options, ledger = asked(broker, topic=topic), ids[0].ledger
    (whole,) = plan(options)
    assert plan(options, Bounds.of([EqualTo("topic", whole.topic), EqualTo("ledgerId", ledger)])) == [
        Range(whole.topic, (ledger, -1, -1), whole.upto)
    ]
    assert bodies(options, plan(options, Bounds.of([EqualTo("ledgerId", ledger)]))) == list(range(5))
    for none in (EqualTo("partition", 3), GreaterThan("ledgerId", ledger + 1)):
        assert plan(options, Bounds.of([none])) == []
    assert bodies(options, plan(options, Bounds.of([LessThan("ledgerId", ledger + 1)]))) == list(range(5))
    assert bodies(options, plan(options, Bounds.of([LessThan("ledgerId", ledger - 1)]))) == []


def test_a_range_that_ends_before_another_ledger(
    broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str
) -> None:
    """As cut between ledgers: the end lies before the first entry of one."""
    ids = fill(pulsar_client, topic, 5)
    options, ledger = asked(broker, topic=topic), ids[0].ledger
    full = f"persistent://public/default/{topic}"
    assert bodies(options, [Range(full, BEGIN, (ledger, -1, -1))]) == []
    assert bodies(options, [Range(full, (ledger, -1, -1), (ledger, 0, 2))]) == [0, 1, 2]


def test_what_does_not_come_in_time_is_an_error(
    broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str
) -> None:
    fill(pulsar_client, topic, 2)
    options = asked(broker, topic=topic, timeoutSeconds="1")
    (part,) = plan(options)
    beyond = Range(part.topic, part.upto, (part.upto[0], part.upto[1] + 5, -1))
    with pytest.raises(DeadlineError, match=r"nothing came for 1 s after .* is not reached"):
        bodies(options, [beyond])


def test_brokers_send_no_more_ahead_than_a_small_range_holds(
    broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str
) -> None:
    ids = fill(pulsar_client, topic, 300)
    full, ledger = f"persistent://public/default/{topic}", ids[0].ledger
    small = Range(full, (ledger, 3, -1), (ledger, 7, -1))
    assert [window(part) for part in (small, Range(full, BEGIN, (ledger, 7, -1)))] == [4, pulsar_source.WINDOW]
    assert window(Range(full, (ledger, 3, 2), (ledger, 3, 4))) == 1
    options = asked(broker, topic=topic)
    assert bodies(options, [small]) == list(range(40, 80))
    assert bodies(options, [Range(full, (ledger, 3, 2), (ledger, 3, 4))]) == [33, 34]
    assert bodies(options, [Range(full, (ledger, 3, -1), (ledger, 4, -1))]) == list(range(40, 50))
