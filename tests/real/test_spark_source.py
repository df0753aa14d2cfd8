"""Spark's sources on the real brokers, without Spark: ledgers that end, times, filters, and who hears of progress."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from mqclient import pulsar, rocketmq
from mqclient.errors import ConfigError, MQError
from mqclient.spark import pulsar_source, rocketmq_source
from mqclient.spark.filters import Bounds
from mqclient.spark.plan import Limit
from mqclient.spark.read_options import ReadOptions, read_options
from mqclient.spark.stream import Tracker
from tests.real.pulsar import RealPulsar
from tests.real.rocketmq import RealRocketMQ
from tests.support.pulsar_cluster import PulsarCluster
from tests.support.seen import unique
from tests.unit.spark import test_pulsar_source as on_pulsar
from tests.unit.spark import test_rocketmq_source as on_rocketmq
from tests.unit.spark.test_filters import GreaterThan, LessThan

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def of_pulsar(real: RealPulsar, **given: str) -> ReadOptions:
    wanted = {"serviceUrl": real.url, "timeoutSeconds": "30", **given}
    return read_options(wanted, pulsar_source.OPTIONS, pulsar_source.FORMAT)


def of_rocketmq(real: RealRocketMQ, **given: str) -> ReadOptions:
    wanted = {"nameServer": real.name_server, "timeoutSeconds": "30", **given}
    return read_options(wanted, rocketmq_source.OPTIONS, rocketmq_source.FORMAT)


@pytest.mark.xdist_group("pulsar")
def test_ranges_over_ledgers_that_ended(real_pulsar: RealPulsar) -> None:
    cluster, topic = PulsarCluster(real_pulsar.url, real=real_pulsar), unique("ledgers")
    ids: list[Any] = []
    with pulsar.Client(real_pulsar.url) as client:
        for first in range(3):
            with client.producer(topic, batch_max_messages=10) as producer:
                ids += producer.send_many([b"%d" % number for number in range(first * 40, first * 40 + 40)])
            if first < 2:
                cluster.rest("PUT", f"persistent/public/default/{topic}/unload")
        assert len({one.ledger for one in ids}) == 3
        starts = json.dumps({topic: [ids[4].ledger, ids[4].entry, ids[4].batch_index]})
        for given in ({}, {"minPartitions": "3"}, {"minPartitions": "7"}, {"maxRecordsPerPartition": "20"}):
            options = of_pulsar(real_pulsar, topic=topic, startingOffsets=starts, **given)
            parts = pulsar_source.plan(options)
            assert len(parts) >= int(given.get("minPartitions", 1)) - 2
            assert all(one.upto == other.after for one, other in pairwise(parts))
            assert on_pulsar.bodies(options, parts) == list(range(5, 120)), given
        ledger = ids[60].ledger
        inside = Bounds.of([GreaterThan("ledgerId", ledger - 1), LessThan("ledgerId", ledger)])
        options = of_pulsar(real_pulsar, topic=topic)
        assert set(range(40, 80)) <= set(on_pulsar.bodies(options, pulsar_source.plan(options, inside)))


@pytest.mark.xdist_group("pulsar")
def test_limits_walk_over_ledgers_and_a_subscription_is_told(real_pulsar: RealPulsar) -> None:
    cluster, topic = PulsarCluster(real_pulsar.url, real=real_pulsar), unique("limits")
    with pulsar.Client(real_pulsar.url) as client:
        for first in range(3):
            with client.producer(topic, batch_max_messages=10) as producer:
                producer.send_many([b"%d" % number for number in range(first * 25, first * 25 + 25)])
            cluster.rest("PUT", f"persistent/public/default/{topic}/unload")
        options = of_pulsar(real_pulsar, topic=topic, startingOffsets="earliest", subscriptionName="watchers")
        tracker = Tracker(pulsar_source, options)
        start, seen, ends = tracker.initial(), [], []
        while (end := tracker.latest(start, Limit(rows=20))) is not start:
            seen.append(on_pulsar.bodies(options, tracker.ranges(start, end)))
            ends.append(end)
            start = end
            assert len(ends) < 20
        assert [number for some in seen for number in some] == list(range(75))
        assert max(map(len, seen)) <= 20
        tracker.commit(ends[1])
        tracker.close()
        with client.consumer(topic, "watchers", start="earliest") as consumer:
            assert int(consumer.receive(60).body) == len(seen[0]) + len(seen[1])


@pytest.mark.xdist_group("pulsar")
def test_times_and_missing_topics_of_pulsar(real_pulsar: RealPulsar) -> None:
    topic = unique("times")
    with pulsar.Client(real_pulsar.url) as client:
        on_pulsar.fill(client, topic, 20)
        time.sleep(0.05)
        between = str(int(time.time() * 1000))
        time.sleep(0.05)
        on_pulsar.fill(client, topic, 7)
        later = of_pulsar(real_pulsar, topic=topic, startingTimestamp=between)
        assert on_pulsar.bodies(later, pulsar_source.plan(later)) == list(range(7))
        before = of_pulsar(real_pulsar, topic=topic, endingTimestamp=between)
        assert on_pulsar.bodies(before, pulsar_source.plan(before)) == list(range(20))
        assert pulsar_source.plan(of_pulsar(real_pulsar, topic=topic, startingTimestamp="2100-01-01T00:00:00Z")) == []
        with pytest.raises(ConfigError, match="there is no topic"):
            pulsar_source.plan(of_pulsar(real_pulsar, topic=topic + "x"))
        assert client.topics(topic + "x") == []


@pytest.mark.xdist_group("rocketmq")
def test_rocketmq(real_rocketmq: RealRocketMQ) -> None:
    topic, group = unique("spark"), unique("watchers")
    with rocketmq.Client(real_rocketmq.name_server) as client:
        on_rocketmq.fill(client, topic, 8, properties={"n": "3"})
        time.sleep(0.05)
        between = str(int(time.time() * 1000))
        time.sleep(0.05)
        on_rocketmq.fill(client, topic, 4)
        for given, expected in (
            ({}, sorted([*range(8), *range(4)])),
            ({"tag": "even"}, [0, 0, 2, 2, 4, 6]),
            ({"sql": "TAGS = 'odd' AND n > 2"}, [1, 3, 5, 7]),
            ({"tag": "nobody"}, []),
            ({"startingTimestamp": between}, list(range(4))),
            ({"endingTimestamp": between}, list(range(8))),
            ({"startingTimestamp": "2100-01-01T00:00:00Z"}, []),
        ):
            options = of_rocketmq(real_rocketmq, topic=topic, **given)
            assert on_rocketmq.bodies(options, rocketmq_source.plan(options)) == expected, given
        with pytest.raises(MQError, match="PARSE_FAILED"):
            rocketmq_source.plan(of_rocketmq(real_rocketmq, topic=topic, sql="n >"))
        with pytest.raises(ConfigError, match="there is no topic"):
            rocketmq_source.plan(of_rocketmq(real_rocketmq, topic=topic + "x"))
        assert rocketmq_source.plan(of_rocketmq(real_rocketmq, topicPattern=topic))
        options = of_rocketmq(real_rocketmq, topic=topic, consumerGroup=group, startingOffsets="earliest")
        tracker = Tracker(rocketmq_source, options)
        end = tracker.latest(tracker.initial(), Limit(size=5))
        assert 1 <= sum(part.end - part.start for part in tracker.ranges(tracker.initial(), end)) <= 6
        end = tracker.latest(tracker.initial(), None)
        tracker.commit(end)
        tracker.close()
        with client.admin() as admin:
            assert sum(at.consumed for at in admin.progress(group, topic).values()) == 12
