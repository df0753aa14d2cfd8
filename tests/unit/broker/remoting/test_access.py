"""Who signs wrong is refused, and who signs right does what its account says; in the words of 4.9 and of 5.x."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.broker.remoting.access import Access
from mqclient.errors import ConfigError
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting.bodies import write_body
from mqclient.rocketmq.signing import ACL
from tests.unit.broker.remoting.raw import Raw, pull_fields

ACCOUNTS: list[dict[str, Any]] = [
    {"accessKey": "admin", "secretKey": "swordfish", "admin": True},
    {
        "accessKey": "user",
        "secretKey": "12345678",
        "topicPerms": ["open=PUB|SUB", "closed=DENY", "readable=SUB"],
        "groupPerms": ["members = sub"],
    },
]
ADMIN, USER = ACL("admin", "swordfish"), ACL("user", "12345678")
OLD = "org.apache.rocketmq.acl.common.AclException: "


@pytest.fixture(name="broker", scope="module", params=["aclEnable", "authenticationEnabled"])
def broker_fixture(codec: Any, request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker]:
    settings: dict[str, Any] = {request.param: True, "accounts": ACCOUNTS}
    with EmbeddedBroker(doors=["rocketmq"], impl=codec, **settings) as broker:
        with Raw(codec.remoting, broker.addresses()["broker-a"]) as raw:
            for topic in ("open", "closed", "readable"):
                assert signed(raw, ADMIN, Request.UPDATE_AND_CREATE_TOPIC, **TOPIC | {"topic": topic}).code == 0
        yield broker


@pytest.fixture(name="old")
def old_fixture(broker: EmbeddedBroker) -> bool:
    """Whether it refuses as 4.9 does."""
    return bool(broker.house.settings.get("aclEnable"))


TOPIC: dict[str, Any] = {"topic": "open", "defaultTopic": "TBW102", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6}


def signed(raw: Raw, who: ACL, code: int, body: bytes = b"", **fields: Any) -> Any:
    texts = {name: str(value) for name, value in fields.items()} | who.fields()
    return raw.ask(code, body, **texts, Signature=who.sign(texts, body))


def send(topic: str) -> dict[str, Any]:
    return {"a": "p", "b": topic, "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": int(time.time() * 1000), "h": 0, "i": ""}


@pytest.mark.parametrize(
    ("who", "said_then", "said_now"),
    [
        (None, "No accessKey is configured", "username cannot be null."),
        (ACL("nobody", "x"), "No acl config for nobody", "User:nobody is not found."),
        (ACL("admin", "wrong"), "Check signature failed for accessKey=admin", "check signature failed."),
        (ACL("admin", "wrong", "token"), "Check signature failed for accessKey=admin", "check signature failed."),
    ],
)
def test_who_is_not_known(raw: Raw, old: bool, who: ACL | None, said_then: str, said_now: str) -> None:
    for code in (Request.UPDATE_AND_CREATE_TOPIC, 9999):
        answer = raw.ask(code, **TOPIC) if who is None else signed(raw, who, code, **TOPIC)
        assert (answer.code, answer.remark) == ((1, OLD + said_then) if old else (16, said_now))


def test_what_is_signed_is_fields_and_body(raw: Raw) -> None:
    assert signed(raw, USER, Request.SEND_MESSAGE_V2, b"body", **send("open")).code == 0
    texts = {name: str(value) for name, value in send("open").items()} | USER.fields()
    signature = USER.sign(texts, b"body")
    assert raw.ask(Request.SEND_MESSAGE_V2, b"bogus", **texts, Signature=signature).code != 0
    assert raw.ask(Request.SEND_MESSAGE_V2, b"body", **texts | {"h": "1"}, Signature=signature).code != 0
    assert signed(raw, ACL("admin", "swordfish", "token"), 9999).code == 3, "known, and then not supported"


def test_old_clients_do_not_sign_a_flag_of_queries(raw: Raw) -> None:
    fields = {"topic": "open", "key": "k", "maxNum": "1", "beginTimestamp": "0", "endTimestamp": "1"}
    texts = fields | ADMIN.fields()
    flag = {"_UNIQUE_KEY_QUERY": "true"}
    frames = []
    for version in (399, 479):
        frame = raw.codec.encode_frame(
            12, 7000 + version, fields=texts | flag | {"Signature": ADMIN.sign(texts, b"")}, version=version
        )
        raw._socket.sendall(frame)
        frames.append(raw.answer(7000 + version).code)
    assert frames[0] == 22
    assert frames[1] in (1, 16)


def beat(group: str, *topics: str) -> bytes:
    subscriptions = [{"topic": topic, "subString": "*", "subVersion": 1} for topic in (*topics, f"%RETRY%{group}")]
    entry = {"groupName": group, "subscriptionDataSet": subscriptions}
    return write_body({"clientID": "c@1", "producerDataSet": [{"groupName": "p"}], "consumerDataSet": [entry]})


CASES: list[tuple[str, int, bytes, dict[str, Any], str]] = [
    ("send", 310, b"x", send("open"), ""),
    ("send to a closed one", 310, b"x", send("closed"), "topic:closed"),
    ("send to one that is for reading", 310, b"x", send("readable"), "topic:readable"),
    ("send to an unknown one", 310, b"x", send("unknown"), "topic:unknown"),
    ("send to a retry topic", 310, b"x", send("%RETRY%strangers"), "group:strangers"),
    ("pull", 11, b"", pull_fields("members", "readable", 0), ""),
    ("pull as a stranger", 11, b"", pull_fields("strangers", "readable", 0), "group:strangers"),
    ("beat", 34, beat("members", "open"), {}, ""),
    ("beat for a closed topic", 34, beat("members", "closed"), {}, "topic:closed"),
    ("beat as a stranger", 34, beat("strangers"), {}, "group:strangers"),
    ("leave", 35, b"", {"clientID": "c@1", "consumerGroup": "strangers"}, "group:strangers"),
    ("leave as a producer", 35, b"", {"clientID": "c@1", "producerGroup": "strangers"}, ""),
    ("send back", 36, b"", {"originTopic": "closed", "group": "members", "offset": 0, "delayLevel": 0}, "topic:closed"),
    ("look at options", 26, b"", {}, ""),
]


@pytest.mark.parametrize(("code", "body", "fields", "denied"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_what_an_account_may_do(
    raw: Raw, old: bool, code: int, body: bytes, fields: dict[str, Any], denied: str
) -> None:
    answer = signed(raw, USER, code, body, **fields)
    if denied and old:
        assert (answer.code, answer.remark) == (1, f"{OLD}No default permission for {denied}")
    else:
        assert "permission" not in (answer.remark or "")


def test_some_things_are_for_administrators(raw: Raw, old: bool) -> None:
    answer = signed(raw, USER, Request.UPDATE_AND_CREATE_TOPIC, **TOPIC)
    if old:
        assert answer.remark == f"{OLD}Need admin permission for request code=17, but accessKey=user is not"
    else:
        assert answer.code == 0


def test_secrets_are_no_options(raw: Raw) -> None:
    options = signed(raw, ADMIN, Request.GET_BROKER_CONFIG).body
    assert b"brokerName=broker-a" in options
    assert b"swordfish" not in options


def test_a_heartbeat_that_cannot_be_read(raw: Raw, old: bool) -> None:
    if old:
        assert signed(raw, USER, 34, b'{"consumerDataSet":[{}]}').code == 1


@pytest.mark.parametrize(
    ("accounts", "told"),
    [
        ([], "accounts= is missing"),
        ([{"accessKey": "a"}], "secret_key is missing"),
        ([{"accessKey": "a", "secretKey": "s", "topicPerms": ["t"]}], "'t' is no permission"),
        ([{"accessKey": "a", "secretKey": "s", "defaultTopicPerm": "ALL"}], "'ALL' is no permission"),
    ],
)
def test_accounts_that_say_nothing(accounts: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Access({"aclEnable": True, "accounts": accounts})
