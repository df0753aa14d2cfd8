"""Owns administration: topics made, groups reset."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from mqclient.core.steps import Steps
from mqclient.errors import ConfigError, DeadlineError
from mqclient.rocketmq.codes import BrokerError, Request, Response
from mqclient.rocketmq.model import MODELS, MessageQueue, check_group, check_topic
from mqclient.rocketmq.remoting import requests
from mqclient.rocketmq.remoting.admin_cluster import ClusterAdmin, masters_steps
from mqclient.rocketmq.remoting.admin_groups import GroupAdmin
from mqclient.rocketmq.remoting.admin_messages import MessageAdmin
from mqclient.rocketmq.remoting.admin_reset import GroupReset, ResetReport
from mqclient.rocketmq.remoting.bodies import read_body
from mqclient.rocketmq.remoting.client import ClientEngine
from mqclient.rocketmq.remoting.member_options import Start
from mqclient.rocketmq.remoting.seeking import offset_at_steps

LATEST: Final = -1
EARLIEST: Final = 0
VISIBLE_POLL: Final = 0.05
VISIBLE_WITHIN: Final = 10.0

When = str | int | float | datetime


class AdminEngine:
    """What operators ask of name servers and brokers."""

    def __init__(self, client: ClientEngine) -> None:
        self._client = client
        self.cluster = ClusterAdmin(client)
        self.groups = GroupAdmin(client)
        self.messages = MessageAdmin(client)

    def create_topic_steps(self, topic: str, queues: int, perm: int) -> Steps[None]:
        """On every broker of the cluster; done when a name server shows it."""
        check_topic(topic)
        if queues < 1:
            raise ConfigError(f"queues={queues}: at least one")
        for address in (yield from masters_steps(self._client)).values():
            fields = requests.create_topic(topic, queues, perm)
            yield from self._client.ask_steps(address, Request.UPDATE_AND_CREATE_TOPIC, fields)
        yield from self._visible_steps(topic)

    def topics_steps(self) -> Steps[list[str]]:
        """The names of all topics that the name server knows."""
        body = yield from self._client.ask_name_server_steps(Request.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, {})
        return sorted(str(topic) for topic in read_body(body).get("topicList") or ())

    def reset_offset_steps(
        self,
        group: str,
        topic: str,
        when: When,
        model: str,
        force: bool,
        dry_run: bool,
        switch_form: bool = False,
    ) -> Steps[ResetReport]:
        """A group to another place; see `admin_reset` for how each broker is asked."""
        if model not in MODELS:
            raise ConfigError(f"model={model!r}: {' or '.join(map(repr, MODELS))}")
        reset = GroupReset(self._client, group, topic, when_ms(when))
        if dry_run:
            return (yield from reset.dry_steps(model == "broadcasting", force))
        if model == "broadcasting":
            return (yield from reset.broadcasting_steps(switch_form))
        return (yield from reset.clustering_steps(force))

    def offsets_steps(self, topic: str, group: str | None) -> Steps[dict[MessageQueue, dict[str, int | None]]]:
        """Per queue: the oldest offset, the next one to be written, and what the group has consumed."""
        route = yield self._client.routes.fetch(topic)
        found: dict[MessageQueue, dict[str, int | None]] = {}
        for queue in route.readable:
            found[queue] = yield from self._queue_steps(queue, group)
        return found

    def offsets_at_steps(self, topic: str, when: Start) -> Steps[dict[MessageQueue, int]]:
        """Per queue: the first offset stored at that time or later."""
        route = yield self._client.routes.fetch(topic)
        found: dict[MessageQueue, int] = {}
        for queue in route.readable:
            found[queue] = yield from offset_at_steps(self._client, queue, when)
        return found

    def commit_steps(self, group: str, offsets: Mapping[MessageQueue, int]) -> Steps[None]:
        """The group has consumed up to these offsets: noted, whoever is in it."""
        check_group(group)
        for topic in dict.fromkeys(queue.topic for queue in offsets):
            yield self._client.routes.fetch(topic)
        for queue, offset in offsets.items():
            address, fields = (
                self._client.broker_address(queue.broker_name),
                requests.update_offset(group, queue, offset),
            )
            yield from self._client.ask_steps(address, Request.UPDATE_CONSUMER_OFFSET, fields)

    def _queue_steps(self, queue: MessageQueue, group: str | None) -> Steps[dict[str, int | None]]:
        address, fields = self._client.broker_address(queue.broker_name), requests.queue_fields(queue)
        lowest = yield from self._client.ask_steps(address, Request.GET_MIN_OFFSET, fields)
        highest = yield from self._client.ask_steps(address, Request.GET_MAX_OFFSET, fields)
        ends: dict[str, int | None] = {
            "min": int(lowest.field("offset", "0")),
            "max": int(highest.field("offset", "0")),
        }
        if group is not None:
            fields = requests.query_offset(group, queue)
            frame = yield self._client.ask(address, Request.QUERY_CONSUMER_OFFSET, fields)
            ends["committed"] = int(frame.field("offset")) if frame.code == Response.SUCCESS else None
        return ends

    def _visible_steps(self, topic: str) -> Steps[None]:
        """Brokers tell name servers about new topics a moment later."""
        until = self._client.driver.now.mono + VISIBLE_WITHIN
        while True:
            try:
                yield self._client.routes.fetch(topic)
                return
            except BrokerError as error:
                if error.code != Response.TOPIC_NOT_EXIST:
                    raise
                if self._client.driver.now.mono > until:
                    raise DeadlineError(f"no name server shows the new topic {topic} yet") from error
            yield self._client.timers.sleep(VISIBLE_POLL)


def when_ms(when: When) -> int:
    """A time as resets take it: milliseconds, or the words for both ends."""
    if isinstance(when, datetime):
        return int(when.timestamp() * 1000)
    if isinstance(when, (int, float)):
        return int(when)
    words = {"earliest": EARLIEST, "latest": LATEST}
    if when not in words:
        raise ConfigError(f"when={when!r}: 'earliest', 'latest', a datetime or milliseconds since 1970")
    return words[when]
