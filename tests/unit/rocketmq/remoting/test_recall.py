"""Timed messages are called back by their receipt; a handle that is none is said to be none."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any

import pytest

from mqclient.core.steps import run_steps
from mqclient.errors import ConfigError
from mqclient.rocketmq.codes import BrokerError
from mqclient.rocketmq.model import Message
from mqclient.rocketmq.remoting.recall import place, recall_steps
from tests.unit.rocketmq.remoting.cluster import VirtualCluster


def test_the_broker_of_the_handle_is_asked(codec: Any) -> None:
    cluster = VirtualCluster(codec, brokers=2)
    cluster.topic("orders", 1)
    client = cluster.client()
    (receipt,) = client.produce(Message("orders", b"x", deliver_after=100))
    assert place(receipt.recall_handle) == ("orders", receipt.queue.broker_name)
    cluster.control.answer("RECALL_MESSAGE", 0, "")
    fresh = cluster.client()  # which does not know the route yet
    with fresh.driver.enter():
        slot = run_steps(recall_steps(fresh.engine, "p", receipt))
    assert fresh.driver.wait(slot) == ""  # a scripted answer names none
    cluster.control.answer("RECALL_MESSAGE", 604, "too late")
    with fresh.driver.enter():
        slot = run_steps(recall_steps(fresh.engine, "p", receipt.recall_handle))
    with pytest.raises(BrokerError, match="too late"):
        fresh.driver.wait(slot)


@pytest.mark.parametrize(
    ("handle", "says"),
    [
        ("what?", "no recall handle"),
        (urlsafe_b64encode(b"v1 too short").decode(), "no recall handle"),
        (urlsafe_b64encode(b"v9 a b c d").decode(), "v1 is known"),
    ],
)
def test_strange_handles(handle: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        place(handle)


def test_a_receipt_without_a_handle(codec: Any) -> None:
    cluster = VirtualCluster(codec)
    client = cluster.client()
    (receipt,) = client.produce(Message("orders", b"x"))
    with client.driver.enter():
        slot = run_steps(recall_steps(client.engine, "p", receipt))
    with pytest.raises(ConfigError, match="deliver_at"):
        client.driver.wait(slot)
