"""Owns a group's offset reset as operators ask for it: the form each broker knows, and every member reached.

A clustering group is reset by request 222, in whichever form the broker has. A broadcasting one keeps its offsets with
the members, so (story 3):

- A broker of the old form, told by its configuration (26), pushes the reset to all members; if it insists on stored
  offsets it gets them (15) and is asked again. A broker with the operator's patch does not insist.
- A broker of today's form would leave a note that one member alone sees. So 222 is not sent at all; the targets are
  relayed to each member through 307, which brokers hand on with extra fields and body untouched. Members of other
  makes answer their running info, by which we know that they did not move.
- On the operator's explicit word (`switch_form`) such a broker is put into the old form for a moment, and back whatever
  happens: that moves members of every make.
- Where the configuration may not be read, the reset goes both ways, and a member that was moved by the relay absorbs
  what the broker tells it a second time.
"""

from __future__ import annotations

import logging
from typing import Any, Final, NamedTuple

from mqclient.core.steps import Steps
from mqclient.errors import MQError
from mqclient.rocketmq.codes import BrokerError, Request, Response
from mqclient.rocketmq.model import MessageQueue, check_group
from mqclient.rocketmq.remoting import requests
from mqclient.rocketmq.remoting.bodies import offset_table, read_body, write_body
from mqclient.rocketmq.remoting.relayed import MOVED_FIELD, relay_fields, signed

LOG = logging.getLogger("mqclient.remoting")

OPTION: Final = "useServerSideResetOffset"
SERVER_SIDE: Final = f"{OPTION}=true"
RELAY_TIMEOUT: Final = 12.0

MOVED: Final = "moved"
ASKED: Final = "asked"
FOREIGN: Final = "not moved: not an mqclient"


class ResetReport(NamedTuple):
    """What a reset did: the new offsets, and of a broadcasting group what became of each member.

    `members`: client id to "moved" (it said so), "asked" (the broker told it), or why it did not move. `failed`: broker
    to what went wrong there; the others went on. `before`, of a dry run: where each queue is now, for broadcasting the
    member that is furthest behind; None: nowhere yet.
    """

    offsets: dict[MessageQueue, int]
    members: dict[str, str]
    failed: dict[str, str]
    before: dict[MessageQueue, int | None]


