"""RocketMQ over the remoting protocol, for 4.x and 5.x brokers; `mqclient.rocketmq.aio` is the asyncio twin."""

from __future__ import annotations

from mqclient.config import TLS
from mqclient.rocketmq.model import (
    Account,
    Message,
    MessageQueue,
    NotSafeError,
    PartialSendError,
    QueueFullError,
    Receipt,
    TransactionState,
)
from mqclient.rocketmq.remoting.admin_cluster import BrokerInfo
from mqclient.rocketmq.remoting.admin_groups import Connection, Progress
from mqclient.rocketmq.remoting.admin_messages import Resent
from mqclient.rocketmq.remoting.admin_reset import ResetReport
from mqclient.rocketmq.remoting.handling import Retry
from mqclient.rocketmq.remoting.process_queue import Limits
from mqclient.rocketmq.remoting.push_options import StopReport
from mqclient.rocketmq.remoting.subscription import Sql
from mqclient.rocketmq.remoting.sync import Admin, Client, Producer, PullConsumer, PushConsumer, TransactionalProducer
from mqclient.rocketmq.signing import ACL, acl

__all__ = [
    "ACL",
    "TLS",
    "Account",
    "Admin",
    "BrokerInfo",
    "Client",
    "Connection",
    "Limits",
    "Message",
    "MessageQueue",
    "NotSafeError",
    "PartialSendError",
    "Producer",
    "Progress",
    "PullConsumer",
    "PushConsumer",
    "QueueFullError",
    "Receipt",
    "Resent",
    "ResetReport",
    "Retry",
    "Sql",
    "StopReport",
    "TransactionState",
    "TransactionalProducer",
    "acl",
]
