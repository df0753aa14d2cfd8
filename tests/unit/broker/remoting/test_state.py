"""A broker's state: topics, groups, tags, and messages found by their place in the commit log."""

from __future__ import annotations

import sys
from random import Random
from typing import Any

import pytest

from mqclient.broker.broker import House
from mqclient.broker.control import Clock, Control
from mqclient.broker.remoting.server import Refused
from mqclient.broker.remoting.state import Broker, Cluster, Incoming, Queue, Stored, queue_count


@pytest.fixture(name="broker")
def broker_fixture(codec: Any) -> Broker:
    clock = Clock()
    return Broker(House(codec, clock, Control(clock), Random(1)), "broker-a")


def test_messages_are_found_by_their_place(broker: Broker) -> None:
    broker.make_topic("t", 2)
    places = [broker.store(Incoming("t", number % 2, b"%d" % number, b"")) for number in range(6)]
    assert [place.offset for place in places] == [0, 0, 1, 1, 2, 2]
    assert len({place.physical_offset for place in places}) == 6
    assert [broker.find(place.physical_offset).body for place in places] == [b"%d" % number for number in range(6)]
    assert broker.find(places[0].physical_offset + 1) is None


@pytest.mark.parametrize(
    ("properties", "tag"),
    [
        (b"", None),
        (b"TAGS\x01a\x02", "a"),
        (b"KEYS\x01k\x02TAGS\x01bb\x02WAIT\x01true\x02", "bb"),
        (b"KEYS\x01k\x02TAGS\x01last", "last"),
        (b"MYTAGS\x01no\x02", None),
    ],
)
def test_tag_codes(broker: Broker, properties: bytes, tag: str | None) -> None:
    expected = 0 if tag is None else broker.house.impl.digest.java_string_hash(tag)
    assert broker.tag_code(properties) == expected


def test_waiters_are_woken_once_and_together(broker: Broker) -> None:
    queue = broker.make_topic("t", 1).queue(0)
    woken: list[str] = []
    queue.waiting += [lambda: woken.append("a"), lambda: woken.append("b")]
    broker.store(Incoming("t", 0, b"x", b""))
    broker.store(Incoming("t", 0, b"y", b""))
    assert woken == ["a", "b"]


def test_groups_are_made_on_first_sight_unless_forbidden(broker: Broker) -> None:
    assert broker.group("g") is broker.group("g")
    broker.config["autoCreateSubscriptionGroup"] = "false"
    with pytest.raises(Refused, match="does not exist"):
        broker.group("other")
    with pytest.raises(Refused, match="not exist, apply first"):
        broker.topic("nowhere")


def test_brokers_of_a_cluster_have_names_in_order(codec: Any) -> None:
    clock = Clock()
    cluster = Cluster(House(codec, clock, Control(clock), Random(1), brokers=3))
    assert [broker.name for broker in cluster.brokers] == ["broker-a", "broker-b", "broker-c"]
    assert cluster.broker_data(cluster.brokers[1])["brokerName"] == "broker-b"
    assert cluster.brokers[0].number("defaultTopicQueueNums") == 8
    assert cluster.brokers[0].address == "127.0.0.1:0"


def test_a_message_goes_to_another_place_as_it_was(broker: Broker) -> None:
    broker.make_topic("t", 2)
    first = Incoming("t", 0, b"x", b"A\x01b\x02", flag=3, born_at=7, born_host=("10.0.0.9", 99), attempts=2)
    assert broker.end == 0
    message = broker.find(broker.store(first).physical_offset)
    assert broker.end > 0
    again = broker.find(broker.store(Incoming.again(message, "t", 1, message.properties_text)).physical_offset)
    for name in ("body", "flag", "sys_flag", "born_at", "born_host", "attempts", "properties"):
        assert getattr(again, name) == getattr(message, name)
    assert (again.queue_id, again.offset) == (1, 0)


def batch(codec: Any, *properties: dict[str, str]) -> Any:
    builder = codec.remoting.BatchBuilder()
    for number, one in enumerate(properties):
        builder.add(b"%d" % number, codec.remoting.encode_properties(one), number)
    return builder.seal()


