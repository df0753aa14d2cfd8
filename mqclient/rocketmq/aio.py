"""RocketMQ for asyncio: the same names as `mqclient.rocketmq`, with `async` and `await`."""

from __future__ import annotations

from mqclient.rocketmq.model import Account, Message, MessageQueue, PartialSendError, QueueFullError, Receipt
from mqclient.rocketmq.remoting.admin_reset import ResetReport
from mqclient.rocketmq.remoting.aio import Admin, Client, Producer, PullConsumer, PushConsumer
from mqclient.rocketmq.remoting.handling import Retry
from mqclient.rocketmq.remoting.process_queue import Limits
from mqclient.rocketmq.remoting.push_options import StopReport

__all__ = [
    "Account",
    "Admin",
    "Client",
    "Limits",
    "Message",
    "MessageQueue",
    "PartialSendError",
    "Producer",
    "PullConsumer",
    "PushConsumer",
    "QueueFullError",
    "Receipt",
    "ResetReport",
    "Retry",
    "StopReport",
]
