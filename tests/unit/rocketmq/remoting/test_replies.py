"""Replies that brokers push: to who waits, once; strange ones cost nothing."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from mqclient.core.slot import Slot
from mqclient.errors import ProtocolError
from mqclient.rocketmq.model import Message, Reply
from tests.unit.rocketmq.remoting.cluster import VirtualCluster


def push(codec: Any, correlation: str, body: bytes, flags: str = "0") -> Any:
    properties = codec.remoting.encode_properties({"CORRELATION_ID": correlation, "TAGS": "t"}).decode()
    fields = {"topic": "c_REPLY_TOPIC", "sysFlag": flags, "properties": properties}
    return codec.remoting.FrameReader().feed(codec.remoting.encode_frame(326, 1, fields=fields, body=body))[0]


def test_by_its_correlation(codec: Any) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    client = cluster.client()
    client.produce(Message("orders", b"x"))
    engine = client.engine
    link = next(iter(engine.links.values()))
    slots: dict[str, Slot[Reply]] = {name: Slot() for name in ("plain", "zlib", "odd")}
    engine.replies.waiting.update(slots)
    with client.driver.enter():
        engine.replies.on_push(link, push(codec, "plain", b"a"))
        engine.replies.on_push(link, push(codec, "zlib", zlib.compress(b"b"), str(0x301)))
        engine.replies.on_push(link, push(codec, "nobody", b"c"))
        with pytest.raises(ProtocolError, match="no number"):
            engine.replies.on_push(link, push(codec, "odd", b"d", "many"))
    assert (slots["plain"].result().body, slots["zlib"].result().body) == (b"a", b"b")
    assert slots["plain"].result().tag == "t"
    assert engine.replies.waiting == {}
