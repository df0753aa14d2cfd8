"""Topics are made and changed; options are read and set."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting.bodies import write_body
from tests.unit.broker.remoting.raw import Raw, body_of


def test_making_a_topic_twice_changes_it(raw: Raw, names: Raw) -> None:
    raw.create_topic("grows", 2)
    raw.create_topic("grows", 5)
    route = body_of(names.ask(Request.GET_ROUTEINFO_BY_TOPIC, topic="grows"))
    assert route["queueDatas"][0]["readQueueNums"] == 5


@pytest.mark.parametrize("name", ["", "bad name!", "x" * 128, "TBW102"])
def test_names_that_are_not_taken(raw: Raw, name: str) -> None:
    fields: dict[str, Any] = {"topic": name, "readQueueNums": 1, "writeQueueNums": 1, "perm": 6}
    assert raw.ask(Request.UPDATE_AND_CREATE_TOPIC, **fields).code in (1, 29)


def test_options_are_in_force_at_once_and_shown(raw: Raw) -> None:
    text = b"# a comment\nuseServerSideResetOffset=false\nnonsense\n"
    assert raw.ask(Request.UPDATE_BROKER_CONFIG, text).code == 0
    answer = raw.ask(Request.GET_BROKER_CONFIG)
    lines = dict(line.split("=", 1) for line in answer.body.decode().splitlines())
    assert (lines["useServerSideResetOffset"], lines["brokerName"]) == ("false", "broker-a")
    assert answer.field("version")


def test_some_options_are_not_to_be_touched(raw: Raw) -> None:
    assert raw.ask(Request.UPDATE_BROKER_CONFIG, b"rocketmqHome=/\n").code == 16


def test_a_deleted_topic_is_gone(raw: Raw, names: Raw) -> None:
    raw.create_topic("gone")
    assert raw.ask(Request.DELETE_TOPIC_IN_BROKER, topic="gone").code == 0
    assert names.ask(Request.DELETE_TOPIC_IN_NAMESRV, topic="gone").code == 0
    assert names.ask(Request.GET_ROUTEINFO_BY_TOPIC, topic="gone").code == 17
    assert raw.ask(Request.DELETE_TOPIC_IN_BROKER, topic="TBW102").code == 29


def test_topics_are_made_in_one_go_and_shown(raw: Raw) -> None:
    configs = [{"topicName": "list-a", "readQueueNums": 2, "writeQueueNums": 3, "perm": 4}, {"topicName": "list-b"}]
    assert raw.ask(Request.UPDATE_AND_CREATE_TOPIC_LIST, write_body({"topicConfigList": configs})).code == 0
    one = body_of(raw.ask(Request.GET_TOPIC_CONFIG, topic="list-a"))
    assert (one["topicName"], one["readQueueNums"], one["writeQueueNums"], one["perm"]) == ("list-a", 2, 3, 4)
    assert body_of(raw.ask(Request.GET_TOPIC_CONFIG, topic="list-b"))["readQueueNums"] == 16
    answer = raw.ask(Request.GET_TOPIC_CONFIG, topic="nosuchtopic")
    assert (answer.code, answer.remark) == (17, "No topic in this broker. topic: nosuchtopic")
    wrong = write_body({"topicConfigList": [{"topicName": "TBW102"}]})
    assert raw.ask(Request.UPDATE_AND_CREATE_TOPIC_LIST, wrong).code == 29


def test_all_topics_in_pages_and_those_of_the_broker(raw: Raw) -> None:
    raw.create_topic("page-a")
    names: list[str] = []
    while True:
        answer = raw.ask(Request.GET_ALL_TOPIC_CONFIG, topicSeq=len(names), maxTopicNum=4)
        names += body_of(answer)["topicConfigTable"]
        if len(names) == int(answer.field("totalTopicNum")):
            break
    assert {"page-a", "TBW102"} <= set(names)
    assert len(names) == len(set(names))
    assert list(body_of(raw.ask(Request.GET_ALL_TOPIC_CONFIG))["topicConfigTable"]) == names
    system = body_of(raw.ask(Request.GET_SYSTEM_TOPIC_LIST_FROM_BROKER))["topicList"]
    assert "TBW102" in system
    assert "page-a" not in system


def test_a_topic_has_not_more_queues_than_can_be_looked_at(raw: Raw) -> None:
    for field in ("readQueueNums", "writeQueueNums"):
        counts: dict[str, Any] = {"readQueueNums": 4, "writeQueueNums": 4, field: 2**40}
        fields: dict[str, Any] = {"topic": "endless", "defaultTopic": "TBW102", "perm": 6, **counts}
        answer = raw.ask(Request.UPDATE_AND_CREATE_TOPIC, **fields)
        assert (answer.code, "too many" in answer.remark) == (29, True)
        listed = write_body({"topicConfigList": [{"topicName": "endless", **counts}]})
        assert raw.ask(Request.UPDATE_AND_CREATE_TOPIC_LIST, listed).code == 29
    group = write_body({"groupName": "endless", "retryQueueNums": 2**40})
    assert raw.ask(Request.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, group).code == 29
    assert raw.ask(Request.GET_TOPIC_STATS_INFO, topic="endless").code == 17


@pytest.mark.parametrize("number", ["9223372036854775808", "-9223372036854775809", "1" * 5000, "1.5", ""])
def test_numbers_are_of_64_bits(raw: Raw, number: str) -> None:
    answer = raw.ask(Request.GET_MAX_OFFSET, topic="TBW102", queueId=number)
    assert answer.code == 1
