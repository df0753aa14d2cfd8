"""RocketMQ for asyncio: the same names as `mqclient.rocketmq`, with `async` and `await`."""

from __future__ import annotations

from mqclient.rocketmq.model import Message, MessageQueue, PartialSendError, Receipt
from mqclient.rocketmq.remoting.admin_reset import ResetReport
from mqclient.rocketmq.remoting.aio import Admin, Client, Producer, PullConsumer, PushConsumer

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
