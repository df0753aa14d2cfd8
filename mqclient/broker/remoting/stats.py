"""Owns what administrators ask about the state of things: how far queues and groups are, who sends, who consumes.

| code | request | answered |
|---|---|---|
| 28 | GET_BROKER_RUNTIME_INFO | counts, rates and limits of the broker |
| 43 | GET_ALL_CONSUMER_OFFSET | every stored offset |
| 202 | GET_TOPIC_STATS_INFO | ends and last time of each queue |
| 204, 328 | GET_PRODUCER_CONNECTION_LIST, GET_ALL_PRODUCER_INFO | who sends |
| 208, 317 | GET_CONSUME_STATS, GET_BROKER_CONSUME_STATS | how far one group, or every group, is in each queue |
| 300, 343 | QUERY_TOPIC_CONSUME_BY_WHO, QUERY_TOPICS_BY_CONSUMER | groups of a topic; topics of a group |
| 345 | QUERY_SUBSCRIPTION_BY_CONSUMER | what a group's members asked for |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mqclient.broker.remoting.groups import version_of
from mqclient.broker.remoting.membership import Members
from mqclient.broker.remoting.offsets import Offsets
from mqclient.broker.remoting.server import VERSION, Ask, Handler, Refused, Reply
from mqclient.broker.remoting.state import Broker, Topic
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.bodies import write_body

MINUTE: Final = 60
NO_SUBSCRIPTIONS: Final[Mapping[str, Any]] = {}


def table(stats: Stats) -> Mapping[int, Handler]:
    return {
        Request.GET_BROKER_RUNTIME_INFO: stats.runtime,
        Request.GET_ALL_CONSUMER_OFFSET: stats.offsets,
        Request.GET_TOPIC_STATS_INFO: stats.topic,
        Request.GET_PRODUCER_CONNECTION_LIST: stats.producers,
        Request.GET_ALL_PRODUCER_INFO: stats.all_producers,
        Request.GET_CONSUME_STATS: stats.consumed,
        Request.GET_BROKER_CONSUME_STATS: stats.all_consumed,
        Request.QUERY_TOPIC_CONSUME_BY_WHO: stats.groups_of,
        Request.QUERY_TOPICS_BY_CONSUMER: stats.topics_of,
        Request.QUERY_SUBSCRIPTION_BY_CONSUMER: stats.subscription,
    }


class Stats:
    """Looks at everything and changes nothing."""

    def __init__(self, broker: Broker, members: Members, offsets: Offsets) -> None:
        self._broker = broker
        self._members = members
        self._offsets = offsets
        self._since = broker.house.clock.wall_ms()

    def topic(self, ask: Ask) -> Reply:
        name = ask.text("topic")
        topic = self._broker.topics.get(name)
        if topic is None:
            raise Refused(Response.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
        ends = {}
        for queue_id in range(max(topic.read_queues, topic.write_queues)):
            log = topic.queue(queue_id).log
            ends[MessageQueue(name, self._broker.name, queue_id)] = {
                "lastUpdateTimestamp": log.time(log.next - 1) if len(log) else 0,
                "maxOffset": log.next,
                "minOffset": log.first,
            }
        return Reply(body=write_body({"offsetTable": ends, "topicPutTps": self._rate([topic], MINUTE)}))

    def consumed(self, ask: Ask) -> Reply:
        asked = [ask.text("topic", ""), *ask.text("topicList", "").split(";")]
        return Reply(body=write_body(self._of_group(ask.text("consumerGroup"), [name for name in asked if name])))

    def all_consumed(self, ask: Ask) -> Reply:
        """`isOrder` asks for ordered topics only."""
        behind, found = 0, []
        for group in sorted(self._broker.groups):
            names = [name for name in self._topics(group) if self._broker.topics[name].order or not ask.flag("isOrder")]
            each = [self._of_group(group, [name]) for name in names]
            for stats in each:
                behind += sum(
                    queue["brokerOffset"] - queue["consumerOffset"] for queue in stats["offsetTable"].values()
                )
            found.append({group: [stats for stats in each if stats["offsetTable"]]})
        body = {"brokerAddr": self._broker.address, "consumeStatsList": found, "totalDiff": behind}
        return Reply(body=write_body(body))

    def producers(self, ask: Ask) -> Reply:
        name = ask.text("producerGroup")
        members = self._members.producers.get(name)
        if not members:
            raise Refused(Response.SYSTEM_ERROR, f"the producer group[{name}] not exist")
        connections = [
            {
                "clientAddr": member.peer.address,
                "clientId": member.client_id,
                "language": member.peer.language,
                "version": member.peer.version,
            }
            for member in members.values()
        ]
        return Reply(body=write_body({"connectionSet": connections}))

    def all_producers(self, ask: Ask) -> Reply:
        clock = self._broker.house.clock
        data = {
            name: [
                {
                    "clientId": member.client_id,
                    "language": member.peer.language,
                    "lastUpdateTimestamp": clock.wall_ms() - int(1000 * (clock.mono() - member.seen)),
                    "remoteIP": f"/{member.peer.address}",
                    "version": member.peer.version,
                }
                for member in members.values()
            ]
            for name, members in self._members.producers.items()
        }
        return Reply(body=write_body({"data": data}))

    def groups_of(self, ask: Ask) -> Reply:
        topic = ask.text("topic")
        groups = {group for group, name, _ in self._offsets.stored if name == topic}
        groups |= {name for name, group in self._members.consumers.items() if topic in group.subscriptions}
        return Reply(body=write_body({"groupList": sorted(groups)}))

    def topics_of(self, ask: Ask) -> Reply:
        topics = self._topics(ask.text("group"))
        return Reply(body=write_body({"brokerAddr": self._broker.address, "topicList": topics}))

    def subscription(self, ask: Ask) -> Reply:
        name, topic = ask.text("group"), ask.text("topic")
        group = self._members.consumers.get(name)
        data = None if group is None else group.subscriptions.get(topic)
        return Reply(body=write_body({"group": name, "subscriptionData": data, "topic": topic}))

    def offsets(self, ask: Ask) -> Reply:
        offsets: dict[str, dict[int, int]] = {}
        for (group, topic, queue_id), offset in self._offsets.stored.items():
            offsets.setdefault(f"{topic}@{group}", {})[queue_id] = offset
        return Reply(body=write_body({"dataVersion": version_of(self._broker), "offsetTable": offsets}))

    def runtime(self, ask: Ask) -> Reply:
        topics = list(self._broker.topics.values())
        logs = [queue.log for topic in topics for queue in topic.queues.values() if len(queue.log)]
        now = self._broker.house.clock.wall_ms()
        minutes, milliseconds = divmod(now - self._since, 60_000)
        hours, minutes = divmod(minutes, 60)
        values = {
            "bootTimestamp": self._since,
            "brokerActive": "true",
            "brokerVersion": VERSION,
            "brokerVersionDesc": "V5_5_0",
            "commitLogMaxOffset": self._broker.end,
            "commitLogMinOffset": 0,
            "earliestMessageTimeStamp": min((log.time(log.first) for log in logs), default=-1),
            "msgPutTotalTodayNow": sum(log.next for log in logs),
            "putTps": " ".join(str(self._rate(topics, seconds)) for seconds in (10, 60, 600)),
            "runtime": f"[ {hours // 24} days, {hours % 24} hours, {minutes} minutes, {milliseconds // 1000} seconds ]",
        }
        return Reply(body=write_body({"table": {name: str(value) for name, value in values.items()}}))

    def _of_group(self, group: str, only: list[str]) -> dict[str, Any]:
        """Topics that its members do not subscribe to are left out while some are there."""
        online = self._members.consumers.get(group)
        found = {}
        for name in only or self._topics(group):
            topic = self._broker.topics.get(name)
            if topic is None or (online is not None and online.subscriptions and name not in online.subscriptions):
                continue
            for queue_id in range(topic.read_queues):
                found[MessageQueue(name, self._broker.name, queue_id)] = self._progress(group, topic, queue_id)
        return {"consumeTps": 0.0, "offsetTable": found}

    def _progress(self, group: str, topic: Topic, queue_id: int) -> dict[str, int]:
        log = topic.queue(queue_id).log
        offset = self._offsets.stored.get((group, topic.name, queue_id), 0)
        last = offset - 1
        return {
            "brokerOffset": log.next,
            "consumerOffset": offset,
            "lastTimestamp": log.time(last) if log.first <= last < log.next else 0,
            "pullOffset": offset,
        }

    def _topics(self, group: str) -> list[str]:
        return sorted(
            {topic for name, topic, _ in self._offsets.stored if name == group and topic in self._broker.topics}
        )

    def _rate(self, topics: list[Topic], seconds: int) -> float:
        """Messages a second that were stored of late."""
        since = self._broker.house.clock.wall_ms() - 1000 * seconds
        logs = (queue.log for topic in topics for queue in topic.queues.values())
        return sum(log.next - log.at_or_after(since) for log in logs) / seconds
