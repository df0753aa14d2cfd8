"""Owns how requests look: one function per request, fields in, fields or a frame out."""

from __future__ import annotations

from typing import Any, Final

from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.bodies import queue_object, write_body

COMMIT: Final = 1
SUSPEND: Final = 2
SUBSCRIPTION: Final = 4


def queue_fields(queue: MessageQueue) -> dict[str, str]:
    """30, 31: a queue's ends."""
    return {"topic": queue.topic, "queueId": str(queue.queue_id), "bname": queue.broker_name}


def search_offset(queue: MessageQueue, wall_ms: int) -> dict[str, str]:
    """29"""
    return {**queue_fields(queue), "timestamp": str(wall_ms)}


def query_offset(group: str, queue: MessageQueue, *, strict: bool = False) -> dict[str, str]:
    """14"""
    zero = {"setZeroIfNotFound": "false"} if strict else {}
    return {"consumerGroup": group, **queue_fields(queue), **zero}


def update_offset(group: str, queue: MessageQueue, offset: int) -> dict[str, str]:
    """15"""
    return {"consumerGroup": group, **queue_fields(queue), "commitOffset": str(offset)}


def unregister(client_id: str, *, producer: str = "", consumer: str = "", broker: str = "") -> dict[str, str]:
    """35"""
    fields = {"clientID": client_id, "bname": broker}
    if producer:
        fields["producerGroup"] = producer
    if consumer:
        fields["consumerGroup"] = consumer
    return fields


def send_back(group: str, message: Any, level: int, max_attempts: int, broker: str) -> dict[str, str]:
    """36"""
    return {
        "offset": str(message.physical_offset),
        "group": group,
        "delayLevel": str(level),
        "originMsgId": message.message_id,
        "originTopic": message.topic,
        "unitMode": "false",
        "maxReconsumeTimes": str(max_attempts),
        "bname": broker,
    }


def create_topic(topic: str, queues: int, perm: int = 6) -> dict[str, str]:
    """17"""
    return {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": str(queues),
        "writeQueueNums": str(queues),
        "perm": str(perm),
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }


def reset_offset(group: str, topic: str, wall_ms: int, force: bool) -> dict[str, str]:
    """222"""
    return {
        "topic": topic,
        "group": group,
        "timestamp": str(wall_ms),
        "isForce": "true" if force else "false",
        "queueId": "-1",
    }


def lock_body(group: str, client_id: str, queues: list[MessageQueue]) -> bytes:
    """41, 42"""
    return write_body(
        {
            "clientId": client_id,
            "consumerGroup": group,
            "mqSet": [queue_object(queue) for queue in queues],
            "onlyThisBroker": False,
        }
    )


def check_client_body(client_id: str, group: str, subscription: dict[str, Any]) -> bytes:
    """46"""
    return write_body({"clientId": client_id, "group": group, "subscriptionData": subscription})


def pull(
    remoting: Any,
    opaque: int,
    group: str,
    queue: MessageQueue,
    offset: int,
    *,
    count: int,
    version: int,
    suspend_ms: int,
    commit_offset: int,
    subscription: Any = None,
    expression_type: str = "TAG",
) -> bytes:
    """11, with long poll; a commit offset above 0 is told along. With a subscription, the broker need know none."""
    inline = 0 if subscription is None else SUBSCRIPTION
    frame: bytes = remoting.encode_pull(
        opaque,
        group,
        queue.topic,
        queue.queue_id,
        offset,
        max_messages=count,
        sys_flag=SUSPEND | inline | (COMMIT if commit_offset > 0 else 0),
        commit_offset=max(0, commit_offset),
        suspend_ms=suspend_ms,
        subscription=None if subscription is None else subscription.expression,
        sub_version=max(0, version),
        expression_type=expression_type,
        broker=queue.broker_name,
    )
    return frame


def peek(remoting: Any, opaque: int, group: str, queue: MessageQueue, offset: int, count: int = 1) -> bytes:
    """11 for what is there now, by somebody whom the broker need not know."""
    frame: bytes = remoting.encode_pull(
        opaque,
        group,
        queue.topic,
        queue.queue_id,
        offset,
        max_messages=count,
        sys_flag=SUBSCRIPTION,
        subscription="*",
        expression_type="TAG",
        broker=queue.broker_name,
    )
    return frame
