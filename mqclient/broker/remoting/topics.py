"""Owns the requests that make topics and look at them, and the broker's configuration.

| code | request | answered |
|---|---|---|
| 17 | UPDATE_AND_CREATE_TOPIC | makes or changes a topic |
| 200 | UPDATE_AND_CREATE_SUBSCRIPTIONGROUP | makes or changes a group |
| 215 | DELETE_TOPIC_IN_BROKER | forgets a topic and its messages |
| 25 | UPDATE_BROKER_CONFIG | changes options, in force at once |
| 26 | GET_BROKER_CONFIG | all options as properties text |
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mqclient.broker.remoting.server import Ask, Handler, Refused, Reply
from mqclient.broker.remoting.state import SYSTEM_TOPICS, Broker, Group, Topic
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.remoting.bodies import read_body

NAME = re.compile(r"[%|a-zA-Z0-9_-]+\Z")
BLACK_LIST = frozenset({"configBlackList", "brokerConfigPath", "rocketmqHome"})


def table(broker: Broker) -> Mapping[int, Handler]:
    topics = Topics(broker)
    return {
        Request.UPDATE_AND_CREATE_TOPIC: topics.create,
        Request.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: topics.create_group,
        Request.DELETE_TOPIC_IN_BROKER: topics.delete,
        Request.UPDATE_BROKER_CONFIG: topics.update_config,
        Request.GET_BROKER_CONFIG: topics.config,
    }


def check_name(name: str, limit: int = 127) -> None:
    """The broker's own words for a name that it does not take."""
    if not name.strip():
        raise Refused(Response.INVALID_PARAMETER, "The specified topic is blank.")
    if not NAME.match(name):
        allowed = "allowing only ^[%|a-zA-Z0-9_-]+$"
        raise Refused(
            Response.INVALID_PARAMETER, f"The specified topic: {name}, contains illegal characters, {allowed}"
        )
    if len(name) > limit:
        remark = f"The specified topic: {name}, is longer than topic max length: {limit}"
        raise Refused(Response.INVALID_PARAMETER, remark)


class Topics:
    """A broker's topics and options, as administrators change them."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def create(self, ask: Ask) -> Reply:
        name = ask.text("topic")
        check_name(name)
        if name in SYSTEM_TOPICS:
            raise Refused(Response.INVALID_PARAMETER, f"The topic[{name}] is conflict with system topic.")
        topic = self._broker.topics.setdefault(name, Topic(name, 0, 0))
        topic.read_queues = ask.number("readQueueNums")
        topic.write_queues = ask.number("writeQueueNums")
        topic.perm = ask.number("perm")
        topic.filter_type = ask.text("topicFilterType", "SINGLE_TAG")
        topic.sys_flag = ask.number("topicSysFlag", 0)
        topic.order = ask.flag("order")
        return Reply()

    def delete(self, ask: Ask) -> Reply:
        name = ask.text("topic")
        if not name.strip() or name in SYSTEM_TOPICS:
            raise Refused(Response.INVALID_PARAMETER, f"The topic[{name}] is conflict with system topic.")
        self._broker.topics.pop(name, None)
        return Reply()

    def create_group(self, ask: Ask) -> Reply:
        config = read_body(ask.body)
        name = str(config["groupName"])
        group = self._broker.groups.setdefault(name, Group(name))
        group.consume_enable = bool(config.get("consumeEnable", True))
        group.broadcast_enable = bool(config.get("consumeBroadcastEnable", True))
        group.notify_changes = bool(config.get("notifyConsumerIdsChangedEnable", True))
        group.retry_queues = int(config.get("retryQueueNums", 1))
        group.retry_max = int(config.get("retryMaxTimes", 16))
        return Reply()

    def update_config(self, ask: Ask) -> Reply:
        changes = {}
        for line in ask.body.decode("utf-8", "replace").splitlines():
            name, equals, value = line.partition("=")
            if equals and not line.startswith("#"):
                changes[name.strip()] = value.strip()
        if BLACK_LIST & changes.keys():
            raise Refused(Response.NO_PERMISSION, "Can not update config in black list.")
        self._broker.config.update(changes)
        return Reply()

    def config(self, ask: Ask) -> Reply:
        text = "".join(f"{name}={value}\n" for name, value in sorted(self._broker.config.items()))
        return Reply(fields={"version": '{"counter":1,"stateVersion":0,"timestamp":0}'}, body=text.encode())
