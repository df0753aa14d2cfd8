"""What administrators are told is what happened."""

from __future__ import annotations

from typing import Any

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.bodies import write_body
from tests.unit.broker.remoting.conftest import Connect
from tests.unit.broker.remoting.raw import Raw, body_of


def fill(raw: Raw, topic: str, group: str, offset: int) -> None:
    """Three messages in queue 0 of two; the group has come this far."""
    raw.create_topic(topic, 2)
    for _ in range(3):
        raw.send(topic, b"x", 0)
    raw.ask(Request.GET_SUBSCRIPTIONGROUP_CONFIG, group=group)
    place: dict[str, Any] = {"consumerGroup": group, "topic": topic, "queueId": 0}
    raw.ask(Request.UPDATE_CONSUMER_OFFSET, **place, commitOffset=offset)


def stored_at(raw: Raw, topic: str, offset: int) -> int:
    (message, *_) = raw.codec.decode_messages(raw.pull("g", topic, offset).body)
    return int(message.stored_at)


def test_a_topic(raw: Raw, broker: EmbeddedBroker) -> None:
    fill(raw, "told", "tellers", 1)
    body = body_of(raw.ask(Request.GET_TOPIC_STATS_INFO, topic="told"))
    assert body["offsetTable"] == {
        MessageQueue("told", "broker-a", 0): {
            "lastUpdateTimestamp": stored_at(raw, "told", 2),
            "maxOffset": 3,
            "minOffset": 0,
        },
        MessageQueue("told", "broker-a", 1): {"lastUpdateTimestamp": 0, "maxOffset": 0, "minOffset": 0},
    }
    assert body["topicPutTps"] == 0.05
    broker.control.move_clock(61)
    assert body_of(raw.ask(Request.GET_TOPIC_STATS_INFO, topic="told"))["topicPutTps"] == 0
    answer = raw.ask(Request.GET_TOPIC_STATS_INFO, topic="nosuchtopic")
    assert (answer.code, answer.remark) == (17, "topic[nosuchtopic] not exist")


def test_a_group(connect: Connect) -> None:
    raw, member = connect(), connect()
    fill(raw, "eaten", "eaters", 2)
    fill(raw, "drunk", "eaters", 0)

    def progress(group: str = "eaters", **fields: Any) -> Any:
        return body_of(raw.ask(Request.GET_CONSUME_STATS, consumerGroup=group, **fields))["offsetTable"]

    assert progress(topic="eaten") == {
        MessageQueue("eaten", "broker-a", 0): {
            "brokerOffset": 3,
            "consumerOffset": 2,
            "lastTimestamp": stored_at(raw, "eaten", 1),
            "pullOffset": 2,
        },
        MessageQueue("eaten", "broker-a", 1): {
            "brokerOffset": 0,
            "consumerOffset": 0,
            "lastTimestamp": 0,
            "pullOffset": 0,
        },
    }
    assert {queue.topic for queue in progress()} == {"eaten", "drunk"}
    assert {queue.topic for queue in progress(topicList="drunk;nosuchtopic")} == {"drunk"}
    assert progress("nobody") == progress(topic="nosuchtopic") == {}
    member.heartbeat("me@1", "eaters", {"drunk": 1})
    assert {queue.topic for queue in progress()} == {"drunk"}


def test_every_group(raw: Raw) -> None:
    fill(raw, "counted", "counters", 1)
    body = body_of(raw.ask(Request.GET_BROKER_CONSUME_STATS, isOrder="false"))
    (stats,) = next(entry["counters"] for entry in body["consumeStatsList"] if "counters" in entry)
    assert stats["offsetTable"][MessageQueue("counted", "broker-a", 0)]["consumerOffset"] == 1
    assert body["totalDiff"] >= 2
    ordered = body_of(raw.ask(Request.GET_BROKER_CONSUME_STATS, isOrder="true"))
    assert ordered["totalDiff"] == 0


def test_who_sends(raw: Raw, broker: EmbeddedBroker) -> None:
    beat = {"clientID": "sender@1", "producerDataSet": [{"groupName": "senders"}], "consumerDataSet": []}
    raw.ask(Request.HEART_BEAT, write_body(beat))
    (connection,) = body_of(raw.ask(Request.GET_PRODUCER_CONNECTION_LIST, producerGroup="senders"))["connectionSet"]
    assert (connection["clientId"], connection["language"], connection["version"]) == ("sender@1", "PYTHON", 479)
    broker.control.move_clock(5)
    (info,) = body_of(raw.ask(Request.GET_ALL_PRODUCER_INFO))["data"]["senders"]
    assert info["remoteIP"] == f"/{connection['clientAddr']}"
    assert 4000 < broker.house.clock.wall_ms() - info["lastUpdateTimestamp"] < 15_000
    answer = raw.ask(Request.GET_PRODUCER_CONNECTION_LIST, producerGroup="nobody")
    assert (answer.code, answer.remark) == (1, "the producer group[nobody] not exist")


def test_who_consumes_what(connect: Connect) -> None:
    raw, member = connect(), connect()
    fill(raw, "read", "readers", 1)
    member.heartbeat("me@1", "subscribers", {"read": 5})
    assert body_of(raw.ask(Request.QUERY_TOPIC_CONSUME_BY_WHO, topic="read"))["groupList"] == ["readers", "subscribers"]
    assert body_of(raw.ask(Request.QUERY_TOPICS_BY_CONSUMER, group="readers"))["topicList"] == ["read"]
    assert body_of(raw.ask(Request.QUERY_TOPICS_BY_CONSUMER, group="nobody"))["topicList"] == []
    asked = body_of(raw.ask(Request.QUERY_SUBSCRIPTION_BY_CONSUMER, group="subscribers", topic="read"))
    assert asked["subscriptionData"]["subVersion"] == 5
    for group in ("nobody", "subscribers"):
        found = raw.ask(Request.QUERY_SUBSCRIPTION_BY_CONSUMER, group=group, topic="unread")
        assert body_of(found) == {"group": group, "topic": "unread"}
    offsets = body_of(raw.ask(Request.GET_ALL_CONSUMER_OFFSET))["offsetTable"]
    assert offsets["read@readers"] == {"0": 1}


def test_the_broker(raw: Raw, broker: EmbeddedBroker) -> None:
    table = body_of(raw.ask(Request.GET_BROKER_RUNTIME_INFO))["table"]
    before, end = int(table["msgPutTotalTodayNow"]), int(table["commitLogMaxOffset"])
    fill(raw, "run", "runners", 0)
    broker.control.move_clock(86_400 + 7200 + 1)
    table = body_of(raw.ask(Request.GET_BROKER_RUNTIME_INFO))["table"]
    assert int(table["msgPutTotalTodayNow"]) == before + 3
    assert int(table["commitLogMaxOffset"]) > end
    assert table["runtime"].startswith("[ 1 days, 2 hours, ")
    assert table["putTps"] == "0.0 0.0 0.0"
    assert 0 < int(table["earliestMessageTimeStamp"]) < broker.house.clock.wall_ms() - 86_400_000
    assert all(isinstance(value, str) for value in table.values())
