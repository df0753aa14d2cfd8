"""RocketMQ over the remoting protocol, for 4.x and 5.x brokers; `mqclient.rocketmq.aio` is the asyncio twin."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mqclient.config import TLS
    from mqclient.core.hooking import TraceContext, traceparent
    from mqclient.rocketmq import aio as aio
    from mqclient.rocketmq.model import (
        RESERVED_PROPERTIES,
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
    from mqclient.rocketmq.remoting.handling import Retry
    from mqclient.rocketmq.remoting.pop import Popped
    from mqclient.rocketmq.remoting.process_queue import Limits
    from mqclient.rocketmq.remoting.push_options import StopReport
    from mqclient.rocketmq.remoting.subscription import Sql
    from mqclient.rocketmq.remoting.sync import (
        Admin,
        Client,
        PopConsumer,
        Producer,
        PullConsumer,
        PushConsumer,
        TransactionalProducer,
    )
    from mqclient.rocketmq.signing import ACL, acl

__all__ = [
    "ACL",
    "RESERVED_PROPERTIES",
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

_WHERE: Final = {
    "ACL": "mqclient.rocketmq.signing",
    "Account": "mqclient.rocketmq.model",
    "Admin": "mqclient.rocketmq.remoting.sync",
    "BrokerInfo": "mqclient.rocketmq.remoting.admin_cluster",
    "CircuitOpenError": "mqclient.rocketmq.model",
    "Client": "mqclient.rocketmq.remoting.sync",
    "Connection": "mqclient.rocketmq.remoting.admin_groups",
    "Limits": "mqclient.rocketmq.remoting.process_queue",
    "Message": "mqclient.rocketmq.model",
    "MessageQueue": "mqclient.rocketmq.model",
    "NotSafeError": "mqclient.rocketmq.model",
    "PartialSendError": "mqclient.rocketmq.model",
    "PopConsumer": "mqclient.rocketmq.remoting.sync",
    "Popped": "mqclient.rocketmq.remoting.pop",
    "Producer": "mqclient.rocketmq.remoting.sync",
    "Progress": "mqclient.rocketmq.remoting.admin_groups",
    "PullConsumer": "mqclient.rocketmq.remoting.sync",
    "PushConsumer": "mqclient.rocketmq.remoting.sync",
    "QueueFullError": "mqclient.rocketmq.model",
    "RESERVED_PROPERTIES": "mqclient.rocketmq.model",
    "Receipt": "mqclient.rocketmq.model",
    "Reply": "mqclient.rocketmq.model",
    "Resent": "mqclient.rocketmq.remoting.admin_messages",
    "ResetReport": "mqclient.rocketmq.remoting.admin_reset",
    "Retry": "mqclient.rocketmq.remoting.handling",
    "Sql": "mqclient.rocketmq.remoting.subscription",
    "StopReport": "mqclient.rocketmq.remoting.push_options",
    "TLS": "mqclient.config",
    "TraceContext": "mqclient.core.hooking",
    "TransactionState": "mqclient.rocketmq.model",
    "TransactionalProducer": "mqclient.rocketmq.remoting.sync",
    "acl": "mqclient.rocketmq.signing",
    "traceparent": "mqclient.core.hooking",
}


def __getattr__(name: str) -> Any:
    """Imported when asked for: the broker wants the codes and not the client."""
    if name == "aio":
        return import_module("mqclient.rocketmq.aio")
    if name not in _WHERE:
        raise AttributeError(f"module 'mqclient.rocketmq' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_WHERE[name]), name)
    return value
