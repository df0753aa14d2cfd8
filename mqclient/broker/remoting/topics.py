"""Owns the requests that make topics and look at them, and the broker's configuration.

| code | request | answered |
|---|---|---|
| 17 | UPDATE_AND_CREATE_TOPIC | makes or changes a topic |
| 18 | UPDATE_AND_CREATE_TOPIC_LIST | the same, many at once |
| 21, 351 | GET_ALL_TOPIC_CONFIG, GET_TOPIC_CONFIG | all topics in pages; one |
| 305 | GET_SYSTEM_TOPIC_LIST_FROM_BROKER | topics that the broker made for itself |
| 215 | DELETE_TOPIC_IN_BROKER | forgets a topic and its messages |
| 25 | UPDATE_BROKER_CONFIG | changes options, in force at once |
| 26 | GET_BROKER_CONFIG | all options as properties text |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mqclient.broker.remoting.groups import page, version_of
from mqclient.broker.remoting.server import Ask, Handler, Refused, Reply, read_properties, write_properties
from mqclient.broker.remoting.state import READ, SYSTEM_TOPICS, WRITE, Broker, Topic, queue_count
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.remoting.bodies import read_body, write_body

NAME = re.compile(r"[%|a-zA-Z0-9_-]+\Z")
BLACK_LIST = frozenset({"configBlackList", "brokerConfigPath", "rocketmqHome"})


def table(broker: Broker) -> Mapping[int, Handler]:
    topics = Topics(broker)
    return {
        Request.UPDATE_AND_CREATE_TOPIC: topics.create,
        Request.UPDATE_AND_CREATE_TOPIC_LIST: topics.create_list,
        Request.GET_TOPIC_CONFIG: topics.one,
        Request.GET_ALL_TOPIC_CONFIG: topics.all,
        Request.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: topics.system,
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
        self._check(name)
        read, write = queue_count(ask.number("readQueueNums")), queue_count(ask.number("writeQueueNums"))
        topic = self._broker.topics.setdefault(name, Topic(name, 0, 0))
        topic.read_queues, topic.write_queues = read, write
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

    def create_list(self, ask: Ask) -> Reply:
        for config in read_body(ask.body)["topicConfigList"]:
            name = str(config["topicName"])
            self._check(name)
            read, write = (queue_count(int(config.get(name, 16))) for name in ("readQueueNums", "writeQueueNums"))
            topic = self._broker.topics.setdefault(name, Topic(name, 0, 0))
            topic.read_queues, topic.write_queues = read, write
            topic.perm = int(config.get("perm", READ | WRITE))
            topic.filter_type = str(config.get("topicFilterType", "SINGLE_TAG"))
            topic.sys_flag = int(config.get("topicSysFlag", 0))
            topic.order = bool(config.get("order", False))
        return Reply(remark="not set any response code")

    def one(self, ask: Ask) -> Reply:
        name = ask.text("topic")
        topic = self._broker.topics.get(name)
        if topic is None:
            raise Refused(Response.TOPIC_NOT_EXIST, f"No topic in this broker. topic: {name}")
        return Reply(body=write_body(_shown(topic)))

    def all(self, ask: Ask) -> Reply:
        names = sorted(self._broker.topics)
        shown = page(names, ask.number("topicSeq", 0), ask.number("maxTopicNum", 0))
        version = version_of(self._broker)
        body = {
            "dataVersion": version,
            "mappingDataVersion": version,
            "topicConfigTable": {name: _shown(self._broker.topics[name]) for name in shown},
            "topicQueueMappingDetailMap": {},
            "topicQueueMappingInfoMap": {},
        }
        return Reply(fields={"totalTopicNum": str(len(names))}, body=write_body(body))

    def system(self, ask: Ask) -> Reply:
        names = [name for name in self._broker.topics if name in SYSTEM_TOPICS]
        return Reply(body=write_body({"topicList": names}))

    def update_config(self, ask: Ask) -> Reply:
        changes = read_properties(ask.body)
        if BLACK_LIST & changes.keys():
            raise Refused(Response.NO_PERMISSION, "Can not update config in black list.")
        self._broker.config.update(changes)
        return Reply()

    def config(self, ask: Ask) -> Reply:
        version = '{"counter":1,"stateVersion":0,"timestamp":0}'
        return Reply(fields={"version": version}, body=write_properties(self._broker.config))

    def _check(self, name: str) -> None:
        check_name(name)
        if name in SYSTEM_TOPICS:
            raise Refused(Response.INVALID_PARAMETER, f"The topic[{name}] is conflict with system topic.")


def _shown(topic: Topic) -> dict[str, Any]:
    return {
        "attributes": topic.attributes,
        "order": topic.order,
        "perm": topic.perm,
        "readQueueNums": topic.read_queues,
        "topicFilterType": topic.filter_type,
        "topicName": topic.name,
        "topicSysFlag": topic.sys_flag,
        "writeQueueNums": topic.write_queues,
    }
