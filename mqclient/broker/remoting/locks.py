"""Owns the locks of orderly consumers: which client id may consume a queue.

| code | request | answered |
|---|---|---|
| 41 | LOCK_BATCH_MQ | the queues that were granted |
| 42 | UNLOCK_BATCH_MQ | only the owner's locks are given up |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mqclient.broker.remoting.server import Ask, Handler, Reply
from mqclient.broker.remoting.state import Broker
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.bodies import queue_object, queue_of, read_body, write_body

EXPIRES: Final = 60.0


def table(locks: Locks) -> Mapping[int, Handler]:
    return {Request.LOCK_BATCH_MQ: locks.lock, Request.UNLOCK_BATCH_MQ: locks.unlock}


class Locks:
    """Group and queue to the client id that locked it last, and when. Equal ids share their locks: story 2."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._owners: dict[str, dict[MessageQueue, tuple[str, float]]] = {}

    def lock(self, ask: Ask) -> Reply:
        request = read_body(ask.body)
        owners = self._owners.setdefault(str(request["consumerGroup"]), {})
        client_id = str(request["clientId"])
        now = self._broker.house.clock.mono()
        granted = []
        for queue in map(queue_of, request["mqSet"]):
            owner, since = owners.get(queue, (client_id, now))
            if owner == client_id or now - since > EXPIRES:
                owners[queue] = (client_id, now)
                granted.append(queue_object(queue))
        return Reply(body=write_body({"lockOKMQSet": granted}))

    def unlock(self, ask: Ask) -> Reply:
        request = read_body(ask.body)
        owners = self._owners.get(str(request["consumerGroup"]), {})
        for queue in map(queue_of, request["mqSet"]):
            if owners.get(queue, ("", 0.0))[0] == str(request["clientId"]):
                del owners[queue]
        return Reply()

    def held(self, group: str) -> bool:
        """Whether the group has any lock that is not expired."""
        now = self._broker.house.clock.mono()
        return any(now - since <= EXPIRES for _, since in self._owners.get(group, {}).values())
