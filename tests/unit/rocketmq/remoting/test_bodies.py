"""fastjson's dialect is read as it was recorded, and written as Java reads it."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ProtocolError
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.bodies import offset_table, queue_of, read_body, write_body

QUEUE = MessageQueue("T", "b", 5)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"a":1}', {"a": 1}),
        (b'{0:"x",1:"y"}', {"0": "x", "1": "y"}),
        (b"{'a': 'it\\'s', b: true, c: null}", {"a": "it's", "b": True, "c": None}),
        (b"{'a': 'say \"hi\"'}", {"a": 'say "hi"'}),
        (b'{"t":{{"topic":"T","brokerName":"b","queueId":5}:7}}', {"t": {QUEUE: 7}}),
        (b'[{0:[1.5,-2]} , "x"]', [{"0": [1.5, -2]}, "x"]),
        (b'{"a":"\\u00e4\\n", 1:word}', {"a": "ä\n", "1": "word"}),
        (b'{"a":{"x":[1,2]},"b":{"$ref":"$.a.x[1]"}}', {"a": {"x": [1, 2]}, "b": 2}),
        (b'{"a":{"$ref":"$.nowhere"}}', {"a": None}),
        (b'{"a":[{"$ref":"$.a[0]"}]}', {"a": [None]}),
        (b"{}", {}),
        (b"{0:{}}", {"0": {}}),
    ],
)
def test_read(body: bytes, value: Any) -> None:
    assert read_body(body) == value


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"a"}',
        b'{"a":1,,}',
        b"[1 2]",
        b'{"a":"no end',
        b'{"a":"\\x"}',
        b"{0:1} x",
        b"{{}:1}",
        b"[" * 100,
        b"{0:" * 100,
        b"[" * 100_000,
        b"{[1]:2}",
    ],
)
def test_what_is_no_json_is_told_and_never_more(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_body(body)


def test_written_compact_with_keys_as_objects_and_without_nulls() -> None:
    value = {"s": [QUEUE], "m": {QUEUE: 1, 3: "x"}, "n": None, "t": True, "u": "ä"}
    queue = '{"brokerName":"b","queueId":5,"topic":"T"}'
    assert write_body(value).decode() == f'{{"s":[{queue}],"m":{{{queue}:1,3:"x"}},"t":true,"u":"ä"}}'


def test_offset_tables_in_both_forms() -> None:
    entry = {"topic": "T", "brokerName": "b", "queueId": 5, "offset": 9}
    assert offset_table({"offsetTable": {QUEUE: "9"}}) == {QUEUE: 9}
    assert offset_table({"offsetTable": [entry]}) == {QUEUE: 9}
    assert offset_table({}) == {}
    for wrong in ({"offsetTable": [1]}, {"offsetTable": {"x": 1}}, {"offsetTable": {QUEUE: "x"}}, {"offsetTable": "x"}):
        with pytest.raises(ProtocolError):
            offset_table(wrong)


def test_queues_out_of_bodies() -> None:
    assert queue_of({"topic": "T", "brokerName": "b", "queueId": "5"}) == QUEUE
    with pytest.raises(ProtocolError):
        queue_of({"topic": "T"})
