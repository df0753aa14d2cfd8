"""What a RocketMQ broker has told is there again after a crash: messages, topics, groups, offsets, what waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.errors import ConfigError
from mqclient.rocketmq.codes import Request, Response
from tests.support.crash import crashed
from tests.unit.broker.remoting.raw import Raw

Start = Callable[[], tuple[EmbeddedBroker, Raw]]


@pytest.fixture
def start(codec: Any, tmp_path: Path) -> Iterator[Start]:
    """The first call starts a broker on a new folder, each later one on what a crash of the one before left."""
    runs: list[EmbeddedBroker] = []
    with ExitStack() as stack:

        def run() -> tuple[EmbeddedBroker, Raw]:
            folder = tmp_path / f"run-{len(runs)}"
            if runs:
                crashed(runs[-1], folder)
            broker = EmbeddedBroker(doors=["rocketmq"], impl=codec, data=folder)
            runs.append(stack.enter_context(broker))
            return broker, stack.enter_context(Raw(codec.remoting, broker.addresses()["broker-a"]))

        yield run


def bodies(raw: Raw, topic: str, queue_id: int = 0) -> list[bytes]:
    answer = raw.pull("reader", topic, 0, queue_id)
    return [message.body for message in raw.codec.decode_messages(answer.body)] if answer.code == 0 else []


def test_messages_and_their_numbers(start: Start) -> None:
    _, raw = start()
    raw.create_topic("orders", 2)
    for number in range(3):
        raw.send("orders", b"%d" % number, TAGS="a" if number else "b")
    first = raw.pull("reader", "orders", 0).body
    _, raw = start()
    assert raw.pull("reader", "orders", 0).body == first
    raw.send("orders", b"3", TAGS="a")
    assert bodies(raw, "orders") == [b"0", b"1", b"2", b"3"]
    messages = raw.codec.decode_messages(raw.pull("reader", "orders", 0).body)
    places = [message.physical_offset for message in messages]
    assert places == sorted(set(places))
    assert [message.offset for message in messages] == [0, 1, 2, 3]
    assert bodies(raw, "orders", 1) == []
    _, raw = start()
    tagged = raw.pull("reader", "orders", 0, subscription="b")
    assert [message.body for message in raw.codec.decode_messages(tagged.body)] == [b"0"]


def test_topics_groups_and_options(start: Start) -> None:
    broker, raw = start()
    raw.create_topic("orders", 3)
    raw.create_topic("gone", 1)
    raw.send("gone", b"x")
    raw.create_topic("anew", 1)
    raw.send("anew", b"old")
    raw.ask(Request.DELETE_TOPIC_IN_BROKER, topic="gone")
    raw.ask(Request.DELETE_TOPIC_IN_BROKER, topic="anew")
    raw.create_topic("anew", 1)
    raw.send("anew", b"new")
    group = b'{"groupName":"g","retryQueueNums":2,"retryMaxTimes":5}'
    raw.ask(Request.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, group)
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"maxMessageSize=1000\n")
    kept = broker._doors[0].services[0].broker  # type: ignore[attr-defined]
    broker, raw = start()
    again = broker._doors[0].services[0].broker  # type: ignore[attr-defined]
    assert again.topics.keys() == kept.topics.keys()
    assert (again.topics["orders"].read_queues, again.topics["orders"].perm) == (3, 6)
    assert again.groups == kept.groups
    assert again.groups["g"].retry_max == 5
    assert again.config == kept.config
    assert bodies(raw, "anew") == [b"new"]
    raw.create_topic("orders", 4)
    broker, raw = start()
    assert broker._doors[0].services[0].broker.topics["orders"].read_queues == 4  # type: ignore[attr-defined]


def test_offsets_and_resets(start: Start) -> None:
    _, raw = start()
    raw.create_topic("orders", 1)
    for _ in range(3):
        raw.send("orders", b"x")
    raw.pull("g", "orders", 0)
    place: dict[str, Any] = {"consumerGroup": "g", "topic": "orders", "queueId": 0}
    assert raw.ask(Request.UPDATE_CONSUMER_OFFSET, **place, commitOffset=2).code == 0
    _, raw = start()
    assert raw.ask(Request.QUERY_CONSUMER_OFFSET, **place).field("offset") == "2"
    raw.ask(Request.INVOKE_BROKER_TO_RESET_OFFSET, topic="orders", group="g", timestamp=0, isForce="true")
    _, raw = start()
    answer = raw.pull("g", "orders", 2)
    assert (answer.code, answer.field("nextBeginOffset")) == (Response.PULL_OFFSET_MOVED, "0")


def test_what_was_to_come_later_comes(start: Start) -> None:
    _, raw = start()
    raw.create_topic("later", 1)
    raw.send("later", b"by level", DELAY="3")
    raw.send("later", b"in a minute", TIMER_DELAY_SEC="60")
    broker, raw = start()
    assert bodies(raw, "later") == []
    broker.control.move_clock(11)
    assert bodies(raw, "later") == [b"by level"]
    broker, raw = start()
    assert bodies(raw, "later") == [b"by level"]
    broker.control.move_clock(61)
    assert bodies(raw, "later") == [b"by level", b"in a minute"]
    broker, raw = start()
    broker.control.move_clock(1000)
    assert bodies(raw, "later") == [b"by level", b"in a minute"]


def test_what_is_asked_for_at_the_start_has_precedence(codec: Any, tmp_path: Path) -> None:
    with (
        EmbeddedBroker(doors=["rocketmq"], impl=codec, data=tmp_path) as broker,
        Raw(codec.remoting, broker.addresses()["broker-a"]) as raw,
    ):
        raw.ask(Request.UPDATE_BROKER_CONFIG, b"maxMessageSize=1000\ndefaultTopicQueueNums=2\n")
    with EmbeddedBroker(doors=["rocketmq"], impl=codec, data=tmp_path, maxMessageSize=2000) as broker:
        config = broker._doors[0].services[0].broker.config  # type: ignore[attr-defined]
        assert (config["maxMessageSize"], config["defaultTopicQueueNums"]) == ("2000", "2")


def test_a_folder_of_more_brokers_is_refused(codec: Any, tmp_path: Path) -> None:
    with EmbeddedBroker(doors=["rocketmq"], impl=codec, data=tmp_path, brokers=2):
        pass
    broker = EmbeddedBroker(doors=["rocketmq"], impl=codec, data=tmp_path)
    with pytest.raises(ConfigError, match="also holds rocketmq/broker-b"):
        broker.start()
    with (
        EmbeddedBroker(doors=["rocketmq"], impl=codec, data=tmp_path, brokers=2),
        pytest.raises(ConfigError, match="is in use by process"),
    ):
        EmbeddedBroker(doors=["rocketmq"], impl=codec, data=tmp_path, brokers=2).start()


def test_half_messages_that_nobody_decided_about_are_asked_about(start: Start) -> None:
    broker, raw = start()
    raw.create_topic("accounts", 1)
    now = broker.house.clock.wall_ms()
    ends = []
    for name in ("open", "done"):
        text = f"TRAN_MSG\x01true\x02PGROUP\x01bank\x02UNIQ_KEY\x01{name}\x02"
        fields = {"a": "bank", "b": "accounts", "c": "TBW102", "d": 4, "e": 0, "f": 4, "g": now, "h": 0, "i": text}
        sent = raw.ask(Request.SEND_MESSAGE_V2, name.encode(), **fields)
        place = raw.codec.parse_offset_id(sent.field("msgId"))[2]
        ends.append({"commitLogOffset": place, "tranStateTableOffset": sent.field("queueOffset")})
    assert raw.ask(Request.END_TRANSACTION, producerGroup="bank", commitOrRollback=8, **ends[1]).code == 0
    broker, raw = start()
    beat = b'{"clientID":"bank@1","producerDataSet":[{"groupName":"bank"}]}'
    assert raw.ask(Request.HEART_BEAT, beat).code == 0
    broker.control.move_clock(31)
    asked = raw.pushed(Request.CHECK_TRANSACTION_STATE)
    assert asked.field("msgId") == "open"
    names = ("commitLogOffset", "tranStateTableOffset")
    end = {name: asked.field(name) for name in names}
    assert raw.ask(Request.END_TRANSACTION, producerGroup="bank", commitOrRollback=8, **end).code == 0
    assert bodies(raw, "accounts") == [b"done", b"open"]
    broker, raw = start()
    assert raw.ask(Request.HEART_BEAT, beat).code == 0
    broker.control.move_clock(3600)
    assert bodies(raw, "RMQ_SYS_TRANS_HALF_TOPIC") == [b"open", b"done", b"open"], "nobody is asked again"


def test_what_was_popped_and_not_acknowledged_is_popped_again(start: Start) -> None:
    _, raw = start()
    raw.create_topic("popped", 1)
    for number in range(3):
        raw.send("popped", b"%d" % number)

    def pop(raw: Raw, count: int) -> Any:
        now = int(time.time() * 1000)
        fields: dict[str, Any] = {"consumerGroup": "g", "topic": "popped", "queueId": 0, "bornTime": now}
        fields["maxMsgNums"] = count
        return raw.ask(Request.POP_MESSAGE, **fields, invisibleTime=60_000, pollTime=0, initMode=0)

    answer = pop(raw, 2)
    handle = f"0 {answer.field('popTime')} 60000 {answer.field('reviveQid')} 0 broker-a 0 0"
    place: dict[str, Any] = {"consumerGroup": "g", "topic": "popped", "queueId": 0, "offset": 0, "extraInfo": handle}
    assert raw.ask(Request.ACK_MESSAGE, **place).code == 0
    _, raw = start()
    again = raw.codec.decode_messages(pop(raw, 32).body)
    assert [message.body for message in again] == [b"1", b"2"]
