"""Offsets of a stream: symbolic at first, exact ever after, the very same when there is nothing new."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from mqclient.errors import ConfigError, LinkError
from mqclient.spark import pulsar_places, pulsar_source, rocketmq_source
from mqclient.spark.plan import Ahead, Limit, Queue, Range
from mqclient.spark.read_options import read_options
from mqclient.spark.stream import Tracker

SPARK_ASKS = 0.01
"""Seconds between the questions of an idle query."""
A, B, C = Queue("t", "a", 0), Queue("t", "a", 1), Queue("t", "b", 0)


class World:
    """Queues as brokers have them, and a clock."""

    def __init__(self, **there: Any) -> None:
        self.there: dict[Any, Any] = {A: (0, 10), B: (5, 8)}
        self.now = 1000.0
        self.looks = self.measured = self.begun = 0
        self.times: dict[str, Any] = {}
        self.committed: list[Any] = []
        self.errors: list[Exception] = []
        self.slept: list[float] = []

    def look(self) -> dict[Any, Any]:
        self.looks += 1
        if self.errors:
            raise self.errors.pop(0)
        return dict(self.there)

    def settle(self, position: Any, there: Any, what: str) -> Any:
        return self.times.get(json.dumps(position), position)

    def measure(self, starts: Any, ends: Any, there: Any, sized: bool) -> dict[Any, Ahead]:
        self.measured += 1
        between = {key: end - starts[key] for key, end in ends.items() if end > starts[key]}
        return {key: Ahead(starts[key], steps, 1.0, 100.0 if sized else 0.0) for key, steps in between.items()}

    def begin(self, there: Any) -> None:
        self.begun += 1

    def commit(self, places: Any) -> None:
        self.committed.append(places)

    def close(self) -> None:
        self.there = {}

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)

    def tracker(self, system: Any = rocketmq_source, **given: str) -> Tracker:
        address = "nameServer" if system is rocketmq_source else "serviceUrl"
        checked = read_options({address: "a:1", "topic": "t", **given}, system.OPTIONS, system.FORMAT)
        fake = SimpleNamespace(**{name: getattr(system, name) for name in dir(system)})
        fake.Heads = lambda _: self
        return Tracker(fake, checked, clock=lambda: self.now, sleep=self.sleep)


@pytest.fixture
def world() -> World:
    return World()


def again(offset: dict[str, Any]) -> dict[str, Any]:
    """As Spark gives it back: through its log."""
    found: dict[str, Any] = json.loads(json.dumps(offset))
    return found


def test_latest_is_resolved_once_and_written_into_the_first_end(world: World) -> None:
    tracker = world.tracker()
    start = tracker.initial()
    assert start == {"v": 1, "start": "latest"}
    end = again(tracker.latest(start, None))
    world.there = {A: (0, 30), B: (5, 40)}
    world.now += 1
    restarted = world.tracker()
    assert restarted.ranges(start, end) == []
    following = restarted.latest(end, None)
    assert restarted.ranges(end, following) == [Range(A, 10, 30), Range(B, 8, 40)]
    assert "init" not in following


def test_earliest_begins_where_the_queues_do_and_a_replay_reads_the_same(world: World) -> None:
    tracker = world.tracker(startingOffsets="earliest")
    end = tracker.latest(tracker.initial(), None)
    first = tracker.ranges(tracker.initial(), end)
    assert first == [Range(A, 0, 10), Range(B, 5, 8)]
    world.there = {A: (0, 99), B: (5, 99), C: (0, 99)}
    assert world.tracker().ranges(tracker.initial(), again(end)) == first


def test_nothing_new_gives_the_very_start(world: World) -> None:
    tracker = world.tracker()
    start = again(tracker.latest(tracker.initial(), None))
    for _ in range(100):
        assert tracker.latest(start, None) is start
    assert tracker.ranges(start, start) == []


def test_offsets_are_the_same_text_in_whatever_order_queues_are_seen(world: World) -> None:
    one = world.tracker().latest(world.tracker().initial(), None)
    world.there = dict(reversed(world.there.items()))
    assert json.dumps(world.tracker().latest(world.tracker().initial(), None)) == json.dumps(one)


def test_what_was_written_before_the_question_is_in_the_answer(world: World) -> None:
    """Spark's `processAllAvailable` believes "nothing new", so that must not rest on an earlier look."""
    tracker = world.tracker()
    start = again(tracker.latest(tracker.initial(), None))
    for offset in range(11, 60):
        assert tracker.latest(start, None) is start
        world.now += 0.001 * (offset % 13)
        world.there[A] = (0, offset)
        start = again(tracker.latest(start, None))
        assert start["q"]["t"]["a"]["0"] == offset
        tracker.report()


def test_an_idle_query_asks_brokers_at_the_poll_interval_only(world: World) -> None:
    tracker = world.tracker(offsetPollIntervalMs="100")
    start = tracker.latest(tracker.initial(), None)
    asked, begun = 0, world.now
    while world.now < begun + 2:
        tracker.latest(start, None)
        tracker.report()
        world.now += SPARK_ASKS
        asked += 1
    assert world.looks <= 25
    assert asked <= 25  # the answer waits, or Spark would ask 200 times


