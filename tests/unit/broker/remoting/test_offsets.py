"""How far groups are, and where queues begin and end (brokers/rocketmq-observed.md, part 4)."""

from __future__ import annotations

from typing import Any

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from tests.unit.broker.remoting.raw import Raw


def test_no_offset_of_an_empty_a_young_and_an_old_queue(raw: Raw, broker: EmbeddedBroker) -> None:
    raw.create_topic("young", 2)
    key: dict[str, Any] = {"consumerGroup": "g", "topic": "young", "queueId": 0}
    empty = raw.ask(Request.QUERY_CONSUMER_OFFSET, **key)
    assert (empty.code, empty.remark) == (22, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first")
    raw.send("young", b"x")
    young = raw.ask(Request.QUERY_CONSUMER_OFFSET, **key)
    assert (young.code, young.field("offset")) == (0, "0")
    strict = raw.ask(Request.QUERY_CONSUMER_OFFSET, **key, setZeroIfNotFound="false")
    assert (strict.code, strict.remark) == (22, "Not found, do not set to zero, maybe this group boot first")
    log = broker._doors[0].services[0].broker.topics["young"].queues[0].log  # type: ignore[attr-defined]
    raw.send("young", b"y")
    log.trim(1)
    assert raw.ask(Request.QUERY_CONSUMER_OFFSET, **key).code == 22
    assert raw.ask(Request.GET_MIN_OFFSET, topic="young", queueId=0).field("offset") == "1"
    assert raw.pull("g", "young", 0).remark == "OFFSET_TOO_SMALL"


def test_offsets_are_stored_as_they_are(raw: Raw) -> None:
    raw.create_topic("stored")
    raw.heartbeat("me@1", "keepers", {"stored": 1})
    key: dict[str, Any] = {
        "consumerGroup": "keepers",
        "topic": "stored",
        "queueId": 77,
    }  # a queue that is not there: accepted
    for offset in (9, 4):
        assert raw.ask(Request.UPDATE_CONSUMER_OFFSET, **key, commitOffset=offset).code == 0
    assert raw.ask(Request.QUERY_CONSUMER_OFFSET, **key).field("offset") == "4"


def test_unknown_groups_and_topics(raw: Raw) -> None:
    key: dict[str, Any] = {"consumerGroup": "NoGroupQ", "topic": "stored", "queueId": 0, "commitOffset": 1}
    answer = raw.ask(Request.UPDATE_CONSUMER_OFFSET, **key)
    assert (answer.code, answer.remark) == (26, "Group NoGroupQ not exist!")
    raw.heartbeat("me@1", "wanderers", {"TBW102": 1})
    assert raw.ask(Request.UPDATE_CONSUMER_OFFSET, **key | {"consumerGroup": "wanderers", "topic": "x"}).code == 17


def test_ends_and_times(raw: Raw, broker: EmbeddedBroker) -> None:
    raw.create_topic("times", 2)
    clock = broker.house.clock
    stamps = []
    for _ in range(3):
        stamps.append(clock.wall_ms())
        raw.send("times", b"x")
        broker.control.move_clock(10)
    queue: dict[str, Any] = {"topic": "times", "queueId": 0}
    assert raw.ask(Request.GET_MAX_OFFSET, **queue).field("offset") == "3"

    def at(when: int, **bounds: Any) -> str:
        found: str = raw.ask(Request.SEARCH_OFFSET_BY_TIMESTAMP, **queue, timestamp=when, **bounds).field("offset")
        return found

    assert [at(0), at(stamps[1]), at(stamps[2] + 5000)] == ["0", "1", "3"]
    assert [at(stamps[1] + 5000, boundaryType="UPPER"), at(0, boundaryType="UPPER")] == ["1", "0"]
    nothing: dict[str, Any] = {"topic": "times", "queueId": 1}
    codes = (Request.GET_MAX_OFFSET, Request.GET_MIN_OFFSET)
    assert [raw.ask(code, **nothing).field("offset") for code in codes] == ["0", "0"]
    assert raw.ask(Request.SEARCH_OFFSET_BY_TIMESTAMP, **nothing, timestamp=5).field("offset") == "0"


def test_the_time_of_the_oldest_message(raw: Raw, broker: EmbeddedBroker) -> None:
    raw.create_topic("oldest", 1)
    queue: dict[str, Any] = {"topic": "oldest", "queueId": 0}
    assert raw.ask(Request.GET_EARLIEST_MSG_STORETIME, **queue).field("timestamp") == "-1"
    before = broker.house.clock.wall_ms()
    raw.send("oldest", b"x")
    assert 0 <= int(raw.ask(Request.GET_EARLIEST_MSG_STORETIME, **queue).field("timestamp")) - before < 5000
