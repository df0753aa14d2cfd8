"""Every request is of the client's namespace and carries its signature, whatever kind of request it is."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.rocketmq.model import Message
from mqclient.rocketmq.remoting.dressing import Dresser
from mqclient.rocketmq.signing import acl
from tests.unit.rocketmq.remoting.cluster import VirtualCluster


def test_the_signature_is_over_all_that_is_sent(codec: Any) -> None:
    credentials = acl("reader", "swordfish", "token")
    frame = codec.remoting.encode_frame(10, 7, flag=2, fields={"b": "1", "a": "ü"}, body=b"body", remark="why")
    (dressed,) = codec.remoting.FrameReader().feed(Dresser(codec.remoting, credentials, v2="ns1").dress(frame))
    fields = dict(dressed.fields)
    assert (dressed.code, dressed.opaque, dressed.flag, dressed.body, dressed.remark) == (10, 7, 2, b"body", "why")
    signature = fields.pop("Signature")
    assert fields == {"a": "ü", "b": "1", "nsd": "true", "ns": "ns1", "AccessKey": "reader", "SecurityToken": "token"}
    assert signature == credentials.sign(fields, b"body")


def test_all_requests_of_a_client_are_signed(codec: Any) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    credentials = acl("reader", "swordfish")
    client = cluster.client(auth=credentials)
    client.produce(Message("orders", b"x"))
    client.push("g", "orders")
    with client.driver.enter():
        slot = client.engine.producers["producers"].submit_oneway(
            client.engine.producers["producers"].prepare(Message("orders", b"y"))
        )
    client.driver.wait(slot)
    cluster.world.run()
    checked = 0
    for wire in client.driver.wires:
        for frame in codec.remoting.FrameReader().feed(bytes(wire.sent)):
            if not frame.is_response:
                fields = dict(frame.fields)
                assert fields.pop("Signature") == credentials.sign(fields, frame.body)
                checked += 1
    assert checked > 8


def test_what_is_no_credential_is_refused(codec: Any) -> None:
    wrong: Any = ("access", "secret")
    with pytest.raises(ConfigError, match=r"rocketmq\.acl"):
        Dresser(codec.remoting, wrong)
    assert not Dresser(codec.remoting, None).needed