def test_whoever_asks_rarely_never_waits(world: World) -> None:
    tracker = world.tracker()
    start = tracker.latest(tracker.initial(), None)
    for _ in range(100):
        world.now += 0.2
        tracker.latest(start, None)
    assert world.slept == []


def test_a_query_that_just_had_something_waits_for_little(world: World) -> None:
    tracker = world.tracker()
    start = tracker.latest(tracker.initial(), None)
    for number in range(10):
        for _ in range(3):
            assert tracker.latest(start, None) is start
            world.now += SPARK_ASKS
        world.there[A] = (0, 11 + number)
        start = tracker.latest(start, None)
    assert sum(world.slept) <= 10 * 0.05


def test_an_idle_source_does_not_keep_the_other_of_its_query_waiting(world: World) -> None:
    idle, other = world.tracker(), World()
    busy = other.tracker()
    start, place = idle.latest(idle.initial(), None), busy.latest(busy.initial(), None)
    for _ in range(50):
        idle.latest(start, None)
    world.now += 0.1  # for which the other one's answer waited
    world.slept.clear()
    for offset in range(11, 31):  # triggers of 60 ms; Spark tells all sources of each
        other.there[A] = (0, offset)
        end = busy.latest(place, None)
        assert idle.latest(start, None) is start
        idle.commit(start)
        busy.commit(place)
        place = end
        for one in (world, other):
            one.now += 0.06
    assert sum(world.slept) <= 0.05
    assert other.slept == []


def test_limits_never_starve_a_queue_and_catch_up(world: World) -> None:
    world.there = {A: (0, 1000), B: (0, 10)}
    tracker = world.tracker(startingOffsets="earliest")
    start, sizes = tracker.initial(), []
    while (end := tracker.latest(start, Limit(rows=300))) is not start:
        parts = tracker.ranges(start, end)
        sizes.append(sum(part.end - part.start for part in parts))
        if B.number not in {part.queue.number for part in parts}:
            assert end["q"]["t"]["a"]["1"] == 10
        start = again(end)
    assert sum(sizes) == 1010
    assert max(sizes) <= 301


def test_too_few_wait_until_there_are_enough_or_the_time_is_up(world: World) -> None:
    tracker = world.tracker(minOffsetsPerTrigger="10", maxTriggerDelaySeconds="60")
    start = tracker.latest(tracker.initial(), None)
    world.there = {A: (0, 15), B: (5, 8)}
    world.now += 1
    assert tracker.latest(start, None) is start
    world.there = {A: (0, 20), B: (5, 8)}
    world.now += 1
    enough = tracker.latest(start, None)
    assert enough["q"]["t"]["a"]["0"] == 20
    world.there = {A: (0, 21), B: (5, 8)}
    world.now += 59
    assert tracker.latest(enough, None) is enough
    world.now += 2
    assert tracker.latest(enough, None)["q"]["t"]["a"]["0"] == 21


def test_a_queue_that_appears_is_read_from_its_beginning(world: World) -> None:
    tracker = world.tracker()
    start = again(tracker.latest(tracker.initial(), None))
    world.there[C] = (3, 7)
    world.now += 1
    end = again(tracker.latest(start, None))
    world.there[C] = (3, 70)
    assert world.tracker().ranges(start, end) == [Range(C, 3, 7)]
    following = world.tracker().latest(end, None)
    assert world.tracker().ranges(end, following) == [Range(C, 7, 70)]


def test_available_now_has_what_was_written_before_it_began(world: World) -> None:
    tracker = world.tracker(startingOffsets="earliest")
    tracker.report()
    world.there[A] = (0, 11)
    tracker.freeze()
    assert tracker.latest(tracker.initial(), None)["q"]["t"]["a"]["0"] == 11


def test_available_now_ends_where_the_queues_ended_when_it_began(world: World) -> None:
    tracker = world.tracker(startingOffsets="earliest")
    tracker.freeze()
    world.there = {A: (0, 50), B: (5, 50), C: (0, 50)}
    world.now += 1
    end = again(tracker.latest(tracker.initial(), None))
    assert tracker.ranges(tracker.initial(), end) == [Range(A, 0, 10), Range(B, 5, 8)]
    assert tracker.latest(end, None) is end
    beyond = {"v": 1, "q": {"t": {"a": {"0": 40, "1": 40}}}}
    assert tracker.latest(beyond, None) is beyond


def test_what_was_deleted_is_an_error_or_passed_over(world: World) -> None:
    start = {"v": 1, "q": {"t": {"a": {"0": 2, "1": 5}}}}
    end = {"v": 1, "q": {"t": {"a": {"0": 10, "1": 8}}}}
    world.there = {A: (6, 10), B: (5, 8)}
    with pytest.raises(ConfigError, match=r"offsets 2 to 10 are not all there, it has 6 to 10.*failOnDataLoss"):
        world.tracker().ranges(start, end)
    assert world.tracker(failOnDataLoss="false").ranges(start, end) == [Range(A, 6, 10), Range(B, 5, 8)]


