"""Owns what consumers say about popped messages: that they are done, or that they need them for longer.

| code | request | answered |
|---|---|---|
| 200051 | ACK_MESSAGE | also if it came too late: then the message comes again all the same |
| 200053 | CHANGE_MESSAGE_INVISIBLETIME | what the new handle is made of |
| 200151 | BATCH_ACK_MESSAGE | each by the start offset and a bit per message |
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mqclient.broker.remoting.pop import NOT_SET
from mqclient.broker.remoting.popped import ORDERED_QUEUE, Handle, Key, PoppedQueues, retry_topic
from mqclient.broker.remoting.server import Ask, Handler, Refused, Reply
from mqclient.broker.remoting.state import Broker
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.remoting.bodies import read_body

UNCHANGED: Final = {"invisibleTime": "0", "popTime": "0", "reviveQid": "0"}


def table(acks: PopAcks) -> Mapping[int, Handler]:
    return {
        Request.ACK_MESSAGE: acks.ack,
        Request.CHANGE_MESSAGE_INVISIBLETIME: acks.change,
        Request.BATCH_ACK_MESSAGE: acks.batch,
    }


class PopAcks:
    """Ends or prolongs the time for which messages are out."""

    def __init__(self, broker: Broker, popped: PoppedQueues) -> None:
        self._broker = broker
        self._popped = popped

    def ack(self, ask: Ask) -> Reply:
        key, offset = self._place(ask)
        handle = Handle.read(ask.text("extraInfo"))
        self._ack(key, offset, handle.pop_time, handle.revive_queue)
        return Reply()

    def batch(self, ask: Ask) -> Reply:
        for entry in read_body(ask.body).get("acks") or ():
            group, topic = str(entry["c"]), str(entry["t"])
            name = topic if str(entry["r"]) == "0" else retry_topic(group, topic)
            if name in self._broker.topics:
                for offset in _offsets(entry):
                    self._ack((group, name, int(entry["q"])), offset, int(entry["pt"]), int(entry["rq"]))
        return Reply()

    def change(self, ask: Ask) -> Reply:
        """A new time of invisibility, from now on; the old handle is worth nothing then."""
        try:
            key, offset = self._place(ask)
        except Refused as refused:
            remark = NOT_SET if refused.reply.code == Response.NO_MESSAGE else refused.reply.remark
            refused.reply = refused.reply._replace(remark=remark, fields=UNCHANGED)
            raise
        handle = Handle.read(ask.text("extraInfo"))
        # Later than the pop in any case: by its time the old handle, and the alarm that goes with it, are told apart.
        now = max(self._broker.house.clock.wall_ms(), handle.pop_time + 1)
        invisible, pop_time = ask.number("invisibleTime"), now
        if handle.revive_queue == ORDERED_QUEUE:
            self._popped.change_batch(key, offset, handle.pop_time, now + invisible)
            invisible, pop_time = now + invisible - handle.pop_time, handle.pop_time
        else:
            self._popped.change(key, offset, handle.pop_time, now, invisible)
        fields = {"invisibleTime": str(invisible), "popTime": str(pop_time), "reviveQid": str(handle.revive_queue)}
        return Reply(remark=NOT_SET, fields=fields)

    def _ack(self, key: Key, offset: int, pop_time: int, revive_queue: int) -> None:
        acknowledge = self._popped.ack_batch if revive_queue == ORDERED_QUEUE else self._popped.ack
        acknowledge(key, offset, pop_time)

    def _place(self, ask: Ask) -> tuple[Key, int]:
        topic = self._broker.topic(ask.text("topic"))
        queue_id, offset = ask.number("queueId"), ask.number("offset")
        if not 0 <= queue_id < topic.read_queues:
            remark = f"queueId[{queue_id}] is illegal, topic:[{topic.name}] topicConfig.readQueueNums:"
            remark += f"[{topic.read_queues}] consumer:[/{ask.peer.address}]"
            raise Refused(Response.MESSAGE_ILLEGAL, remark)
        log = topic.queue(queue_id).log
        if not log.first <= offset <= log.next:
            remark = f"offset is illegal, key:{topic.name}@{queue_id}, commit:{offset}, store:{log.first}~{log.next}"
            raise Refused(Response.NO_MESSAGE, remark)
        return (ask.text("consumerGroup"), topic.name, queue_id), offset


def _offsets(entry: Mapping[str, Any]) -> Iterator[int]:
    """The bit set counts from the start offset, the lowest bit of the first byte first."""
    for index, byte in enumerate(b64decode(entry["b"])):
        for bit in range(8):
            if byte >> bit & 1:
                yield int(entry["so"]) + 8 * index + bit
