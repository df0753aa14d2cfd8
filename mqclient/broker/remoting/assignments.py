"""Owns which member gets which queues, for groups that leave it to the broker.

| code | request | answered |
|---|---|---|
| 400 | QUERY_ASSIGNMENT | a member's queues, each to be pulled or popped; none says: keep what you have |
| 401 | SET_MESSAGE_REQUEST_MODE | whether a group pulls or pops a topic |
| 402 | GET_ALL_MESSAGE_REQUEST_MODE | all that was set |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mqclient.broker.remoting.membership import Members
from mqclient.broker.remoting.server import Ask, Handler, Refused, Reply
from mqclient.broker.remoting.state import READ, Broker, Cluster
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.model import RETRY_PREFIX, MessageQueue
from mqclient.rocketmq.remoting.bodies import queue_object, read_body, write_body

STRATEGIES: Final = {"AVG": "averagely", "AVG_BY_CIRCLE": "averagely_by_circle"}


def table(assignments: Assignments) -> Mapping[int, Handler]:
    return {
        Request.QUERY_ASSIGNMENT: assignments.query,
        Request.SET_MESSAGE_REQUEST_MODE: assignments.set_mode,
        Request.GET_ALL_MESSAGE_REQUEST_MODE: assignments.modes,
    }


class Assignments:
    """Shares out queues as clients would, over the members that this broker knows."""

    def __init__(self, broker: Broker, cluster: Cluster, members: Members) -> None:
        self._broker = broker
        self._cluster = cluster
        self._members = members
        self._modes: dict[str, dict[str, dict[str, Any]]] = {}

    def set_mode(self, ask: Ask) -> Reply:
        mode = read_body(ask.body)
        topic, group = str(mode["topic"]), str(mode["consumerGroup"])
        if topic.startswith(RETRY_PREFIX):
            raise Refused(Response.NO_PERMISSION, "retry topic is not allowed to set mode")
        if topic not in self._broker.topics:
            raise Refused(Response.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
        self._broker.group(group)
        self._modes.setdefault(topic, {})[group] = {
            "consumerGroup": group,
            "mode": str(mode["mode"]),
            "popShareQueueNum": int(mode.get("popShareQueueNum") or 0),
            "topic": topic,
        }
        return Reply()

    def modes(self, ask: Ask) -> Reply:
        return Reply(body=write_body({"messageRequestModeMap": self._modes}))

    def query(self, ask: Ask) -> Reply:
        asked = read_body(ask.body)
        topic, group = str(asked["topic"]), str(asked["consumerGroup"])
        queues = self._assigned(asked, topic, group)
        if queues is None:
            return Reply(body=write_body({}))
        mode = self._mode(topic, group)[0]
        entries = [{"messageQueue": queue_object(queue), "mode": mode} for queue in queues]
        return Reply(body=write_body({"messageQueueAssignments": entries}))

    def _mode(self, topic: str, group: str) -> tuple[str, int]:
        mode = self._modes.get(topic, {}).get(group)
        if mode is not None:
            return str(mode["mode"]), int(mode["popShareQueueNum"])
        if topic.startswith(RETRY_PREFIX):
            return "PULL", -1
        return self._broker.config["defaultMessageRequestMode"], self._broker.number("defaultPopShareQueueNum")

    def _assigned(self, asked: Mapping[str, Any], topic: str, group: str) -> list[MessageQueue] | None:
        every = self._queues(topic)
        if not every:
            return None
        if asked.get("messageModel") == "BROADCASTING" or not self._broker.setting("serverLoadBalancerEnable"):
            return every
        known = self._members.consumers.get(group)
        strategy = STRATEGIES.get(str(asked.get("strategyName")))
        if known is None or strategy is None:
            return None
        ids = sorted(member.client_id for member in known.members.values())
        client_id = str(asked["clientId"])
        if client_id not in ids:
            return []
        mode, share = self._mode(topic, group)
        if mode == "POP":
            return self._popped(every, ids, client_id, share, strategy)
        return self._share(every, ids, client_id, strategy)

    def _popped(
        self, every: list[MessageQueue], ids: list[str], client_id: str, share: int, strategy: str
    ) -> list[MessageQueue]:
        """Several members may pop one queue: all of them all, or each also what its next neighbours have."""
        if share <= 0 or share >= len(ids) - 1:
            brokers = sorted({queue.broker_name for queue in every})
            return [MessageQueue(every[0].topic, name, -1) for name in brokers]
        index = ids.index(client_id)
        if len(ids) > len(every):
            return [every[index % len(every)]]
        chosen = [ids[(index + step) % len(ids)] for step in range(share + 1)]
        return [queue for member in chosen for queue in self._share(every, ids, member, strategy)]

    def _share(self, every: list[MessageQueue], ids: list[str], client_id: str, strategy: str) -> list[MessageQueue]:
        share: list[MessageQueue] = self._broker.house.impl.allocation.allocate(strategy, client_id, every, ids)
        return share

    def _queues(self, name: str) -> list[MessageQueue]:
        """Of the whole cluster; a broker without the topic takes part in it no less."""
        found = []
        for broker in self._cluster.brokers:
            topic = broker.topics.get(name)
            if topic is not None and topic.perm & READ:
                found += [MessageQueue(name, broker.name, queue_id) for queue_id in range(topic.read_queues)]
        return found