def test_a_batch_is_stored_as_its_messages_would_be_one_by_one(codec: Any, broker: Broker) -> None:
    properties: list[dict[str, str]] = [{"TAGS": "a"}, {"KEYS": "k"}, {"KEYS": "k", "TAGS": "bb"}]
    fields: dict[str, Any] = {"sys_flag": 0, "born_at": 7, "born_host": ("10.0.0.9", 99)}
    queues = [broker.make_topic(name, 1).queue(0) for name in ("whole", "each")]
    broker.store(Incoming("whole", 0, b"before", b""))
    begin = broker.end
    offset, physical, ends = broker.store_batch(Incoming("whole", 0, batch(codec, *properties), b"", **fields))
    assert (offset, physical, len(ends)) == (1, begin, 12)
    assert broker.end == begin + int.from_bytes(ends[-4:], sys.byteorder)
    broker.store(Incoming("each", 0, b"before", b""))
    for number, one in enumerate(properties):
        text = codec.remoting.encode_properties(one)
        broker.store(Incoming("each", 0, b"%d" % number, text, flag=number, **fields))
    assert [queues[0].tag(number) for number in range(4)] == [queues[1].tag(number) for number in range(4)]
    for number in range(1, 4):
        whole, each = (codec.remoting.decode_messages(queue.log.record(number))[0] for queue in queues)
        for name in ("body", "flag", "born_at", "born_host", "properties", "offset", "queue_id"):
            assert getattr(whole, name) == getattr(each, name), name
    last = queues[0].log.record(3)
    assert broker.record(int.from_bytes(last[28:36], "big")) == last


def test_a_batch_wakes_who_waits_and_has_room_for_what_follows(codec: Any, broker: Broker) -> None:
    broker.make_topic("t", 1)
    woken: list[int] = []
    queue = broker.topic("t").queue(0)
    queue.waiting.append(lambda: woken.append(queue.log.next))
    broker.store_batch(Incoming("t", 0, batch(codec, {}, {}, {}), b""))
    assert woken == [3]
    stored = broker.store(Incoming("t", 0, b"after", b""))
    assert (stored.offset, broker.find(stored.physical_offset).body) == (3, b"after")


def test_who_stores_hears_where_it_lies(broker: Broker) -> None:
    broker.make_topic("t", 2)
    heard: list[Stored] = []
    stored = broker.store(Incoming("t", 1, b"x", b"", placed=heard.append))
    assert heard == [stored]
    assert (stored.queue_id, stored.offset) == (1, 0)


def test_the_commit_log_goes_on_behind_the_last_message_of_a_former_run(codec: Any, broker: Broker) -> None:
    broker.make_topic("t", 2)
    places = [broker.store(Incoming("t", number % 2, b"%d" % number, b"")) for number in range(4)]
    clock = Clock()
    later = Broker(House(codec, clock, Control(clock), Random(2)), "broker-a")
    adopted = later.make_topic("t", 2)
    for queue_id in (1, 0):  # the one with the end of the commit log first
        adopted.queue(queue_id).log = broker.topic("t").queue(queue_id).log
        later.go_on_behind(adopted.queue(queue_id).log)
    later.go_on_behind(Queue().log)
    assert later.end == broker.end
    stored = later.store(Incoming("t", 0, b"new", b""))
    assert (stored.offset, stored.physical_offset) == (2, broker.end)
    assert [later.find(place.physical_offset).body for place in places] == [b"0", b"1", b"2", b"3"]


def test_a_queue_is_told_of_once_when_it_is_made(broker: Broker) -> None:
    topic = broker.make_topic("t", 2)
    made: list[tuple[int, Queue]] = []
    topic.on_queue = lambda queue_id, queue: made.append((queue_id, queue))
    first = topic.queue(1)
    assert topic.queue(1) is first
    assert made == [(1, first)]


def test_a_topic_may_have_many_queues_but_not_any_number() -> None:
    assert queue_count(1 << 16) == 1 << 16
    with pytest.raises(Refused, match="65537 queues are too many"):
        queue_count((1 << 16) + 1)


def test_a_topic_is_shown_as_upstream_prints_it(broker: Broker) -> None:
    topic = broker.make_topic("t", 2, 4)
    topic.attributes["message.type"] = "NORMAL"
    assert topic.shown() == (
        "TopicConfig [topicName=t, readQueueNums=2, writeQueueNums=2, perm=R--, topicFilterType=SINGLE_TAG, "
        "topicSysFlag=0, order=false, attributes={message.type=NORMAL}]"
    )
