"""What a RocketMQ cluster tells of itself."""

from __future__ import annotations

from typing import Any

from mqclient import rocketmq
from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from tests.unit.broker.remoting.raw import Raw, pull_fields


def test_topics_and_groups_over_all_brokers(codec: Any) -> None:
    with (
        EmbeddedBroker(doors=["rocketmq"], impl=codec, brokers=2) as broker,
        rocketmq.Client(broker.name_server) as client,
        client.producer("p") as producer,
        client.pull_consumer("report", "orders", start="first") as consumer,
    ):
        assert broker.overview() == []
        producer.send_many([rocketmq.Message("orders", b"x" * 100) for _ in range(10)])
        assert len(consumer.receive_many(4, 10)) == 4
        consumer.commit()
        (topic,) = broker.overview()
        (group,) = topic.groups
        assert (topic.protocol, topic.name, topic.messages, topic.bytes > 1000) == ("rocketmq", "orders", 10, True)
        assert (group.name, group.members, group.done, group.behind) == ("report", 1, 4, 6)
        producer.send(rocketmq.Message("%RETRY%report", b"again"))
        assert [topic.name for topic in broker.overview()] == ["%RETRY%report", "orders"]


def test_pulls_that_wait(codec: Any) -> None:
    with (
        EmbeddedBroker(doors=["rocketmq"], impl=codec) as broker,
        Raw(codec.remoting, broker.addresses()["broker-a"]) as raw,
    ):
        raw.create_topic("orders", 1)
        raw.heartbeat("me", "waiting", {"orders": 1})
        raw.tell(Request.PULL_MESSAGE, **pull_fields("waiting", "orders", 0, sysFlag=6, suspendTimeoutMillis=60_000))
        raw.heartbeat("me", "waiting", {"orders": 1})  # answered behind it
        ((group,),) = [topic.groups for topic in broker.overview()]
        assert tuple(group) == ("waiting", 1, 0, 0, 1)
