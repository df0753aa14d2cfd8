"""The insides of consumption that administrators ask for."""

from __future__ import annotations

import time
from typing import Any

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from tests.unit.broker.remoting.raw import Raw, body_of
from tests.unit.broker.remoting.test_stats import fill, stored_at


def test_where_a_group_is_in_time(raw: Raw, broker: EmbeddedBroker) -> None:
    fill(raw, "spanned", "spanners", 2)
    first, second, third = (stored_at(raw, "spanned", offset) for offset in range(3))

    def spans(group: str) -> Any:
        answer = raw.ask(Request.QUERY_CONSUME_TIME_SPAN, topic="spanned", group=group)
        return body_of(answer)["consumeTimeSpanSet"]

    one, empty = spans("spanners")
    assert one["messageQueue"] == {"brokerName": "broker-a", "queueId": 0, "topic": "spanned"}
    assert (one["minTimeStamp"], one["consumeTimeStamp"], one["maxTimeStamp"]) == (first, second, third)
    shown = time.strftime("%Y-%m-%d#%H:%M:%S", time.localtime(third // 1000))
    assert one["maxTimeStampStr"] == f"{shown}:{third % 1000:03d}"
    before = one["delayTime"]
    broker.control.move_clock(60)
    assert spans("spanners")[0]["delayTime"] - before >= 60_000
    assert (empty["minTimeStamp"], empty["consumeTimeStamp"], empty["maxTimeStamp"]) == (-1, -1, -1)
    raw.ask(Request.UPDATE_CONSUMER_OFFSET, consumerGroup="spanners", topic="spanned", queueId=0, commitOffset=3)
    assert spans("spanners")[0]["delayTime"] == 0
    assert spans("nobody")[0]["consumeTimeStamp"] == first
    answer = raw.ask(Request.QUERY_CONSUME_TIME_SPAN, topic="nosuchtopic", group="spanners")
    assert (answer.code, answer.remark) == (17, "topic[nosuchtopic] not exist")


def test_the_lowest_offset_of_all_groups(raw: Raw) -> None:
    for group, offset in (("slow", 1), ("fast", 3), ("first", 0)):
        fill(raw, "corrected", group, offset)

    def lowest(compared: str, **fields: Any) -> Any:
        answer = raw.ask(Request.QUERY_CORRECTION_OFFSET, topic="corrected", compareGroup=compared, **fields)
        return {int(queue): offset for queue, offset in body_of(answer)["correctionOffsets"].items()}

    assert lowest("nobody") == {0: 0}
    assert lowest("nobody", filterGroups="first,slow") == {0: 3}
    assert lowest("fast") == {0: 0}
    assert lowest("first", filterGroups="first") == {0: 2**63 - 1}, "it is before all of them already"
    assert (
        body_of(raw.ask(Request.QUERY_CORRECTION_OFFSET, topic="none", compareGroup="fast"))["correctionOffsets"] == {}
    )


def test_a_piece_of_an_index(raw: Raw, codec: Any) -> None:
    raw.create_topic("indexed", 1)
    raw.send("indexed", b"x")
    raw.send("indexed", b"y", TAGS="a")
    piece: dict[str, Any] = {"topic": "indexed", "queueId": 0}
    body = body_of(raw.ask(Request.QUERY_CONSUME_QUEUE, **piece, index=0, count=10))
    first, second = codec.remoting.decode_messages(raw.pull("g", "indexed", 0).body)
    assert (body["minQueueIndex"], body["maxQueueIndex"]) == (0, 2)
    assert [(entry["physicOffset"], entry["physicSize"], entry["tagsCode"]) for entry in body["queueData"]] == [
        (first.physical_offset, first.stored_size, 0),
        (second.physical_offset, second.stored_size, 97),
    ]
    some = body_of(raw.ask(Request.QUERY_CONSUME_QUEUE, **piece, index=1, count=1, consumerGroup="g"))
    assert [entry["eval"] for entry in some["queueData"]] == [True]
    answer = raw.ask(Request.QUERY_CONSUME_QUEUE, topic="indexed", queueId=7, index=0, count=1)
    assert (answer.code, answer.remark) == (1, "7@indexed is not exist!")
