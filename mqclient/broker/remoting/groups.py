"""Owns the administration of consumer groups: their configuration, what they may read, their offsets as a whole.

| code | request | answered |
|---|---|---|
| 200, 225 | UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, _LIST | makes or changes groups |
| 201, 352 | GET_ALL_SUBSCRIPTIONGROUP_CONFIG, GET_SUBSCRIPTIONGROUP_CONFIG | all groups in pages; one, made on sight |
| 207 | DELETE_SUBSCRIPTIONGROUP | forgets a group, and its offsets if asked |
| 314 | CLONE_GROUP_OFFSET | one group's offsets become another's |
| 353 | UPDATE_AND_GET_GROUP_FORBIDDEN | whether a group may read a topic |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mqclient.broker.remoting.membership import Members
from mqclient.broker.remoting.offsets import Offsets
from mqclient.broker.remoting.server import Ask, Handler, Refused, Reply
from mqclient.broker.remoting.state import Broker, Group, queue_count
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.remoting.bodies import read_body, write_body

DEFAULTS: Final[Mapping[str, Any]] = {
    "attributes": {},
    "brokerId": 0,
    "consumeFromMinEnable": True,
    "consumeMessageOrderly": False,
    "consumeTimeoutMinute": 15,
    "groupRetryPolicy": {"type": "CUSTOMIZED"},
    "groupSysFlag": 0,
    "whichBrokerWhenConsumeSlowly": 1,
}
"""What is kept and shown of a group's configuration, though nothing here depends on it."""


def table(groups: Groups) -> Mapping[int, Handler]:
    return {
        Request.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: groups.create,
        Request.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: groups.create_list,
        Request.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: groups.all,
        Request.GET_SUBSCRIPTIONGROUP_CONFIG: groups.one,
        Request.DELETE_SUBSCRIPTIONGROUP: groups.delete,
        Request.CLONE_GROUP_OFFSET: groups.clone,
        Request.UPDATE_AND_GET_GROUP_FORBIDDEN: groups.forbid,
    }


def page(names: list[str], start: int, most: int) -> list[str]:
    """A part of a long list; upstream's clients ask for 2000 at once."""
    return names[start : start + most] if most > 0 else names[start:]


def version_of(broker: Broker) -> dict[str, int]:
    """There are no versions to compare: each answer is the newest."""
    return {"counter": 1, "stateVersion": 0, "timestamp": broker.house.clock.wall_ms()}


class Groups:
    """A broker's groups, as administrators see them."""

    def __init__(self, broker: Broker, members: Members, offsets: Offsets) -> None:
        self._broker = broker
        self._members = members
        self._offsets = offsets

    def create(self, ask: Ask) -> Reply:
        self._set(read_body(ask.body))
        return Reply()

    def create_list(self, ask: Ask) -> Reply:
        for config in read_body(ask.body)["groupConfigList"]:
            self._set(config)
        return Reply()

    def all(self, ask: Ask) -> Reply:
        names = sorted(self._broker.groups)
        shown = page(names, ask.number("groupSeq", 0), ask.number("maxGroupNum", 0))
        groups = {name: self._broker.groups[name] for name in shown}
        body = {
            "dataVersion": version_of(self._broker),
            "forbiddenTable": {name: _table(group.forbidden) for name, group in groups.items() if group.forbidden},
            "subscriptionGroupTable": {name: _shown(group) for name, group in groups.items()},
        }
        return Reply(fields={"totalGroupNum": str(len(names))}, body=write_body(body))

    def one(self, ask: Ask) -> Reply:
        return Reply(body=write_body(_shown(self._broker.group(ask.text("group")))))

    def delete(self, ask: Ask) -> Reply:
        name = ask.text("groupName")
        self._broker.groups.pop(name, None)
        if ask.flag("cleanOffset"):
            for table in (self._offsets.stored, self._offsets.resets):
                for key in [key for key in table if key[0] == name]:
                    del table[key]
        return Reply()

    def clone(self, ask: Ask) -> Reply:
        """Of one topic or of all; online only what members of the source subscribe to."""
        source, target, only = ask.text("srcGroup"), ask.text("destGroup"), ask.text("topic", "")
        online = None if ask.flag("offline") else self._members.consumers.get(source)
        for (group, topic, queue_id), offset in list(self._offsets.stored.items()):
            wanted = group == source and only in ("", topic) and topic in self._broker.topics
            if wanted and (online is None or topic in online.subscriptions):
                self._offsets.stored[target, topic, queue_id] = offset
        return Reply()

    def forbid(self, ask: Ask) -> Reply:
        name, topic = ask.text("group"), ask.text("topic")
        group = self._broker.group(name)
        readable = ask.text("readable", "").lower()
        if readable:
            others = [other for other in group.forbidden if other != topic]
            group.forbidden = others if readable == "true" else [*others, topic]
            self._broker.groups[name] = group
        body = {"group": name, "readable": topic not in group.forbidden, "topic": topic}
        return Reply(body=write_body(body))

    def _set(self, config: Mapping[str, Any]) -> None:
        name = str(config.get("groupName") or "")
        if not name.strip():
            raise Refused(Response.INVALID_PARAMETER, "The specified group is blank.")
        before = self._broker.groups.get(name)
        self._broker.groups[name] = Group(
            name,
            bool(config.get("consumeEnable", True)),
            bool(config.get("consumeBroadcastEnable", True)),
            bool(config.get("notifyConsumerIdsChangedEnable", True)),
            queue_count(int(config.get("retryQueueNums", 1))),
            int(config.get("retryMaxTimes", 16)),
            {key: value for key, value in config.items() if key in DEFAULTS},
            [] if before is None else before.forbidden,
        )


def _table(forbidden: list[str]) -> dict[str, int]:
    """Each topic with upstream's bit for reading."""
    return dict.fromkeys(forbidden, 1)


def _shown(group: Group) -> dict[str, Any]:
    shown = {
        **DEFAULTS,
        **group.more,
        "consumeBroadcastEnable": group.broadcast_enable,
        "consumeEnable": group.consume_enable,
        "groupName": group.name,
        "notifyConsumerIdsChangedEnable": group.notify_changes,
        "retryMaxTimes": group.retry_max,
        "retryQueueNums": group.retry_queues,
    }
    return dict(sorted(shown.items()))
