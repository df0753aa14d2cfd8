"""A message consumed at an operator's wish; the answers themselves stand in test_asked.py."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.core.steps import run_steps
from mqclient.errors import ConfigError
from mqclient.rocketmq.remoting.bodies import read_body
from mqclient.rocketmq.remoting.direct import consume_directly_steps
from mqclient.rocketmq.remoting.member_options import MemberOptions
from mqclient.rocketmq.remoting.pull_consumer import PullEngine
from tests.support.remoting import message
from tests.unit.rocketmq.remoting.cluster import VirtualCluster


@pytest.mark.parametrize("well", [True, False])
def test_a_coroutine_handles_it(codec: Any, well: bool) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    seen: list[bytes] = []

    async def handle(messages: Any) -> None:
        seen.append(messages[0].body)
        if not well:
            raise KeyError("k")

    push = cluster.client().push("g", "orders", handle)
    record = message(codec.remoting, b"by hand", "orders")
    frame = codec.remoting.FrameReader().feed(
        codec.remoting.encode_frame(309, 1, fields={"consumerGroup": "g"}, body=record)
    )[0]
    with push.driver.enter():
        slot = run_steps(consume_directly_steps(push.member.client, push.member, frame))
    result = read_body(cluster.world.result(slot))
    assert seen == [b"by hand"]
    assert result["consumeResult"] == ("CR_SUCCESS" if well else "CR_THROW_EXCEPTION")


def test_who_pulls_has_no_handler(codec: Any) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    client = cluster.client()
    with client.driver.enter():
        engine = PullEngine(client.engine, "g", {"orders": "*"}, MemberOptions())
        slot = run_steps(consume_directly_steps(client.engine, engine.member, None))
    assert isinstance(slot.error, ConfigError)
