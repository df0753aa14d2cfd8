"""RocketMQ over the remoting protocol, for 4.x and 5.x brokers; `mqclient.rocketmq.aio` is the asyncio twin."""

from __future__ import annotations

from mqclient.rocketmq.model import Message, MessageQueue, PartialSendError, Receipt
from mqclient.rocketmq.remoting.admin_reset import ResetReport
from mqclient.rocketmq.remoting.sync import Admin, Client, Producer, PullConsumer, PushConsumer

__all__ = [
    "Admin",
    "Client",
    "Message",
    "MessageQueue",
    "PartialSendError",
    "Producer",
    "PullConsumer",
    "PushConsumer",
    "Receipt",
    "ResetReport",
]
