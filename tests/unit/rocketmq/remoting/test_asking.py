"""Request-reply: the answer finds the one who asked, over whatever broker, or the waiting ends at its time."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.core.steps import run_steps
from mqclient.errors import ConfigError, DeadlineError
from mqclient.rocketmq.codes import BrokerError
from mqclient.rocketmq.model import Message, Reply
from mqclient.rocketmq.remoting.asking import prepare_reply, prepare_request, reply_steps, request_steps
from mqclient.rocketmq.remoting.producer import ProducerEngine
from tests.unit.rocketmq.remoting.cluster import VirtualClient, VirtualCluster


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec, brokers=2)
    cluster.topic("questions", 1)
    return cluster


def engine_of(client: VirtualClient, group: str) -> ProducerEngine:
    with client.driver.enter():
        return ProducerEngine(client.engine, group)


def ask(engine: ProducerEngine, message: Message, timeout: float = 3.0) -> Any:
    """The slot of the reply."""
    prepared, driver = prepare_request(engine, message, timeout, None), engine.client.driver
    with driver.enter():
        return run_steps(request_steps(engine, prepared, driver.now.mono + timeout, None))


def received(cluster: VirtualCluster) -> Any:
    """The request, as a consumer sees it."""
    for service in cluster.door.services:
        log = service.broker.topics["questions"].queue(0).log
        views, _ = log.read(0, 9, 1 << 20)
        queue = next(one for one in cluster.codec.remoting.decode_messages(b"".join(views)) or [None])
        if queue is not None:
            from mqclient.rocketmq.model import MessageQueue

            place = MessageQueue("questions", service.broker.name, 0)
            return cluster.codec.remoting.decode_messages(b"".join(views), queue=place)[0]
    raise AssertionError("no request was stored")


def answer(engine: ProducerEngine, request: Any, body: bytes, **more: Any) -> Any:
    prepared = prepare_reply(engine, request, body, more.get("properties"), more.get("tag"))
    driver: Any = engine.client.driver
    with driver.enter():
        slot = run_steps(reply_steps(engine, prepared, request, None))
    return driver.wait(slot)


@pytest.mark.parametrize("body", [b"42", b"much of the same" * 1000])
def test_the_reply_finds_who_asked(cluster: VirtualCluster, body: bytes) -> None:
    asker, helper = cluster.client(), cluster.client()
    slot = ask(engine_of(asker, "askers"), Message("questions", b"6 x 7?", tag="sum"))
    cluster.world.run()
    request = received(cluster)
    assert (request.body, request.property("TTL")) == (b"6 x 7?", "3000")
    assert answer(engine_of(helper, "helpers"), request, body, tag="t", properties={"by": "h"}).ok
    reply: Reply = asker.driver.wait(slot)
    assert (reply.body, reply.tag, reply.properties["by"]) == (body, "t", "h")
    assert asker.engine.replies.waiting == {}


def test_without_a_reply_it_ends_at_its_time(cluster: VirtualCluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    asker, helper = cluster.client(), cluster.client()
    before = cluster.world.mono
    slot = ask(engine_of(asker, "askers"), Message("questions", b"?"), 1.0)
    with pytest.raises(DeadlineError, match="no reply came in time"):
        asker.driver.wait(slot)
    assert cluster.world.mono - before == pytest.approx(1.0)
    assert asker.engine.replies.waiting == {}
    answer(engine_of(helper, "helpers"), received(cluster), b"late")
    assert "nobody waits for it" in caplog.text


def test_a_reply_is_tried_once(cluster: VirtualCluster) -> None:
    asker, helper = cluster.client(), cluster.client()
    ask(engine_of(asker, "askers"), Message("questions", b"?"))
    cluster.world.run()
    cluster.control.answer("SEND_REPLY_MESSAGE_V2", 1, "the requester is gone", times=9)
    with pytest.raises(BrokerError, match="gone"):
        answer(engine_of(helper, "helpers"), received(cluster), b"x")
    assert cluster.control.count("SEND_REPLY_MESSAGE_V2") == 1


def test_what_is_no_request_cannot_be_answered(cluster: VirtualCluster) -> None:
    client = cluster.client()
    client.produce(Message("questions", b"only told"))
    engine = engine_of(client, "helpers")
    with pytest.raises(ConfigError, match="is no request"):
        prepare_reply(engine, received(cluster), b"x", None, None)
    made = cluster.codec.remoting.decode_messages(cluster.codec.remoting.encode_message(b"x", "t"))[0]
    with pytest.raises(ConfigError, match="names no cluster"):
        prepare_reply(engine, made, b"x", None, None)
    with pytest.raises(ConfigError, match="cannot be delayed"):
        prepare_request(engine, Message("questions", b"x", delay_level=1), None, None)
