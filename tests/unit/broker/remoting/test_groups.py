"""Groups as administrators make, see, forbid, copy and delete them."""

from __future__ import annotations

from typing import Any

from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting.bodies import write_body
from tests.unit.broker.remoting.conftest import Connect
from tests.unit.broker.remoting.raw import Raw, body_of


def make(raw: Raw, name: str, **config: Any) -> None:
    body = write_body({"groupName": name, **config})
    assert raw.ask(Request.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body).code == 0


def shown(raw: Raw, name: str) -> Any:
    return body_of(raw.ask(Request.GET_SUBSCRIPTIONGROUP_CONFIG, group=name))


def commit(raw: Raw, group: str, topic: str, offset: int) -> None:
    place: dict[str, Any] = {"consumerGroup": group, "topic": topic, "queueId": 0}
    assert raw.ask(Request.UPDATE_CONSUMER_OFFSET, **place, commitOffset=offset).code == 0


def committed(raw: Raw, group: str, topic: str) -> Any:
    fields: dict[str, Any] = {"consumerGroup": group, "topic": topic, "queueId": 0, "setZeroIfNotFound": "false"}
    answer = raw.ask(Request.QUERY_CONSUMER_OFFSET, **fields)
    return answer.field("offset")


def test_a_group_is_made_with_its_limits(raw: Raw) -> None:
    make(raw, "strict", retryMaxTimes=2, consumeEnable=False, consumeTimeoutMinute=3, unheard="of")
    raw.create_topic("strictly")
    answer = raw.pull("strict", "strictly", 0)
    assert (answer.code, answer.field("forbiddenType")) == (16, "2")
    config = shown(raw, "strict")
    assert (config["retryMaxTimes"], config["consumeEnable"], config["consumeTimeoutMinute"]) == (2, False, 3)
    assert (config["brokerId"], config["groupRetryPolicy"], "unheard" in config) == (0, {"type": "CUSTOMIZED"}, False)
    assert raw.ask(Request.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, write_body({"groupName": " "})).code == 29


def test_many_at_once_and_all_in_pages(raw: Raw) -> None:
    configs = [{"groupName": f"listed-{number}", "retryMaxTimes": number} for number in range(5)]
    assert raw.ask(225, write_body({"groupConfigList": configs})).code == 0
    groups: dict[str, Any] = {}
    while True:
        answer = raw.ask(Request.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, groupSeq=len(groups), maxGroupNum=2)
        groups |= body_of(answer)["subscriptionGroupTable"]
        if len(groups) == int(answer.field("totalGroupNum")):
            break
    assert [groups[f"listed-{number}"]["retryMaxTimes"] for number in range(5)] == [0, 1, 2, 3, 4]


def test_a_group_that_is_not_there_is_made_by_looking_at_it(raw: Raw) -> None:
    assert shown(raw, "seen-first")["retryMaxTimes"] == 16
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"autoCreateSubscriptionGroup=false")
    answer = raw.ask(Request.GET_SUBSCRIPTIONGROUP_CONFIG, group="never-seen")
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"autoCreateSubscriptionGroup=true")
    assert answer.code == 26


def test_a_group_may_be_forbidden_a_topic(connect: Connect) -> None:
    raw = connect()
    raw.create_topic("secret", 1)
    raw.send("secret", b"x")
    raw.heartbeat("spy@1", "spies", {"secret": 1})

    def forbid(**fields: Any) -> Any:
        return body_of(raw.ask(Request.UPDATE_AND_GET_GROUP_FORBIDDEN, group="spies", topic="secret", **fields))

    assert forbid()["readable"] is True
    assert forbid(readable="false") == {"group": "spies", "readable": False, "topic": "secret"}
    assert forbid(readable="false")["readable"] is False
    answer = raw.pull("spies", "secret", 0, sysFlag=0, subVersion=1)
    assert (answer.code, answer.field("forbiddenType")) == (16, "5")
    assert answer.remark == "the consumer group[spies] is forbidden for topic[secret]"
    table = body_of(raw.ask(Request.GET_ALL_SUBSCRIPTIONGROUP_CONFIG))["forbiddenTable"]
    assert table == {"spies": {"secret": 1}}
    make(raw, "spies", retryMaxTimes=1)
    assert forbid()["readable"] is False, "changing the group does not pardon it"
    assert forbid(readable="true")["readable"] is True
    assert raw.pull("spies", "secret", 0, sysFlag=0, subVersion=1).code == 0


def test_offsets_are_copied_and_deleted(connect: Connect) -> None:
    raw, member = connect(), connect()
    for topic in ("copied", "other"):
        raw.create_topic(topic, 1)
        raw.send(topic, b"x")
    make(raw, "source")
    commit(raw, "source", "copied", 7)
    commit(raw, "source", "other", 8)
    one: dict[str, Any] = {"srcGroup": "source", "topic": "copied", "offline": "true"}
    assert raw.ask(Request.CLONE_GROUP_OFFSET, **one, destGroup="one").code == 0
    assert (committed(raw, "one", "copied"), committed(raw, "one", "other")) == ("7", None)
    raw.ask(Request.CLONE_GROUP_OFFSET, srcGroup="source", destGroup="all", offline="true")
    assert (committed(raw, "all", "copied"), committed(raw, "all", "other")) == ("7", "8")
    member.heartbeat("me@1", "source", {"other": 1})
    raw.ask(Request.CLONE_GROUP_OFFSET, srcGroup="source", destGroup="online", offline="false")
    assert (committed(raw, "online", "copied"), committed(raw, "online", "other")) == (None, "8")
    assert raw.ask(Request.DELETE_SUBSCRIPTIONGROUP, groupName="source", cleanOffset="false").code == 0
    assert committed(raw, "source", "other") == "8"
    assert raw.ask(Request.DELETE_SUBSCRIPTIONGROUP, groupName="source", cleanOffset="true").code == 0
    assert committed(raw, "source", "other") is None