@pytest.mark.parametrize("frozen", [False, True])
def test_a_topic_made_anew_is_an_error_or_read_from_its_beginning(world: World, frozen: bool) -> None:
    start = {"v": 1, "q": {"t": {"a": {"0": 100, "1": 100}}}}
    strict, lax = world.tracker(), world.tracker(failOnDataLoss="false")
    for tracker in (strict, lax) if frozen else ():
        tracker.freeze()
    with pytest.raises(ConfigError, match="made anew"):
        strict.latest(start, None)
    end = lax.latest(start, None)
    assert lax.ranges(start, end) == [Range(A, 0, 10), Range(B, 5, 8)]
    assert lax.latest(end, None) is end


def test_a_broker_that_is_away_for_a_while_does_not_end_the_stream(world: World) -> None:
    tracker = world.tracker()
    world.errors = [LinkError("away"), LinkError("away")]
    start = tracker.latest(tracker.initial(), None)
    assert world.looks == 3
    world.errors = [LinkError("away")]
    world.now += 1
    assert tracker.latest(start, None) is start
    world.errors = [LinkError("away"), LinkError("away")]
    world.there[A] = (0, 11)
    start = again(tracker.latest(start, None))
    assert start["q"]["t"]["a"]["0"] == 11  # it comes back soon: "nothing" would be a guess
    world.errors = [LinkError("away")] * 3
    assert tracker.latest(start, None) is start
    world.errors = [LinkError("away")] * 3
    with pytest.raises(LinkError):
        world.tracker().report()
    world.errors = [ConfigError("wrong")]
    with pytest.raises(ConfigError):
        world.tracker().report()


def test_offsets_of_another_version_are_refused(world: World) -> None:
    for odd in ({"v": 2, "q": {}}, {"v": 1, "p": {}}, {"orders": 5}):
        with pytest.raises(ConfigError, match="not written by this version"):
            world.tracker().latest(odd, None)


def test_pulsar_places(world: World) -> None:
    t = "persistent://public/default/t"
    world.there = {t: (3, 7, 4)}
    tracker = world.tracker(pulsar_source)
    start = again(tracker.latest(tracker.initial(), None))
    assert start == {"v": 1, "p": {t: [3, 7, 4]}, "init": {t: [3, 7, 4]}}
    assert tracker.latest(start, None) is start
    world.there = {t: (4, 0, -1), t + "-partition-1": (5, 5, 5)}
    world.now += 1
    end = again(tracker.latest(start, None))
    assert tracker.ranges(start, end) == [
        pulsar_places.Range(t, (3, 7, 4), (4, 0, -1)),
        pulsar_places.Range(t + "-partition-1", pulsar_places.BEGIN, (5, 5, 5)),
    ]
    world.there = {t: (1, 0, -1)}
    world.now += 1
    with pytest.raises(ConfigError, match="made anew"):
        tracker.latest(end, None)
    tracker.close()


def test_a_time_is_settled_once_and_written_into_the_first_end(world: World) -> None:
    world.times = {'{"@time": 5}': {"t": {"a": {"0": 4}}}}
    tracker = world.tracker(startingTimestamp="5")
    assert tracker.initial() == {"v": 1, "start": {"@time": 5}}
    end = again(tracker.latest(tracker.initial(), None))
    world.times = {'{"@time": 5}': {"t": {"a": {"0": 9}}}}
    assert world.tracker(startingTimestamp="5").ranges(tracker.initial(), end) == [Range(A, 4, 10), Range(B, 5, 8)]


def test_bytes_limit_a_batch_and_brokers_are_asked_once_for_the_same(world: World) -> None:
    world.there = {A: (0, 1000), B: (5, 5)}
    tracker = world.tracker(startingOffsets="earliest", minOffsetsPerTrigger="5")
    end = tracker.latest(tracker.initial(), Limit(size=5000))
    assert tracker.ranges(tracker.initial(), end) == [Range(A, 0, 50)]
    world.there = {A: (0, 52), B: (5, 5)}
    world.now += 1
    world.measured = 0
    for _ in range(50):
        assert tracker.latest(end, Limit(size=5000)) is end
        world.now += 0.01
    assert world.measured == 1


def test_brokers_are_told_how_far_it_is(world: World) -> None:
    tracker = world.tracker(startingOffsets="earliest")
    end = tracker.latest(tracker.initial(), None)
    tracker.latest(end, None)
    tracker.commit(tracker.initial())
    tracker.commit(end)
    tracker.close()
    assert (world.committed, world.begun) == ([{A: 10, B: 8}], 1)


def test_while_it_catches_up_brokers_are_asked_little(world: World) -> None:
    world.there = {A: (0, 1000), B: (5, 5)}
    tracker = world.tracker(startingOffsets="earliest")
    start = tracker.latest(tracker.initial(), Limit(rows=20))
    for _ in range(40):
        world.now += 0.2
        end = tracker.latest(start, Limit(rows=20))
        assert tracker.ranges(start, end)
        start = end
    assert world.looks <= 10
    world.there = {A: (0, 2000), B: (5, 5)}
    world.now += 0.2
    assert tracker.latest(start, Limit(rows=10_000))["q"]["t"]["a"]["0"] == 2000