class GroupReset:
    """One reset of one group on all brokers of a topic."""

    def __init__(self, client: Any, group: str, topic: str, wall_ms: int) -> None:
        check_group(group)
        self._client = client
        self._group = group
        self._topic = topic
        self._wall_ms = wall_ms
        self._switch_form = False
        self._id = f"{client.random.getrandbits(64):016x}"
        self.report = ResetReport({}, {}, {}, {})

    def clustering_steps(self, force: bool) -> Steps[ResetReport]:
        """222 to every broker; a failure of one is kept in the report unless it was the only one."""
        work = self._forced_steps if force else self._backward_steps
        yield from self._brokers_steps(work)
        return self.report

    def broadcasting_steps(self, switch_form: bool = False) -> Steps[ResetReport]:
        """By the form that each broker has."""
        self._switch_form = switch_form
        yield from self._brokers_steps(self._broadcasting_broker_steps)
        return self.report

    def dry_steps(self, broadcasting: bool = False, force: bool = True) -> Steps[ResetReport]:
        """Only look: from where each queue would go where."""

        def look(name: str, queues: list[MessageQueue], address: str) -> Steps[dict[MessageQueue, int]]:
            targets = yield from self._targets_steps(queues, address)
            now = yield from (self._held_steps(queues, address) if broadcasting else self._all_stored(queues, address))
            self.report.before.update(now)
            return targets if force or broadcasting else {q: to for q, to in targets.items() if to < (now[q] or 0)}

        yield from self._brokers_steps(look)
        return self.report

    def _all_stored(self, queues: list[MessageQueue], address: str) -> Steps[dict[MessageQueue, int | None]]:
        now: dict[MessageQueue, int | None] = {}
        for queue in queues:
            now[queue] = yield from self._stored_steps(queue, address)
        return now

    def _held_steps(self, queues: list[MessageQueue], address: str) -> Steps[dict[MessageQueue, int | None]]:
        """Of each queue the least that a member has in its memory."""
        fields = {"group": self._group, "topic": self._topic}
        held: dict[MessageQueue, int | None] = dict.fromkeys(queues)
        frame = yield self._client.ask(address, Request.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, fields)
        tables = (read_body(frame.body).get("consumerTable") or {}) if frame.code == Response.SUCCESS else {}
        for table in tables.values():
            for queue, offset in offset_table({"offsetTable": table}).items():
                if queue in held:
                    least = held[queue]
                    held[queue] = offset if least is None else min(least, offset)
        return held

    def _brokers_steps(self, work: Any) -> Steps[None]:
        route = yield self._client.routes.fetch(self._topic)
        last: MQError | None = None
        for name in sorted(route.brokers):
            queues = sorted(queue for queue in {*route.readable, *route.writable} if queue.broker_name == name)
            try:
                self.report.offsets.update((yield from work(name, queues, self._client.broker_address(name))))
            except MQError as error:
                last = error
                self.report.failed[name] = str(error)
        if last is not None and len(self.report.failed) == len(route.brokers):
            raise last

    def _reset_steps(self, address: str, force: bool) -> Steps[dict[MessageQueue, int]]:
        fields = requests.reset_offset(self._group, self._topic, self._wall_ms, force)
        frame = yield from self._client.ask_steps(address, Request.INVOKE_BROKER_TO_RESET_OFFSET, fields)
        return offset_table(read_body(frame.body))

    def _forced_steps(self, name: str, queues: list[MessageQueue], address: str) -> Steps[dict[MessageQueue, int]]:
        try:
            return (yield from self._reset_steps(address, True))
        except BrokerError as error:
            if error.code != Response.CONSUMER_NOT_ONLINE:
                raise
        # The old form wants members; without any, their offsets are the broker's alone.
        return (yield from self._write_offsets_steps(queues, address))

    def _backward_steps(self, name: str, queues: list[MessageQueue], address: str) -> Steps[dict[MessageQueue, int]]:
        """No queue forward: today's form ignores `isForce`, so only those that go back are asked for, one by one.

        The old form ignores which queue is asked for, and obeys `isForce`: it does them all each time, the same.
        """
        moved: dict[MessageQueue, int] = {}
        for queue, offset in (yield from self._targets_steps(queues, address)).items():
            stored = yield from self._stored_steps(queue, address)
            if stored is None or offset >= stored:
                continue
            yield from self._back_steps(queue, offset, address)
            moved[queue] = offset
        return moved

    def _back_steps(self, queue: MessageQueue, offset: int, address: str) -> Steps[None]:
        fields = requests.reset_offset(self._group, self._topic, self._wall_ms, False)
        fields |= {"queueId": str(queue.queue_id), "offset": str(offset)}
        try:
            yield from self._client.ask_steps(address, Request.INVOKE_BROKER_TO_RESET_OFFSET, fields)
        except BrokerError as error:
            if error.code != Response.CONSUMER_NOT_ONLINE:
                raise
            # The old form wants members; without any, their offsets are the broker's alone.
            fields = requests.update_offset(self._group, queue, offset)
            yield from self._client.ask_steps(address, Request.UPDATE_CONSUMER_OFFSET, fields)

    def _stored_steps(self, queue: MessageQueue, address: str) -> Steps[int | None]:
        fields = requests.query_offset(self._group, queue, strict=True)
        frame = yield self._client.ask(address, Request.QUERY_CONSUMER_OFFSET, fields)
        return int(frame.field("offset")) if frame.code == Response.SUCCESS else None

    def _broadcasting_broker_steps(
        self, name: str, queues: list[MessageQueue], address: str
    ) -> Steps[dict[MessageQueue, int]]:
        try:
            frame = yield from self._client.ask_steps(address, Request.GET_BROKER_CONFIG, {})
        except BrokerError as error:
            if error.code != Response.NO_PERMISSION:
                raise
            return (yield from self._both_ways_steps(queues, address))
        if SERVER_SIDE.encode() not in frame.body.splitlines():
            return (yield from self._old_form_steps(queues, address))
        if self._switch_form:
            return (yield from self._switched_steps(queues, address))
        return (yield from self._relay_steps(queues, address))

    def _old_form_steps(self, queues: list[MessageQueue], address: str) -> Steps[dict[MessageQueue, int]]:
        try:
            moved = yield from self._reset_steps(address, True)
        except BrokerError as error:
            if error.code != Response.SYSTEM_ERROR:
                raise
            yield from self._write_offsets_steps(queues, address)
            moved = yield from self._reset_steps(address, True)
        for client_id in (yield from self._members_steps(address)):
            self.report.members.setdefault(client_id, ASKED)
        return moved

    def _switched_steps(self, queues: list[MessageQueue], address: str) -> Steps[dict[MessageQueue, int]]:
        """The old form for a moment; put back whatever happens, also if it was not clear whether it was changed."""
        LOG.warning("%s gets %s=false for a moment, as it was asked for", address, OPTION)
        try:
            yield from self._client.ask_steps(address, Request.UPDATE_BROKER_CONFIG, {}, f"{OPTION}=false\n".encode())
            return (yield from self._old_form_steps(queues, address))
        finally:
            yield from self._client.ask_steps(address, Request.UPDATE_BROKER_CONFIG, {}, f"{SERVER_SIDE}\n".encode())
            LOG.warning("%s has %s again", address, SERVER_SIDE)

    def _both_ways_steps(self, queues: list[MessageQueue], address: str) -> Steps[dict[MessageQueue, int]]:
        """We may not know the form: relay first, so that members absorb what the broker then tells them, too."""
        targets = yield from self._relay_steps(queues, address)
        try:
            yield from self._reset_steps(address, True)
        except BrokerError as error:
            LOG.info("%s refused the reset of %s itself: %s", address, self._group, error)
        return targets

    def _write_offsets_steps(self, queues: list[MessageQueue], address: str) -> Steps[dict[MessageQueue, int]]:
        """What an unpatched broker of the old form wants to see before it tells the members."""
        targets = yield from self._targets_steps(queues, address)
        for queue, offset in targets.items():
            fields = requests.update_offset(self._group, queue, offset)
            yield from self._client.ask_steps(address, Request.UPDATE_CONSUMER_OFFSET, fields)
        return targets

    def _relay_steps(self, queues: list[MessageQueue], address: str) -> Steps[dict[MessageQueue, int]]:
        targets = yield from self._targets_steps(queues, address)
        body = write_body({"offsetTable": targets})
        for client_id in (yield from self._members_steps(address)):
            status = yield from self._member_steps(client_id, address, body)
            if self.report.members.get(client_id, MOVED) == MOVED:
                self.report.members[client_id] = status
        return targets

    def _member_steps(self, client_id: str, address: str, body: bytes) -> Steps[str]:
        fields = relay_fields(self._group, client_id, self._topic, self._id)
        auth = self._client.options.auth
        if auth is not None:
            fields = signed(fields, body, auth.secret_key, self._client.driver.now.wall_ms)
        try:
            frame = yield from self._client.ask_steps(
                address, Request.GET_CONSUMER_RUNNING_INFO, fields, body, timeout=RELAY_TIMEOUT
            )
        except MQError as error:
            return f"not moved: {error}"
        return FOREIGN if frame.field(MOVED_FIELD) is None else MOVED

    def _members_steps(self, address: str) -> Steps[list[str]]:
        fields = {"consumerGroup": self._group}
        body = yield from self._client.ask_body_steps(address, Request.GET_CONSUMER_CONNECTION_LIST, fields)
        return [str(entry["clientId"]) for entry in body.get("connectionSet") or ()]

    def _targets_steps(self, queues: list[MessageQueue], address: str) -> Steps[dict[MessageQueue, int]]:
        """The offset at the time for each queue, as the broker would find it."""
        targets: dict[MessageQueue, int] = {}
        for queue in queues:
            code, fields = Request.GET_MAX_OFFSET, requests.queue_fields(queue)
            if self._wall_ms >= 0:
                code, fields = Request.SEARCH_OFFSET_BY_TIMESTAMP, requests.search_offset(queue, self._wall_ms)
            frame = yield from self._client.ask_steps(address, code, fields)
            targets[queue] = max(0, int(frame.field("offset", "0")))
        return targets
