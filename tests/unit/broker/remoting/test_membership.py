"""Who is there: registered, listed, told of changes, forgotten (brokers/rocketmq-observed.md, parts 1 and 3)."""

from __future__ import annotations

import time

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting.bodies import write_body
from tests.unit.broker.remoting.conftest import Connect
from tests.unit.broker.remoting.raw import Raw, body_of

NOTICE = Request.NOTIFY_CONSUMER_IDS_CHANGED


def ids(raw: Raw, group: str) -> list[str]:
    return sorted(body_of(raw.ask(Request.GET_CONSUMER_LIST_BY_GROUP, consumerGroup=group))["consumerIdList"])


def test_everybody_hears_of_comers_and_goers(connect: Connect) -> None:
    one, two = connect(), connect()
    answer = one.heartbeat("one@1", "team", {"TBW102": 1})
    assert (answer.field("IS_SUPPORT_HEART_BEAT_V2"), answer.field("IS_SUB_CHANGE")) == ("true", "true")
    assert one.pushed(NOTICE).field("consumerGroup") == "team"
    two.heartbeat("two@1", "team", {"TBW102": 1})
    assert one.pushed(NOTICE).is_oneway
    assert two.pushed(NOTICE).field("consumerGroup") == "team"
    assert ids(one, "team") == ["one@1", "two@1"]
    two.ask(Request.UNREGISTER_CLIENT, clientID="two@1", consumerGroup="team")
    one.pushed(NOTICE)
    assert ids(one, "team") == ["one@1"]
    two.heartbeat("two@1", "team", {"TBW102": 1})
    one.pushed(NOTICE)
    two.close()
    one.pushed(NOTICE)
    assert ids(one, "team") == ["one@1"]


def test_a_heartbeat_without_news_and_a_broadcasting_group_are_quiet(connect: Connect) -> None:
    one = connect()
    one.heartbeat("one@1", "quiet", {"TBW102": 1})
    one.pushed(NOTICE)
    one.heartbeat("one@1", "quiet", {"TBW102": 2})  # a newer version is no change
    connect().heartbeat("b@1", "loud", {"TBW102": 1}, model="BROADCASTING")
    with pytest.raises(TimeoutError):
        one.pushed(NOTICE, 0.1)


def test_a_topic_that_came_or_went_is_a_change(connect: Connect) -> None:
    one = connect()
    one.heartbeat("one@1", "movers", {"TBW102": 1})
    one.pushed(NOTICE)
    one.heartbeat("one@1", "movers", {"TBW102": 1, "BenchmarkTest": 1})
    one.pushed(NOTICE)
    one.heartbeat("one@1", "movers", {"BenchmarkTest": 1})
    one.pushed(NOTICE)


def test_equal_ids_stand_there_twice(connect: Connect) -> None:
    one, two = connect(), connect()
    one.heartbeat("same@1", "twins", {"TBW102": 1})
    two.heartbeat("same@1", "twins", {"TBW102": 1})
    assert ids(one, "twins") == ["same@1", "same@1"]
    two.ask(Request.UNREGISTER_CLIENT, clientID="same@1", consumerGroup="twins")
    assert ids(one, "twins") == ["same@1"]


def test_connections_are_shown_with_their_addresses(connect: Connect) -> None:
    one = connect()
    one.heartbeat("one@1", "shown", {"TBW102": 5})
    body = body_of(one.ask(Request.GET_CONSUMER_CONNECTION_LIST, consumerGroup="shown"))
    (entry,) = body["connectionSet"]
    host, port = one._socket.getsockname()
    assert (entry["clientId"], entry["clientAddr"], entry["language"]) == ("one@1", f"{host}:{port}", "PYTHON")
    assert (body["messageModel"], body["subscriptionTable"]["TBW102"]["subVersion"]) == ("CLUSTERING", 5)


def test_groups_that_are_not_there(raw: Raw) -> None:
    assert raw.ask(Request.GET_CONSUMER_LIST_BY_GROUP, consumerGroup="nobody").code == 1
    assert raw.ask(Request.GET_CONSUMER_CONNECTION_LIST, consumerGroup="nobody").code == 206


def test_the_retry_topic_comes_with_the_group(raw: Raw, names: Raw) -> None:
    raw.heartbeat("one@1", "retriers", {"TBW102": 1})
    assert names.ask(Request.GET_ROUTEINFO_BY_TOPIC, topic="%RETRY%retriers").code == 0


def test_producers_are_known_until_they_leave(raw: Raw, connect: Connect, broker: EmbeddedBroker) -> None:
    members = broker._doors[0].services[0].members  # type: ignore[attr-defined]
    other = connect()
    beat = write_body({"clientID": "p@1", "producerDataSet": [{"groupName": "makers"}]})
    raw.ask(Request.HEART_BEAT, beat)
    other.ask(Request.HEART_BEAT, beat)
    assert len(members.producers["makers"]) == 2
    raw.ask(Request.UNREGISTER_CLIENT, clientID="p@1", producerGroup="makers")
    assert len(members.producers["makers"]) == 1
    other.close()
    until = time.monotonic() + 5
    while "makers" in members.producers and time.monotonic() < until:
        time.sleep(0.01)
    assert "makers" not in members.producers
    raw.ask(Request.UNREGISTER_CLIENT, clientID="p@1", producerGroup="unknown", consumerGroup="unknown")


def test_silent_members_are_closed_without_a_notice(connect: Connect, broker: EmbeddedBroker) -> None:
    silent, awake = connect(), connect()
    silent.heartbeat("silent@1", "sleepers", {"TBW102": 1})
    broker.control.move_clock(100)
    awake.heartbeat("awake@1", "sleepers", {"TBW102": 1})
    silent.pushed(NOTICE)
    silent.pushed(NOTICE)
    broker.control.move_clock(31)
    with pytest.raises((EOFError, ConnectionError)):
        silent.pushed(NOTICE)
    assert ids(awake, "sleepers") == ["awake@1"]


def test_filters_that_can_and_cannot_be_served(raw: Raw) -> None:
    codes = [
        raw.ask(Request.CHECK_CLIENT_CONFIG, write_body({"subscriptionData": {"expressionType": kind}})).code
        for kind in ("TAG", "SQL92")
    ]
    assert codes == [0, 1]
