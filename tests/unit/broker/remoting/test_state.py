"""A broker's state: topics, groups, tags, and messages found by their place in the commit log."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from mqclient.broker.broker import House
from mqclient.broker.control import Clock, Control
from mqclient.broker.remoting.server import Refused
from mqclient.broker.remoting.state import Broker, Cluster, Incoming


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


def test_a_topic_is_shown_as_upstream_prints_it(broker: Broker) -> None:
    topic = broker.make_topic("t", 2, 4)
    topic.attributes["message.type"] = "NORMAL"
    assert topic.shown() == (
        "TopicConfig [topicName=t, readQueueNums=2, writeQueueNums=2, perm=R--, topicFilterType=SINGLE_TAG, "
        "topicSysFlag=0, order=false, attributes={message.type=NORMAL}]"
    )
