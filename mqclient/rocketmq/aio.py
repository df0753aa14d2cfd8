"""RocketMQ for asyncio: the same names as `mqclient.rocketmq`, with `async` and `await`."""

from __future__ import annotations

from mqclient.config import TLS
from mqclient.core.hooking import TraceContext, traceparent
from mqclient.rocketmq.model import (
    Account,
    CircuitOpenError,
    Message,
    MessageQueue,
    NotSafeError,
    PartialSendError,
    QueueFullError,
    Receipt,
    Reply,
    TransactionState,
)
from mqclient.rocketmq.remoting.admin_cluster import BrokerInfo
from mqclient.rocketmq.remoting.admin_groups import Connection, Progress
from mqclient.rocketmq.remoting.admin_messages import Resent
from mqclient.rocketmq.remoting.admin_reset import ResetReport
from mqclient.rocketmq.remoting.aio import (
    Admin,
    Client,
    PopConsumer,
    Producer,
    PullConsumer,
    PushConsumer,
    TransactionalProducer,
)
from mqclient.rocketmq.remoting.handling import Retry
from mqclient.rocketmq.remoting.pop import Popped
from mqclient.rocketmq.remoting.process_queue import Limits
from mqclient.rocketmq.remoting.push_options import StopReport
from mqclient.rocketmq.remoting.subscription import Sql
from mqclient.rocketmq.signing import ACL, acl

__all__ = [
    "ACL",
    "TLS",
    "Account",
    "Admin",
    "BrokerInfo",
    "CircuitOpenError",
    "Client",
    "Connection",
    "Limits",
    "Message",
    "MessageQueue",
    "NotSafeError",
    "PartialSendError",
    "PopConsumer",
    "Popped",
    "Producer",
    "Progress",
    "PullConsumer",
    "PushConsumer",
    "QueueFullError",
    "Receipt",
    "Reply",
    "Resent",
    "ResetReport",
    "Retry",
    "Sql",
    "StopReport",
    "TraceContext",
    "TransactionState",
    "TransactionalProducer",
    "acl",
    "traceparent",
]
