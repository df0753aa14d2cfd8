"""Owns resets that one mqclient relays to another through a broker: how they are signed, obeyed once, or refused.

A broker hands a 307 on to a member with extra fields and body as they are. That makes a write out of what is a read
request to the broker, so a member with credentials obeys only a signature by the secret key that it shares with the
sender, over the member, the time and the body; and `allow_relayed_reset=False` obeys nobody.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from typing import Any, Final

from mqclient.core.link import Link
from mqclient.rocketmq.codes import Response
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.bodies import offset_table, read_body
from mqclient.rocketmq.remoting.reset import reset

LOG = logging.getLogger("mqclient.remoting")

RESET_FIELD: Final = "mqclientReset"
"""Extra field of a relayed 307: the id of the reset."""
TIME_FIELD: Final = "mqclientResetTime"
SIGN_FIELD: Final = "mqclientResetSign"
MOVED_FIELD: Final = "mqclientMoved"
"""Field of a member's answer: how many queues moved."""
REMEMBERED: Final = 64
"""Relayed resets whose repetition is noticed."""
FRESH_MS: Final = 300_000
"""How far the clocks of sender and member may be apart."""


def relay_fields(group: str, client_id: str, topic: str, reset_id: str) -> dict[str, str]:
    """The request to one member, without its signature."""
    return {
        "consumerGroup": group,
        "clientId": client_id,
        "jstackEnable": "false",
        "topic": topic,
        RESET_FIELD: reset_id,
    }


def signed(fields: dict[str, str], body: bytes, secret: str, wall_ms: int) -> dict[str, str]:
    """The same with time and signature."""
    fields = {**fields, TIME_FIELD: str(wall_ms)}
    return {**fields, SIGN_FIELD: _signature(fields, body, secret)}


def _signature(fields: dict[str, str], body: bytes, secret: str) -> str:
    names = ("consumerGroup", "clientId", "topic", RESET_FIELD, TIME_FIELD)
    content = "\n".join(fields.get(name, "") for name in names).encode() + b"\n" + body
    return hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()


class RelayedResets:
    """The member's side."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._done: dict[str, set[MessageQueue]] = {}
        """By id: the queues that it has moved."""

    def obey(self, link: Link, frame: Any, member: Any) -> None:
        """Move what the body says, once; each one obeyed or refused is one line in the log."""
        reset_id, topic = str(frame.field(RESET_FIELD)), frame.field("topic", "")
        refusal = self._refusal(frame)
        if refusal is not None:
            LOG.warning(
                "consumer:%s refused the relayed reset %s by %s: %s", member.group, reset_id, link.address, refusal
            )
            self._client.respond(link, frame, Response.NO_PERMISSION, remark=refusal)
            return
        table = offset_table(read_body(frame.body))
        done = self._done.setdefault(reset_id, set())
        if len(self._done) > REMEMBERED:
            del self._done[next(iter(self._done))]
        wanted = {queue: offset for queue, offset in table.items() if queue not in done}
        moved = reset(member, topic, wanted)
        member.absorber.expect(moved)
        done.update(table)  # a repeated one, which a sender may try when an answer was lost, moves nothing
        LOG.info("consumer:%s obeyed the relayed reset %s by %s", member.group, reset_id, link.address)
        self._client.respond(link, frame, Response.SUCCESS, **{MOVED_FIELD: str(len(moved))})

    def _refusal(self, frame: Any) -> str | None:
        options = self._client.options
        if not options.allow_relayed_reset:
            return "relayed resets are not allowed here"
        if options.auth is None:
            return None
        fields: dict[str, str] = frame.fields
        expected = _signature(fields, frame.body, options.auth.secret_key)
        if not hmac.compare_digest(expected, fields.get(SIGN_FIELD, "")):
            return "the relayed reset is not signed with our secret key"
        if fields.get("clientId") != self._client.client_id:
            return "the relayed reset is meant for another member"
        sent_at = fields.get(TIME_FIELD, "0")  # signed, so it is a number
        if abs(self._client.driver.now.wall_ms - int(sent_at)) > FRESH_MS:
            return "the relayed reset is too old, or a clock is wrong"
        return None


class Absorber:
    """What a member was moved to by a relay, and might be told again by the broker: once, within a minute, it is no
    news. Where an operator may not read a broker's configuration, both ways are gone, and one of them comes twice."""

    def __init__(self, client: Any, seconds: float = 60.0) -> None:
        self._client = client
        self._seconds = seconds
        self._expected: dict[MessageQueue, tuple[int, float]] = {}

    def expect(self, moved: dict[MessageQueue, int]) -> None:
        until = self._client.driver.now.mono + self._seconds
        self._expected.update({queue: (offset, until) for queue, offset in moved.items()})

    def absorbs(self, queue: MessageQueue, offset: int) -> bool:
        """Whether this reset is the one that was obeyed already."""
        target, until = self._expected.pop(queue, (-1, 0.0))
        return target == offset and self._client.driver.now.mono <= until
