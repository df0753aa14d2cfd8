"""RocketMQ over the remoting protocol, for 4.x and 5.x brokers; `mqclient.rocketmq.aio` is the asyncio twin."""

from __future__ import annotations

from mqclient.rocketmq.model import Account, Message, MessageQueue, PartialSendError, QueueFullError, Receipt
from mqclient.rocketmq.remoting.admin_reset import ResetReport
from mqclient.rocketmq.remoting.handling import Retry
from mqclient.rocketmq.remoting.process_queue import Limits
from mqclient.rocketmq.remoting.push_options import StopReport
from mqclient.rocketmq.remoting.sync import Admin, Client, Producer, PullConsumer, PushConsumer

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
