"""What one request carries: properties, timing, compression; and what its answer tells of each message."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.rocketmq.model import Message, MessageQueue, Receipt
from mqclient.rocketmq.remoting.outgoing import Preparer, Stored
from mqclient.rocketmq.remoting.producer_options import COMPRESSIONS, ProducerOptions

QUEUE = MessageQueue("orders", "broker-a", 1)


def prepare(codec: Any, message: Message, **options: Any) -> Any:
    return Preparer(codec.remoting, ProducerOptions(**options)).one(message, "ID")


def properties(codec: Any, message: Message) -> dict[str, str]:
    found: dict[str, str] = codec.remoting.decode_properties(prepare(codec, message).properties)
    return found


def test_properties_of_a_message(codec: Any) -> None:
    message = Message("orders", b"x", tag="t", keys=["a", "b"], properties={"own": "1"})
    assert properties(codec, message) == {"UNIQ_KEY": "ID", "WAIT": "true", "TAGS": "t", "KEYS": "a b", "own": "1"}


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"delay_level": 3}, "DELAY", "3"),
        ({"deliver_at": 1_700_000_000_123}, "TIMER_DELIVER_MS", "1700000000123"),
        ({"deliver_at": datetime.fromtimestamp(1_700_000_000, timezone.utc)}, "TIMER_DELIVER_MS", "1700000000000"),
        ({"deliver_after": 1.5}, "TIMER_DELAY_MS", "1500"),
    ],
)
def test_delays_travel_alone(codec: Any, given: dict[str, Any], name: str, value: str) -> None:
    message = Message("orders", b"x", **given)
    assert properties(codec, message)[name] == value
    assert prepare(codec, message).alone


def test_one_delay_is_enough(codec: Any) -> None:
    with pytest.raises(ConfigError, match="not by two"):
        prepare(codec, Message("orders", b"x", delay_level=1, deliver_after=1))


@pytest.mark.parametrize("name", sorted(COMPRESSIONS))
def test_large_bodies_are_compressed_and_say_how(codec: Any, name: str) -> None:
    if name != "zlib":
        pytest.importorskip({"lz4": "lz4.frame", "zstd": "zstandard"}[name])
    message = Message("orders", b"x" * 5000)
    prepared = prepare(codec, message, compression=name)
    assert (prepared.alone, prepared.sys_flag) == (True, COMPRESSIONS[name][1])
    assert len(prepared.body) < 500
    assert len(message.body) == 5000


def test_not_below_the_limit_nor_where_it_does_not_help(codec: Any) -> None:
    assert prepare(codec, Message("orders", b"x" * 4095)).sys_flag == 0
    assert prepare(codec, Message("orders", bytes(range(256))), compress_above=1).sys_flag == 0
    assert prepare(codec, Message("orders", b"x" * 5000), compression=None).sys_flag == 0


def answer(codec: Any, code: int = 0, **fields: str) -> Any:
    (frame,) = codec.remoting.FrameReader().feed(codec.remoting.encode_frame(code, 1, flag=1, fields=fields))
    return frame


def test_receipts_of_a_batch(codec: Any) -> None:
    frame = answer(codec, queueId="1", queueOffset="7", msgId="A,B,C", MSG_REGION="here")
    stored = Stored(codec.remoting, ["x", "y", "z"], frame, QUEUE)
    first = stored.first
    assert first == stored[0] == stored.first
    assert stored.receipts() == [stored[0], stored[1], stored[2]] == stored[0:3]
    assert (stored[2].offset, stored[2].message_id, stored[2].offset_id) == (9, "z", "C")
    assert (len(stored), stored.region, stored[0].queue) == (3, "here", QUEUE)
    with pytest.raises(IndexError):
        stored[3]


def test_an_answer_with_one_id_for_all_and_another_queue(codec: Any) -> None:
    frame = answer(codec, 11, queueId="3", queueOffset="7", msgId="A", TRACE_ON="false")
    stored = Stored(codec.remoting, ["x", "y"], frame, QUEUE)
    assert stored.first == stored[0]
    assert [receipt.offset_id for receipt in stored.receipts()] == ["", ""]
    assert stored.receipts()[1].queue == QUEUE._replace(queue_id=3)
    assert (stored.status, stored.region) == ("SLAVE_NOT_AVAILABLE", None)


def test_a_single_answer_has_its_transaction_and_handle(codec: Any) -> None:
    frame = answer(codec, queueId="1", queueOffset="7", msgId="A", transactionId="T", recallHandle="H")
    (receipt,) = Stored(codec.remoting, ["x"], frame, QUEUE).receipts()
    assert receipt == Stored(codec.remoting, ["x"], frame, QUEUE).first
    assert type(receipt) is Receipt
    assert (receipt.transaction_id, receipt.recall_handle) == ("T", "H")


def test_most_messages_take_the_short_way_and_say_the_same(codec: Any) -> None:
    preparer = Preparer(codec.remoting, ProducerOptions(compress_above=100))
    keys = codec.remoting.UniqueKeys(b"\x7f\0\0\1", 7, 9)
    message = Message("orders", b"x", tag="t", keys=["a", "b"], properties={"own": "1"}, flag=3)
    for _ in range(2):  # the second time the topic is known
        plain = preparer.plain(message, keys, 5, "key")
        assert plain is not None
        whole = preparer.one(message, plain.message_id, "key")
        assert type(plain) is type(whole)
        decode = codec.remoting.decode_properties
        assert decode(plain.properties) == decode(whole.properties)
        assert plain._replace(properties=b"") == whole._replace(properties=b"")


@pytest.mark.parametrize(
    "message",
    [
        Message("orders", b"x", delay_level=3),
        Message("orders", b""),
        Message("orders", b"x" * 100),
        Message("%RETRY%group", b"x"),
        Message("orders", b"x", properties={"KEYS": "own"}),
    ],
)
def test_what_needs_care_takes_the_long_way(codec: Any, message: Message) -> None:
    preparer = Preparer(codec.remoting, ProducerOptions(compress_above=100))
    keys = codec.remoting.UniqueKeys(b"\x7f\0\0\1", 7, 9)
    assert preparer.plain(Message("orders", b"x"), keys, 5, None) is not None  # the topic is known
    assert preparer.plain(message, keys, 5, None) is None


def test_a_wrong_topic_is_refused_each_time(codec: Any) -> None:
    preparer = Preparer(codec.remoting, ProducerOptions())
    keys = codec.remoting.UniqueKeys(b"\x7f\0\0\1", 7, 9)
    for _ in range(2):
        with pytest.raises(ConfigError, match="illegal characters"):
            preparer.plain(Message("no such name!", b"x"), keys, 5, None)
