"""Looking at Pulsar topics: what lies ahead, in which ledgers, and a subscription that is told how far a query is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from mqclient import pulsar
from mqclient.broker import EmbeddedBroker
from mqclient.errors import ConfigError, MQError
from mqclient.spark import pulsar_source
from mqclient.spark.plan import Limit
from mqclient.spark.pulsar_heads import FAR, Heads, ahead_of, reading
from mqclient.spark.pulsar_places import BEGIN, Place, Range, cut
from mqclient.spark.pulsar_source import partition_of, plan, read
from mqclient.spark.read_options import read_options
from mqclient.spark.stream import Tracker
from tests.support.pulsar_cluster import PulsarCluster
from tests.unit.spark.test_pulsar_source import SCHEMA, asked, bodies, fill


def wait(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_by_name_pattern_and_assignment(broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str) -> None:
    PulsarCluster(broker.pulsar_url, embedded=broker).partition(f"{topic}-parts", 3)
    for number in range(3):
        fill(pulsar_client, f"{topic}-parts-partition-{number}", 5)
    fill(pulsar_client, topic, 25)
    whole = asked(broker, topic=f"{topic},{topic}-parts")
    assert len(plan(whole)) == 4
    assert len(bodies(whole, plan(whole))) == 40
    assert plan(asked(broker, topicPattern=f"{topic}.*")) == sorted(plan(whole))
    some = asked(broker, assign=json.dumps({f"{topic}-parts": [0, 2]}))
    assert [partition_of(part.topic) for part in plan(some)] == [0, 2]
    with pytest.raises(ConfigError, match="has 3 partitions, not all of"):
        plan(asked(broker, assign=json.dumps({f"{topic}-parts": [3]})))
    found = [batch for part in plan(some) for batch in read(some, part, SCHEMA)]
    assert {number.as_py() for batch in found for number in batch.column("partition")} == {0, 2}


def test_a_partition_that_is_added_counts_at_once(
    broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str
) -> None:
    """Or `processAllAvailable` would leave out what was written to it before."""
    cluster = PulsarCluster(broker.pulsar_url, embedded=broker)
    cluster.partition(topic, 1)
    tracker = Tracker(pulsar_source, asked(broker, topic=topic))
    some = Tracker(pulsar_source, asked(broker, assign=json.dumps({topic: [0]})))
    start, same = tracker.latest(tracker.initial(), None), some.latest(some.initial(), None)
    cluster.partition(topic, 2)
    fill(pulsar_client, f"{topic}-partition-1", 5)
    assert [part.topic for part in tracker.ranges(start, tracker.latest(start, None))] == [
        f"persistent://public/default/{topic}-partition-1"
    ]
    assert some.latest(same, None) is same
    tracker.close()
    some.close()


def test_topics_of_a_pattern_are_looked_for_as_often_as_was_asked(
    broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str
) -> None:
    fill(pulsar_client, topic, 5)
    now = 0.0
    sparing = Heads(asked(broker, topicPattern=f"{topic}.*"), clock=lambda: now)
    always = Heads(asked(broker, topicPattern=f"{topic}.*", topicRefreshSeconds="0"), clock=lambda: now)
    assert len(sparing.look()) == len(always.look()) == 1
    fill(pulsar_client, topic + "-more", 5)
    assert (len(sparing.look()), len(always.look())) == (1, 2)
    now = 10.0
    assert len(sparing.look()) == 2
    sparing.close()
    always.close()


def test_what_is_not_there(broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str) -> None:
    fill(pulsar_client, topic, 1)
    with pytest.raises(ConfigError, match=f"there is no topic 'x{topic}' at .* Did you mean '{topic}'"):
        plan(asked(broker, topic="x" + topic))
    assert pulsar_client.topics(f"x{topic}") == []
    with pytest.raises(ConfigError, match=r"topicPattern='nothing\.\*': no topic of .* matches"):
        plan(asked(broker, topicPattern="nothing.*"))
    with pytest.raises(ConfigError, match="a source needs a persistent one"):
        plan(asked(broker, topic=f"non-persistent://public/default/{topic}"))
    nobody = {"serviceUrl": "pulsar://127.0.0.1:1", "topic": "t", "timeoutSeconds": "2"}
    with pytest.raises(MQError, match=r"^option serviceUrl='pulsar://127\.0\.0\.1:1': .* is this its port"):
        plan(read_options(nobody, pulsar_source.OPTIONS, "x"))


def test_by_time(broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str) -> None:
    fill(pulsar_client, topic, 20)
    time.sleep(0.02)
    between = str(int(time.time() * 1000))
    time.sleep(0.02)
    fill(pulsar_client, topic, 7)
    later = asked(broker, topic=topic, startingTimestamp=between)
    assert bodies(later, plan(later)) == list(range(7))
    before = asked(broker, topic=topic, endingOffsetsByTimestamp=json.dumps({topic: int(between)}))
    assert bodies(before, plan(before)) == list(range(20))
    assert plan(asked(broker, topic=topic, startingTimestamp="2100-01-01T00:00:00Z")) == []
    early = asked(broker, topic=topic, startingTimestamp="2001-01-01T00:00:00Z")
    assert len(bodies(early, plan(early))) == 27
    fill(pulsar_client, topic + "-empty", 0)
    assert plan(asked(broker, topic=topic + "-empty", endingTimestamp=between)) == []


def test_limits_go_by_entries_and_reach_the_end(
    broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str
) -> None:
    fill(pulsar_client, topic, 95)
    options = asked(broker, topic=topic, startingOffsets="earliest")
    tracker = Tracker(pulsar_source, options)
    start, sizes, seen = tracker.initial(), [], []
    while (end := tracker.latest(start, Limit(rows=40))) is not start:
        seen += bodies(options, tracker.ranges(start, end))
        sizes.append(len(seen))
        start = end
    assert (sizes, sorted(seen)) == ([40, 80, 95], list(range(95)))
    fill(pulsar_client, topic, 100, each=1)
    tracker.close()
    tracker = Tracker(pulsar_source, options)
    end = tracker.latest(start, Limit(size=20))
    assert 1 <= len(bodies(options, tracker.ranges(start, end))) <= 20
    tracker.close()


def test_what_comes_next(broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str) -> None:
    ids = fill(pulsar_client, topic, 20)
    full = f"persistent://public/default/{topic}"
    heads = Heads(asked(broker, topic=topic))
    end = heads.look()[full]
    places: list[Place] = [(one.ledger, one.entry, one.batch_index) for one in ids]

    def next_entry(place: Place) -> int | None:
        found = heads.first_after(full, place, end)
        return None if found is None else int(found.entry.entry)

    assert [next_entry(places[index]) for index in (4, 9, 10)] == [0, 1, 1]
    assert (next_entry(BEGIN), next_entry(end)) == (0, None)
    assert heads.first_after(full, places[8], places[9]).entry.entry == 0
    assert heads.ledgers(Range(full, places[9], end)) == [(ids[0].ledger, 1)]
    assert heads.first_after(full, (ids[0].ledger, 0, -1), (ids[0].ledger, 0, 3)) is None
    heads.close()


def test_nothing_where_something_should_be(broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str) -> None:
    ids = fill(pulsar_client, topic, 2)
    heads = Heads(asked(broker, topic=topic, timeoutSeconds="1"))
    (full,) = heads.look()
    with pytest.raises(ConfigError, match=r"nothing comes after .* was the topic trimmed"):
        heads.first_after(full, (ids[0].ledger, 0, -1), (ids[0].ledger + 1, 0, -1))
    heads.close()


class Batch(list[Any]):
    """As many messages as an entry has."""

    def __init__(self, ledger: int, number: int, size: int = 1000) -> None:
        super().__init__([None] * 10)
        self.entry = SimpleNamespace(ledger=ledger, entry=number, uncompressed_size=size, payload=bytes(7))


def test_entries_are_counted_within_a_ledger() -> None:
    assert ahead_of(Batch(7, 3), (7, 9, 4)) == ((7, 2, -1), 7, 10.0, 1000.0)
    assert ahead_of(Batch(7, 3, 0), (8, 1, -1)) == ((7, 2, -1), None, 10.0, 7.0)


def test_ledgers_are_walked_and_cut_apart() -> None:
    heads = Heads.__new__(Heads)
    there = {BEGIN: (3, 5), (3, FAR, -1): (8, 0), (8, FAR, -1): (9, 0)}
    heads.first_after = lambda topic, place, end: Batch(*there[place])  # type: ignore[method-assign]
    whole = Range("t", BEGIN, (9, 9, 4))
    ledgers = heads.ledgers(whole)
    assert ledgers == [(3, 5), (8, 0), (9, 0)]
    pieces = [(one.after, one.upto) for one in cut(whole, ledgers, 4)]
    assert pieces == [
        (BEGIN, (8, -1, -1)),
        ((8, -1, -1), (9, -1, -1)),
        ((9, -1, -1), (9, 4, -1)),
        ((9, 4, -1), (9, 9, 4)),
    ]


def test_readers_begin_behind_a_place() -> None:
    assert reading(BEGIN, 5, 1.0)["start"] == "earliest"
    inside = reading((7, 3, 2), 5, 1.0)["start"]
    assert (inside.ledger, inside.entry, inside.batch_index) == (7, 3, 2)
    before = reading((7, -1, -1), 5, 1.0)
    assert (before["start"].entry, before["start_inclusive"]) == (0, True)


def test_a_subscription_is_told_how_far_the_query_is(
    broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str
) -> None:
    fill(pulsar_client, topic, 30)
    options = asked(broker, topic=topic, subscriptionName="watchers", startingOffsets="earliest")
    tracker = Tracker(pulsar_source, options)
    end = tracker.latest(tracker.initial(), Limit(rows=20))
    tracker.commit(end)
    tracker.close()
    with pulsar_client.consumer(topic, "watchers", start="earliest") as consumer:
        assert consumer.receive(30).body == b"20"
    silent = Heads(asked(broker, topic=topic))
    silent.look()
    silent.commit({f"persistent://public/default/{topic}": BEGIN})
    silent.close()


def test_from_now_on_the_subscription_begins_now(
    broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str
) -> None:
    fill(pulsar_client, topic, 3)
    tracker = Tracker(pulsar_source, asked(broker, topic=topic, subscriptionName="late"))
    tracker.latest(tracker.initial(), None)
    tracker.close()
    fill(pulsar_client, topic, 1)
    with pulsar_client.consumer(topic, "late") as consumer:
        assert consumer.receive(30).body == b"0"


def test_entries_are_like_those_before_for_a_while(
    broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = fill(pulsar_client, topic, 95)
    ledger = ids[0].ledger
    heads = Heads(asked(broker, topic=topic))
    there = heads.look()
    (full,) = there
    first = heads.measure({full: BEGIN}, there, there, True)[full]
    assert (first.begin, first.steps, first.rows) == ((ledger, -1, -1), 10, 10.0)
    monkeypatch.setattr(heads, "first_after", lambda *_: pytest.fail("there was no need to look"))
    assert heads.measure({full: (ledger, 2, -1)}, there, there, True)[full][:3] == ((ledger, 2, -1), 7, 10.0)
    assert heads.measure({full: (ledger, 2, 5)}, there, there, True)[full][:3] == ((ledger, 1, -1), 8, 10.0)
    heads.close()
