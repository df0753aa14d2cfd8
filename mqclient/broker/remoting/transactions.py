"""Owns transactions: half messages that nobody may read yet, their commit or rollback, the asking about silent ones.

| code | request | answered |
|---|---|---|
| 37 | END_TRANSACTION | the message gets into its topic, or the half message is marked as done |
| 39 | CHECK_TRANSACTION_STATE | pushed to a producer of the group that did not say what became of it |

A half message lies in RMQ_SYS_TRANS_HALF_TOPIC; RMQ_SYS_TRANS_OP_HALF_TOPIC names those that are done. Options:
`transactionTimeOut` and `transactionCheckInterval` (ms), `transactionCheckMax`, `rejectTransactionMessage`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any, Final

from mqclient.broker.remoting.membership import Members
from mqclient.broker.remoting.server import Ask, Handler, Refused, Reply
from mqclient.broker.remoting.state import HALF_TOPIC, OP_TOPIC, Broker, Incoming, Queue, Stored
from mqclient.rocketmq.codes import Request, Response

TRANSACTION_BITS: Final = 12
COMMIT: Final = 8
ROLLBACK: Final = 12
GIVEN_UP_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
IMMUNITY: Final = "CHECK_IMMUNITY_TIME_IN_SECONDS"
DONE_TAG: Final = "TAGS\x01d\x02"
HOUR_MS: Final = 3_600_000


def table(transactions: Transactions) -> Mapping[int, Handler]:
    return {Request.END_TRANSACTION: transactions.end}


class Transactions:
    """The half messages of one broker."""

    def __init__(self, broker: Broker, members: Members) -> None:
        self._broker = broker
        self._members = members
        self._remoting = broker.house.impl.remoting
        self._pending: dict[int, int] = {}
        """Offset of a half message that is not done to when it may be asked about, in ms."""
        self._turn = count()

    def start(self) -> None:
        """Take over the half messages of a former run, and begin to ask."""
        done = self._done()
        for offset in range(self._half.log.first, self._half.log.next):
            if offset not in done:
                self._await(offset)
        self._arm()

    def begin(self, incoming: Incoming) -> Stored:
        """Store a message whose sender has not made up its mind; the queue is told as it was asked for."""
        if self._broker.setting("rejectTransactionMessage"):
            remark = f"the broker[{self._broker.host[0]}] sending transaction message is forbidden"
            raise Refused(Response.NO_PERMISSION, remark)
        properties = self._remoting.decode_properties(incoming.properties)
        properties["REAL_TOPIC"], properties["REAL_QID"] = incoming.topic, str(incoming.queue_id)
        properties["__transactionId__"] = properties["UNIQ_KEY"]
        half = replace(
            incoming,
            topic=HALF_TOPIC,
            queue_id=0,
            properties=self._remoting.encode_properties(properties),
            sys_flag=incoming.sys_flag & ~TRANSACTION_BITS,
        )
        stored = self._broker.store(half)
        self._await(stored.offset)
        return stored._replace(queue_id=incoming.queue_id)

    def end(self, ask: Ask) -> Reply | None:
        decision = ask.number("commitOrRollback")
        if decision not in (COMMIT, ROLLBACK):
            return None  # it does not know yet: it will be asked
        message = self._named(ask, decision)
        if decision == COMMIT:
            self._broker.store(self._real(message))
        self._finish(message.offset)
        return Reply()

    @property
    def _half(self) -> Queue:
        return self._broker.topic(HALF_TOPIC).queue(0)

    def _named(self, ask: Ask, decision: int) -> Any:
        """The half message that a decision is about, after upstream's checks in upstream's order."""
        offset = self._half.find(ask.number("commitLogOffset"))
        if offset < 0:
            raise Refused(Response.SYSTEM_ERROR, "Find prepared transaction message failed")
        message = self._message(offset)
        if self._too_late(ask, message):
            word = "commit" if decision == COMMIT else "rollback"
            raise Refused(Response.ILLEGAL_OPERATION, f"Message {word} fail [producer end] due to timeout")
        if message.property("PGROUP") != ask.text("producerGroup"):
            raise Refused(Response.SYSTEM_ERROR, "The producer group wrong")
        if message.offset != ask.number("tranStateTableOffset"):
            raise Refused(Response.SYSTEM_ERROR, "The transaction state table offset wrong")
        return message

    def _too_late(self, ask: Ask, message: Any) -> bool:
        """Who asked for a time in which it is not asked has to decide in it."""
        if ask.flag("fromTransactionCheck") or not message.property(IMMUNITY):
            return False
        return bool(self._broker.house.clock.wall_ms() > self._due(message))

    def _real(self, message: Any) -> Incoming:
        """What the topic gets. TRAN_MSG stays, as with upstream: by it consumers know that it has a transaction id."""
        real = self._homeward(message)
        real.sys_flag = message.sys_flag & ~TRANSACTION_BITS | COMMIT
        real.prepared_transaction_offset = message.physical_offset
        return real

    # ---- asking

    def _arm(self) -> None:
        interval = max(1, self._broker.number("transactionCheckInterval")) / 1000
        self._broker.house.clock.after(interval, self._round)

    def _round(self) -> None:
        now = self._broker.house.clock.wall_ms()
        for offset, due in list(self._pending.items()):
            if due < now:
                self._check(self._message(offset), now)
        self._arm()

    def _check(self, message: Any, now: int) -> None:
        """Ask once more, under a new place in the half topic; or give up."""
        self._finish(message.offset)
        times = int(message.property("TRANSACTION_CHECK_TIMES", "0"))
        too_old = now - message.born_at > self._broker.number("fileReservedTime") * HOUR_MS
        if times >= self._broker.number("transactionCheckMax") or too_old:
            topic = self._broker.make_topic(GIVEN_UP_TOPIC, 1)
            self._broker.store(Incoming.again(message, topic.name, 0, message.properties_text))
            return
        properties = {**message.properties, "TRANSACTION_CHECK_TIMES": str(times + 1)}
        again = Incoming.again(message, HALF_TOPIC, 0, self._remoting.encode_properties(properties))
        message = self._message(self._broker.store(again).offset)
        self._await(message.offset)
        self._push(message)

    def _push(self, message: Any) -> None:
        producers = list(self._members.producers.get(message.property("PGROUP", ""), ()))
        if not producers:
            return
        unique = message.property("UNIQ_KEY", "")
        fields = {
            "bname": self._broker.name,
            "commitLogOffset": str(message.physical_offset),
            "msgId": unique,
            "offsetMsgId": message.offset_id,
            "topic": HALF_TOPIC,
            "tranStateTableOffset": str(message.offset),
            "transactionId": unique,
        }
        peer = producers[next(self._turn) % len(producers)]
        peer.push(Request.CHECK_TRANSACTION_STATE, fields, self._shown(message))

    def _shown(self, message: Any) -> bytes:
        """The message as its producer knows it: with its own topic and queue."""
        real = self._homeward(message, REAL_TOPIC=message.property("REAL_TOPIC"), REAL_QID=message.property("REAL_QID"))
        return self._broker.encode(real, message.offset, message.physical_offset, message.stored_at)

    # ---- what is kept

    def _await(self, offset: int) -> None:
        self._pending[offset] = self._due(self._message(offset))

    def _due(self, message: Any) -> int:
        """When it may be asked about; until then who asked for such a time may decide unasked."""
        timeout = self._broker.number("transactionTimeOut")
        try:
            seconds = int(message.property(IMMUNITY, "-1"))
        except ValueError:
            seconds = -1
        born: int = message.born_at
        return born + (timeout if seconds == -1 else seconds * 1000)

    def _finish(self, offset: int) -> None:
        self._pending.pop(offset, None)
        self._broker.store(Incoming(OP_TOPIC, 0, f"{offset},".encode(), DONE_TAG.encode(), born_host=self._broker.host))

    def _done(self) -> set[int]:
        log = self._broker.topic(OP_TOPIC).queue(0).log
        bodies = (self._remoting.decode_messages(log.record(at))[0].body for at in range(log.first, log.next))
        return {int(text) for body in bodies for text in body.split(b",") if text}

    def _message(self, offset: int) -> Any:
        return self._remoting.decode_messages(self._half.log.record(offset))[0]

    def _homeward(self, message: Any, **more: str) -> Incoming:
        properties = dict(message.properties)
        topic, queue_id = properties.pop("REAL_TOPIC"), int(properties.pop("REAL_QID"))
        return Incoming.again(message, topic, queue_id, self._remoting.encode_properties({**properties, **more}))
