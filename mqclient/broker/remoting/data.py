"""Owns what of a RocketMQ broker a data folder keeps: messages, topics, groups, options, offsets, what waits."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mqclient.broker.data import Data
from mqclient.broker.remoting.offsets import Offsets
from mqclient.broker.remoting.retry import Retries
from mqclient.broker.remoting.state import Broker, Group, Queue, Topic
from mqclient.broker.store import Log

if TYPE_CHECKING:
    from collections.abc import Collection

NOT_KEPT = frozenset(("name", "queues", "on_queue"))
"""Fields of a topic that are no configuration."""


class Keeper:
    """One broker's place in the folder. A log is known by its topic's name and its queue's id."""

    def __init__(
        self, data: Data, broker: Broker, offsets: Offsets, retries: Retries, given: Collection[str] = ()
    ) -> None:
        self._data = data
        self._broker = broker
        self._given = given
        self._owner = owner = f"rocketmq/{broker.name}"
        self._known: dict[str, Topic] = {}
        data.shelf(owner, self._adopt)
        data.keep(owner, "topics", broker.topics, _configuration, self._load_topic)
        data.keep(owner, "groups", broker.groups, asdict, self._load_group)
        data.keep(owner, "options", broker.config, load=self._load_option)
        data.keep(owner, "offsets", offsets.stored)
        data.keep(owner, "resets", offsets.resets)
        data.keep(owner, "waiting", retries.waiting)
        tell = broker.topics.tell

        def told(name: str) -> None:
            self._look(name)
            tell(name)

        broker.topics.tell = told
        for name in broker.topics:
            self._look(name)

    def _look(self, name: str) -> None:
        """A topic came, or went with its messages, or another took its place."""
        topic, before = self._broker.topics.get(name), self._known.pop(name, None)
        if before is not None and before is not topic:
            before.on_queue = None
            for queue in before.queues.values():
                self._data.drop(queue.log)
        if topic is None:
            return
        self._known[name] = topic
        if topic.on_queue is None:
            topic.on_queue = lambda queue_id, queue: self._data.track(self._owner, (name, queue_id), queue.log)
            for queue_id, queue in topic.queues.items():
                topic.on_queue(queue_id, queue)

    # ---- at the start

    def _adopt(self, key: tuple[str, int], log: Log) -> None:
        name, queue_id = key
        topic = self._broker.topics.get(name)
        if topic is None:
            topic = self._broker.topics[name] = Topic(name, 0, 0)
        queue = topic.queues[queue_id] = Queue()
        queue.log = log
        self._broker.go_on_behind(log)

    def _load_topic(self, name: str, fields: dict[str, Any]) -> None:
        topic = self._broker.topics.get(name)
        if topic is None:
            topic = self._broker.topics[name] = Topic(name, 0, 0)
        for field, value in fields.items():
            setattr(topic, field, value)

    def _load_group(self, name: str, fields: dict[str, Any]) -> None:
        self._broker.groups[name] = Group(**fields)

    def _load_option(self, name: str, value: str) -> None:
        """What was asked for at this start has precedence."""
        if name not in self._given:
            self._broker.config[name] = value


def _configuration(topic: Topic) -> dict[str, Any]:
    return {name: getattr(topic, name) for name in topic.__slots__ if name not in NOT_KEPT}
