"""The RocketMQ source without Spark: what is planned, and that each range is read exactly."""

from __future__ import annotations

import json
import time
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from mqclient import rocketmq
from mqclient.broker import EmbeddedBroker
from mqclient.errors import ConfigError, DeadlineError, LinkError, MQError
from mqclient.spark import rocketmq_source
from mqclient.spark.filters import Bounds
from mqclient.spark.plan import Limit, Queue, Range
from mqclient.spark.read_options import ReadOptions, read_options
from mqclient.spark.rocketmq_source import Heads, plan, read
from mqclient.spark.stream import Tracker
from tests.unit.spark.test_filters import EqualTo, GreaterThan, LessThan

UTC = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("value", pa.binary()), ("topic", pa.string()), ("offset", pa.int64()), ("timestamp", UTC)])


def fill(client: rocketmq.Client, topic: str, count: int, queues: int = 2, **options: Any) -> list[int]:
    """Numbered messages by turns into the queues; when each was stored."""
    with client.admin() as admin, client.producer("filler") as producer:
        if topic not in admin.topics():
            admin.create_topic(topic, queues)
        for number in range(count):
            message = rocketmq.Message(topic, b"%d" % number, tag="odd" if number % 2 else "even", **options)
            queue = rocketmq.MessageQueue(topic, "broker-a", number % queues)
            assert producer.send(message, queue=queue).ok
        return [message.stored_at for message in admin.messages_by_time(topic, "first")]


def asked(broker: EmbeddedBroker, **given: str) -> ReadOptions:
    wanted = {"nameServer": broker.name_server, "timeoutSeconds": "30", **given}
    return read_options(wanted, rocketmq_source.OPTIONS, rocketmq_source.FORMAT)


def bodies(options: ReadOptions, parts: list[Range]) -> list[int]:
    found = [batch for part in parts for batch in read(options, part, SCHEMA)]
    assert all(batch.schema == SCHEMA for batch in found)
    return sorted(int(value.as_py()) for batch in found for value in batch.column("value"))


def test_by_name_pattern_and_assignment(broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str) -> None:
    fill(rocketmq_client, topic, 6)
    fill(rocketmq_client, topic + "-more", 4)
    by_name = asked(broker, topic=topic)
    assert [(part.queue.number, part.start, part.end) for part in plan(by_name)] == [(0, 0, 3), (1, 0, 3)]
    assert bodies(by_name, plan(by_name)) == list(range(6))
    both = asked(broker, subscribePattern=f"{topic}(-more)?")
    assert {part.queue.topic for part in plan(both)} == {topic, topic + "-more"}
    for assign in ({topic: [1]}, {topic: {"broker-a": [1]}}):
        assert bodies(by_name, plan(asked(broker, assign=json.dumps(assign)))) == [1, 3, 5]


def test_topics_of_a_pattern_are_looked_for_as_often_as_was_asked(
    broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str
) -> None:
    fill(rocketmq_client, topic, 6)
    now = 0.0
    sparing = Heads(asked(broker, topicPattern=f"{topic}.*"), clock=lambda: now)
    always = Heads(asked(broker, topicPattern=f"{topic}.*", topicRefreshSeconds="0"), clock=lambda: now)
    assert {queue.topic for queue in sparing.look()} == {queue.topic for queue in always.look()} == {topic}
    fill(rocketmq_client, topic + "-more", 4)
    assert {queue.topic for queue in always.look()} == {topic, topic + "-more"}
    assert {queue.topic for queue in sparing.look()} == {topic}
    now = 10.0
    assert {queue.topic for queue in sparing.look()} == {topic, topic + "-more"}
    sparing.close()
    always.close()


def test_what_is_not_there(broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str) -> None:
    fill(rocketmq_client, topic, 1)
    with pytest.raises(ConfigError, match=f"there is no topic 'x{topic}' at .* Did you mean '{topic}'"):
        plan(asked(broker, topic="x" + topic))
    with pytest.raises(ConfigError, match=r"topicPattern='nothing\.\*': no topic of .* matches"):
        plan(asked(broker, topicPattern="nothing.*"))
    for numbers in ([7], {"broker-z": [1]}):
        with pytest.raises(ConfigError, match=r"option assign: topic .* has no such queue"):
            plan(asked(broker, assign=json.dumps({topic: numbers})))
    nobody = {"nameServer": "127.0.0.1:1", "topic": "t", "timeoutSeconds": "5"}
    with pytest.raises(LinkError, match=r"^option nameServer='127\.0\.0\.1:1': no name server .* is this its port"):
        plan(read_options(nobody, rocketmq_source.OPTIONS, "x"))


