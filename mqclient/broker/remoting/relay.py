"""Owns the requests that a broker hands on to a member of a group, and its answer back, untouched.

| code | request | answered |
|---|---|---|
| 307 | GET_CONSUMER_RUNNING_INFO | what the member answered; extra fields and body reach it as they were sent |
| 309 | CONSUME_MESSAGE_DIRECTLY | the same, with the message that is to be consumed as the body |
| 223 | INVOKE_BROKER_TO_GET_CONSUMER_STATUS | 221 to each member, their tables together |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mqclient.broker.remoting.membership import Member, Members
from mqclient.broker.remoting.server import Ask, Handler, Refused, Reply
from mqclient.broker.remoting.state import Broker
from mqclient.errors import ConfigError, ProtocolError
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.remoting.bodies import read_body, write_body

RELAY_SECONDS: Final = 10.0
STATUS_SECONDS: Final = 5.0
OLDEST: Final = 62
"""Members of older versions cannot be asked."""


def table(relays: Relays) -> Mapping[int, Handler]:
    return {
        Request.GET_CONSUMER_RUNNING_INFO: relays.running_info,
        Request.CONSUME_MESSAGE_DIRECTLY: relays.consume,
        Request.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: relays.status,
    }


class Relays:
    """Asks members on behalf of others."""

    def __init__(self, broker: Broker, members: Members) -> None:
        self._broker = broker
        self._members = members

    def running_info(self, ask: Ask) -> None:
        self._relay(ask, ask.frame.fields, ask.body)

    def consume(self, ask: Ask) -> None:
        try:
            place = self._broker.house.impl.remoting.parse_offset_id(ask.text("msgId"))[2]
        except ConfigError as error:
            raise Refused(Response.SYSTEM_ERROR, str(error)) from None
        record = self._broker.record(place)
        if record is None:
            raise Refused(Response.SYSTEM_ERROR, f"can not find message by the offset, {place}")
        more = {"brokerName": self._broker.name, "groupSysFlag": "0", "topicSysFlag": "0"}
        self._relay(ask, {**ask.frame.fields, **more}, bytes(record))

    def _relay(self, ask: Ask, fields: Mapping[str, str], body: bytes) -> None:
        group, client_id = ask.text("consumerGroup"), ask.text("clientId")
        member = self._members.member(group, client_id)
        if member is None:
            raise Refused(Response.SYSTEM_ERROR, f"The Consumer <{group}> <{client_id}> not online")
        if member.peer.version < OLDEST:
            remark = f"The Consumer <{client_id}> Version {member.peer.version} too low to finish"
            raise Refused(Response.SYSTEM_ERROR, f"{remark}, please upgrade it to V3_1_8_SNAPSHOT")

        def heard(frame: Any) -> None:
            if frame is None:
                remark = f"consumer <{group}> <{client_id}> Timeout: {int(RELAY_SECONDS * 1000)}ms"
                ask.answer(Reply(Response.CONSUME_MSG_TIMEOUT, remark))
            elif not ask.frame.is_oneway:
                ask.peer.pass_on(ask.frame, frame)

        member.peer.ask(ask.frame.code, fields, body, RELAY_SECONDS, heard)

    def status(self, ask: Ask) -> None:
        topic, name, only = ask.text("topic"), ask.text("group"), ask.text("clientAddr", "")
        group = self._members.consumers.get(name)
        members = [] if group is None else [m for m in group.members.values() if only in ("", m.client_id)]
        if not members:
            raise Refused(Response.SYSTEM_ERROR, f"No Any Consumer online in the consumer group: [{name}]")
        statuses: dict[str, Any] = {}
        left = list(members)

        def heard_from(member: Member) -> Callable[[Any], None]:
            def heard(frame: Any) -> None:
                if frame is not None and frame.code == Response.SUCCESS:
                    statuses[member.client_id] = _status(frame.body)
                left.remove(member)
                if not left:
                    ask.answer(Reply(body=write_body({"consumerTable": statuses})))

            return heard

        for member in members:
            fields = {"group": name, "topic": topic}
            member.peer.ask(Request.GET_CONSUMER_STATUS_FROM_CLIENT, fields, b"", STATUS_SECONDS, heard_from(member))


def _status(body: bytes) -> Any:
    try:
        return read_body(body).get("messageQueueTable", {})
    except (ProtocolError, AttributeError):
        return {}
