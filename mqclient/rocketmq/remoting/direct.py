"""Owns the message that an operator has us consume directly (309): the handler gets it, the operator the outcome."""

from __future__ import annotations

from typing import Any

from mqclient.core.compress import decompressor
from mqclient.core.slot import Slot
from mqclient.core.steps import Steps
from mqclient.errors import ConfigError
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.bodies import write_body
from mqclient.rocketmq.remoting.pull import COMPRESSION

DECOMPRESS = decompressor(COMPRESSION)


def consume_directly_steps(client: Any, member: Any, frame: Any) -> Steps[bytes]:
    """The answer's body. It moves no offset and sends nothing back."""
    handler = getattr(member.taker, "handler", None)
    if handler is None:
        raise ConfigError(f"the consumer of group {member.group!r} has no handler")
    broker_name = frame.field("brokerName", "")
    batch = client.impl.remoting.decode_messages(frame.body, decompress=DECOMPRESS, retry_topic=True)
    if not len(batch):
        raise ConfigError("a message to be consumed is missing")
    queue = MessageQueue(batch[0].topic, broker_name, batch[0].queue_id)
    batch = client.impl.remoting.decode_messages(frame.body, decompress=DECOMPRESS, retry_topic=True, queue=queue)
    began = client.driver.now.mono
    error = yield called(client, handler, batch)
    result = {
        "autoCommit": True,
        "consumeResult": "CR_SUCCESS" if error is None else "CR_THROW_EXCEPTION",
        "order": member.orderly,
        "remark": "" if error is None else repr(error),
        "spentTimeMills": int((client.driver.now.mono - began) * 1000),
    }
    return write_body(result)


def called(client: Any, handler: Any, batch: Any) -> Slot[BaseException | None]:
    """Call the handler where user code runs; the slot gets what it raised, None if nothing."""
    slot: Slot[BaseException | None] = Slot()

    def job(_: None) -> Any:
        try:
            outcome = handler(batch)
        except Exception as error:
            return tell(error)
        return finish(outcome) if hasattr(outcome, "__await__") else tell(None)

    async def finish(outcome: Any) -> None:
        try:
            await outcome
        except Exception as error:
            tell(error)
        else:
            tell(None)

    def tell(error: BaseException | None) -> None:
        with client.driver.enter():
            slot.complete(error)

    client.driver.run_user(job, None)
    return slot
