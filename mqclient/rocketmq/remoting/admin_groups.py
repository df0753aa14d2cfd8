"""Owns what operators ask about groups: which there are, who is in them, how far they are, what a member says."""

from __future__ import annotations

from typing import Any, NamedTuple

from mqclient.core.steps import Steps
from mqclient.errors import ConfigError
from mqclient.rocketmq.codes import BrokerError, Request, Response
from mqclient.rocketmq.model import MessageQueue, check_group
from mqclient.rocketmq.remoting.admin_cluster import NOTHING_HERE, each_master_steps
from mqclient.rocketmq.remoting.bodies import offset_table, queue_of, read_body, write_body

PAGE = 2000


class Progress(NamedTuple):
    """How far a group is with one queue; times in milliseconds, 0: unknown."""

    end: int
    consumed: int
    pulled: int
    last_ms: int

    @property
    def lag(self) -> int:
        """Messages that are not consumed yet."""
        return max(0, self.end - self.consumed)


class Connection(NamedTuple):
    """One member of a group, as brokers see it."""

    client_id: str
    address: str
    language: str
    version: int


class GroupAdmin:
    """Groups of consumers, and who produces."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def groups_steps(self) -> Steps[list[str]]:
        found = yield from each_master_steps(self._client, self._groups_of_steps)
        return sorted(set().union(*found))

    def _groups_of_steps(self, name: str, address: str) -> Steps[set[str]]:
        """Page by page; brokers before 5.3 give all at once."""
        groups: set[str] = set()
        while True:
            fields = {"groupSeq": str(len(groups)), "maxGroupNum": str(PAGE)}
            frame = yield from self._client.ask_steps(address, Request.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, fields)
            page = {str(group) for group in read_body(frame.body).get("subscriptionGroupTable") or {}} - groups
            groups |= page
            if not page or len(groups) >= int(frame.field("totalGroupNum", "0")):
                return groups

    def create_steps(self, group: str, settings: dict[str, Any]) -> Steps[None]:
        """On every master; settings are the broker's own, such as retryMaxTimes or consumeBroadcastEnable."""
        check_group(group)
        body = write_body({"groupName": group, **settings})

        def ask(name: str, address: str) -> Steps[Any]:
            return (yield from self._client.ask_steps(address, Request.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body))

        yield from each_master_steps(self._client, ask)

    def delete_steps(self, group: str, forget_offsets: bool) -> Steps[None]:
        fields = {"groupName": group, "cleanOffset": "true" if forget_offsets else "false"}

        def ask(name: str, address: str) -> Steps[Any]:
            return (yield from self._client.ask_steps(address, Request.DELETE_SUBSCRIPTIONGROUP, fields))

        yield from each_master_steps(self._client, ask, NOTHING_HERE)

    def connections_steps(self, group: str, producers: bool) -> Steps[list[Connection]]:
        """Who is there now; one that is connected to several brokers is named once for each of its addresses."""
        code = Request.GET_PRODUCER_CONNECTION_LIST if producers else Request.GET_CONSUMER_CONNECTION_LIST
        fields = {"producerGroup" if producers else "consumerGroup": group}

        def ask(name: str, address: str) -> Steps[Any]:
            return (yield from self._client.ask_body_steps(address, code, fields))

        bodies = yield from each_master_steps(self._client, ask, (*NOTHING_HERE, int(Response.SYSTEM_ERROR)))
        return sorted({_connection(entry) for body in bodies for entry in body.get("connectionSet") or ()})

    def progress_steps(self, group: str, topic: str | None) -> Steps[dict[MessageQueue, Progress]]:
        """Every queue of which brokers have an offset of the group."""
        check_group(group)
        fields = {"consumerGroup": group, "topic": topic or ""}

        def ask(name: str, address: str) -> Steps[Any]:
            return (yield from self._client.ask_body_steps(address, Request.GET_CONSUME_STATS, fields))

        found: dict[MessageQueue, Progress] = {}
        for body in (yield from each_master_steps(self._client, ask, NOTHING_HERE)):
            for queue, row in (body.get("offsetTable") or {}).items():
                found[queue_of(queue)] = Progress(
                    int(row.get("brokerOffset", 0)),
                    int(row.get("consumerOffset", 0)),
                    int(row.get("pullOffset", 0)),
                    int(row.get("lastTimestamp", 0)),
                )
        return dict(sorted(found.items()))

    def clone_steps(self, source: str, target: str, topic: str) -> Steps[None]:
        """The target group goes on where the source group is."""
        check_group(target)
        fields = {"srcGroup": source, "destGroup": target, "topic": topic, "offline": "false"}

        def ask(name: str, address: str) -> Steps[Any]:
            return (yield from self._client.ask_steps(address, Request.CLONE_GROUP_OFFSET, fields))

        yield from each_master_steps(self._client, ask, NOTHING_HERE)

    def running_info_steps(self, group: str, client_id: str) -> Steps[dict[str, Any]]:
        """What a member tells about itself: its queues, rates and subscriptions."""
        fields = {"consumerGroup": group, "clientId": client_id, "jstackEnable": "false"}

        def ask(name: str, address: str) -> Steps[Any]:
            return (yield from self._client.ask_body_steps(address, Request.GET_CONSUMER_RUNNING_INFO, fields))

        answers = yield from each_master_steps(self._client, ask, (int(Response.SYSTEM_ERROR),))
        info: dict[str, Any] = answers[0]
        return info

    def status_steps(self, group: str, topic: str) -> Steps[dict[str, dict[MessageQueue, int]]]:
        """By member: the offsets that it has in its memory."""
        fields = {"group": group, "topic": topic}

        def ask(name: str, address: str) -> Steps[Any]:
            return (
                yield from self._client.ask_body_steps(address, Request.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, fields)
            )

        found: dict[str, dict[MessageQueue, int]] = {}
        for body in (yield from each_master_steps(self._client, ask, (int(Response.SYSTEM_ERROR),))):
            for client_id, table in (body.get("consumerTable") or {}).items():
                found.setdefault(str(client_id), {}).update(offset_table({"offsetTable": table}))
        return found

    def consume_directly_steps(self, group: str, client_id: str, message: Any) -> Steps[dict[str, Any]]:
        """Have a member's handler called with a stored message; what came of it."""
        if message.queue is None:
            raise ConfigError("a message that was read from a broker is needed")
        fields = {
            "consumerGroup": group,
            "clientId": client_id,
            "msgId": message.offset_id,
            "brokerName": message.queue.broker_name,
            "topic": message.queue.topic,
        }
        address = self._client.broker_address(message.queue.broker_name)
        try:
            body = yield from self._client.ask_body_steps(address, Request.CONSUME_MESSAGE_DIRECTLY, fields)
        except BrokerError as error:
            raise BrokerError(
                error.code, f"{client_id}: {error.remark}", remote=address, request=error.request
            ) from error
        answer: dict[str, Any] = body
        return answer


def _connection(entry: dict[str, Any]) -> Connection:
    return Connection(
        str(entry.get("clientId")),
        str(entry.get("clientAddr")),
        str(entry.get("language")),
        int(entry.get("version") or 0),
    )