def test_by_time(broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str) -> None:
    fill(rocketmq_client, topic, 4)
    time.sleep(0.02)
    between = int(time.time() * 1000)
    time.sleep(0.02)
    fill(rocketmq_client, topic, 2)
    later = asked(broker, topic=topic, startingTimestamp=str(between))
    assert [(part.start, part.end) for part in plan(later)] == [(2, 3), (2, 3)]
    before = asked(broker, topic=topic, endingOffsetsByTimestamp=json.dumps({topic: between}))
    assert [(part.start, part.end) for part in plan(before)] == [(0, 2), (0, 2)]
    another = asked(broker, topic=topic, startingOffsetsByTimestamp=json.dumps({"another": between}))
    assert [(part.start, part.end) for part in plan(another)] == [(0, 3), (0, 3)]
    tracker = Tracker(rocketmq_source, later)
    end = tracker.latest(tracker.initial(), None)
    assert end["init"] == {topic: {"broker-a": {"0": 2, "1": 2}}}
    tracker.close()


def test_brokers_filter_and_the_reading_still_ends(
    broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str
) -> None:
    fill(rocketmq_client, topic, 8, queues=1, properties={"n": "3"})
    for given, expected in (
        ({"tag": "even"}, [0, 2, 4, 6]),
        ({"sql": "TAGS = 'odd' AND n > 2"}, [1, 3, 5, 7]),
        ({"filterExpression": "n > 3", "filterType": "SQL92"}, []),
        ({"tag": "nobody"}, []),
    ):
        options = asked(broker, topic=topic, **given)
        assert bodies(options, plan(options)) == expected
    with pytest.raises(MQError, match=r"PARSE_FAILED.*n >"):
        plan(asked(broker, topic=topic, sql="n >"))


def test_conditions_of_a_query_narrow_what_is_planned(
    broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str
) -> None:
    stored = fill(rocketmq_client, topic, 8)
    options = asked(broker, topic=topic)
    narrow = Bounds.of([EqualTo("queue", 1), GreaterThan("offset", 1)])
    assert [(part.queue.number, part.start, part.end) for part in plan(options, narrow)] == [(1, 1, 4)]
    never = datetime.fromtimestamp(stored[0] / 1000 - 60, timezone.utc)
    assert sum(part.end - part.start for part in plan(options, Bounds.of([LessThan("timestamp", never)]))) <= 2
    assert len(plan(options, Bounds.of([GreaterThan("timestamp", never)]))) == 2


def test_how_much_lies_ahead(broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str) -> None:
    queue = Queue(topic, "broker-a", 1)
    with rocketmq_client.admin() as admin, rocketmq_client.producer("filler") as producer:
        admin.create_topic(topic, 2)
        for _ in range(10):
            producer.send(rocketmq.Message(topic, bytes(1000)), queue=rocketmq.MessageQueue(*queue))
    tracker = Tracker(rocketmq_source, asked(broker, topic=topic, startingOffsets="earliest"))
    one = tracker.latest(tracker.initial(), Limit(size=3000))
    assert tracker.ranges(tracker.initial(), one) == [Range(queue, 0, 3)]
    two = tracker.latest(one, Limit(rows=4))
    assert tracker.ranges(one, two) == [Range(queue, 3, 7)]
    tracker.close()


def test_a_named_group_is_told_how_far_the_query_is(
    broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str
) -> None:
    fill(rocketmq_client, topic, 6)
    tracker = Tracker(rocketmq_source, asked(broker, topic=topic, consumerGroup="watchers", startingOffsets="earliest"))
    end = tracker.latest(tracker.initial(), None)
    tracker.commit(tracker.initial())  # says nothing yet
    tracker.commit(end)
    tracker.close()
    with rocketmq_client.admin() as admin:
        assert {at["committed"] for at in admin.offsets(topic, "watchers").values()} == {3}
    silent = Heads(asked(broker, topic=topic))
    silent.look()
    silent.commit({Queue(topic, "broker-a", 0): 1})
    silent.close()


def test_a_topic_that_goes_away(broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str) -> None:
    fill(rocketmq_client, topic, 2)
    strict, lax = Heads(asked(broker, topic=topic)), Heads(asked(broker, topic=topic, failOnDataLoss="false"))
    for heads in (strict, lax):
        assert len(heads.look()) == 2
    with rocketmq_client.admin() as admin:
        admin.delete_topic(topic)
    with pytest.raises(ConfigError, match="there is no topic"):
        strict.look()
    assert lax.look() == {}
    for heads in (strict, lax):
        heads.close()


def test_what_does_not_come_in_time_is_an_error(
    broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str
) -> None:
    fill(rocketmq_client, topic, 2)
    options = asked(broker, topic=topic, timeoutSeconds="1")
    beyond = Range(Queue(topic, "broker-a", 0), 0, 5)
    with pytest.raises(DeadlineError, match=r"nothing came for 1 s after offset 1, 4 messages before the end"):
        bodies(options, [beyond])


def test_who_is_no_operator_can_still_read(
    broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    fill(rocketmq_client, topic, 2)
    heads = Heads(asked(broker, topic=topic, consumerGroup="nobody"))
    there = heads.look()

    def refuse(timeout: float) -> list[str]:
        raise MQError("not for you")

    heads._admin = SimpleNamespace(groups=refuse)
    heads.begin(there)
    assert "cannot see to it that group nobody is there: not for you" in caplog.text
    heads.close()
