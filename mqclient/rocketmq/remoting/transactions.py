"""Owns transactions: half messages, how each ended, and the broker's questions about those that did not."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, NamedTuple

from mqclient.core.link import Link
from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, run_steps
from mqclient.core.workers import Workers
from mqclient.errors import ConfigError, ProtocolError
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import Message, MessageQueue, NotSafeError, Receipt, TransactionState
from mqclient.rocketmq.remoting.announcing import Announcer
from mqclient.rocketmq.remoting.client import ClientEngine
from mqclient.rocketmq.remoting.outgoing import HALF, Prepared, Stored
from mqclient.rocketmq.remoting.producer import ProducerEngine
from mqclient.rocketmq.remoting.producer_options import ProducerOptions
from mqclient.rocketmq.remoting.pull import DECOMPRESS
from mqclient.rocketmq.remoting.sending import Sending

LOG = logging.getLogger("mqclient.remoting")

WIRE: Final = {TransactionState.UNKNOWN: 0, TransactionState.COMMIT: 8, TransactionState.ROLLBACK: 12}
MAX_CHECKS: Final = 2000
"""Questions that wait for a check thread; the broker asks again about those beyond."""
Check = Callable[[Any], Any]


class Question(NamedTuple):
    """A half message whose end the broker does not know, and where the answer goes."""

    address: str
    fields: dict[str, str]
    message: Any


class TransactionEngine:
    """The transactions of one producer. `check(message)` is user code and gives a TransactionState, or raises."""

    def __init__(self, producer: ProducerEngine, check: Check, threads: int) -> None:
        self.producer = producer
        self.counts = {"committed": 0, "rolled_back": 0, "unknown": 0, "checked": 0, "dropped": 0}
        self._client = producer.client
        self._announcer = Announcer(producer.client)
        self._checks: Workers[Question] = Workers(
            producer.client.driver, lambda one: check(one.message), self._answer, threads
        )
        producer.checker = self

    @classmethod
    def of(
        cls, client: ClientEngine, group: str, options: ProducerOptions, check: Check, threads: int
    ) -> TransactionEngine:
        """With a producer of its own."""
        if not callable(check):
            raise ConfigError("check= is asked by brokers what became of a transaction: give a function of the message")
        if threads < 1:
            raise ConfigError(f"check_threads={threads}: at least one is needed")
        return cls(ProducerEngine(client, group, options), check, threads)

    # ---- outside of any entry

    def prepare(self, message: Message, key: str | None = None) -> Prepared:
        """A half message: nobody may read it until its transaction is committed."""
        if message.timing is not None:
            raise ConfigError("a transaction's message cannot be delayed: it is delivered when it is committed")
        engine = self.producer
        message_id = engine.client.keys.next(engine.client.driver.now.wall_ms)
        prepared = engine.preparer.one(message, message_id, key, TRAN_MSG="true", PGROUP=engine.group)
        return prepared._replace(sys_flag=prepared.sys_flag | HALF, alone=True)

    # ---- inside

    def begin(self, prepared: Prepared, deadline: float | None, queue: MessageQueue | None = None) -> Slot[Receipt]:
        """Send the half message. Stored with less safety it is rolled back, and that is an error."""
        self.producer.check_open()
        return run_steps(self._begin_steps(prepared, self.producer.deadline(deadline), queue))

    def end(self, receipt: Receipt, state: TransactionState, remark: str | None = None) -> None:
        """Tell how it ended; nobody answers: if it gets lost, the broker asks."""
        self._count(state)
        fields = {
            "topic": receipt.topic,
            "tranStateTableOffset": str(receipt.offset),
            "commitLogOffset": str(self._client.impl.remoting.parse_offset_id(receipt.offset_id)[2]),
            "msgId": receipt.message_id,
            "transactionId": receipt.transaction_id or receipt.message_id,
            "bname": receipt.queue.broker_name,
        }
        self._tell(self._client.broker_address(receipt.queue.broker_name), fields, state, remark)

    def on_check(self, link: Link, frame: Any) -> None:
        """39: the broker wants to know what became of a half message."""
        batch = self._client.impl.remoting.decode_messages(frame.body, decompress=DECOMPRESS)
        if len(batch) != 1:
            raise ProtocolError(f"a check of {len(batch)} messages: one is asked about at a time")
        if self._checks.waiting >= MAX_CHECKS:
            self.counts["dropped"] += 1
            LOG.warning(
                "producer:%s has %d unanswered transaction checks: one dropped", self.producer.group, MAX_CHECKS
            )
            return
        message = batch[0]
        fields = {name: frame.field(name, "") for name in ("tranStateTableOffset", "commitLogOffset", "bname")}
        fields["topic"] = message.topic
        fields["msgId"] = message.message_id
        fields["transactionId"] = frame.field("transactionId") or message.message_id
        fields["fromTransactionCheck"] = "true"
        self._checks.submit(Question(str(link.address), fields, message))

    def close_steps(self) -> Steps[None]:
        """Questions that wait are the broker's to ask again; answers under way are let end."""
        self._checks.clear()
        if self._checks.running and not self._client.closed:
            idle = self._checks.idle()
            self._client.timers.after(self.producer.options.send_timeout, lambda _: idle.complete(None))
            yield idle

    def _begin_steps(self, prepared: Prepared, deadline: float, queue: MessageQueue | None) -> Steps[Receipt]:
        client = self._client
        route = client.routes.get(prepared.topic)
        if route is None or not route.writable:
            route = yield client.routes.publish(prepared.topic)
        brokers = sorted({one.broker_name for one in route.writable})
        yield from self._announcer.tell_steps([client.broker_address(name) for name in brokers])
        stored: Stored = yield Sending(self.producer, prepared, deadline, queue).start()
        receipt: Receipt = stored[0]
        if receipt.status != "SEND_OK":
            if receipt.offset_id:  # else the broker will ask, for it did not say where the message lies
                self.end(receipt, TransactionState.ROLLBACK)
            raise NotSafeError(receipt)
        return receipt

    def _answer(self, question: Question, outcome: Any, error: BaseException | None) -> None:
        if self._client.closed:
            return
        state, remark = TransactionState.UNKNOWN, None
        if error is None and isinstance(outcome, TransactionState):
            state = outcome
        elif error is None:
            remark = f"checkLocalTransactionState gave {type(outcome).__name__}, no TransactionState"
        else:
            remark = f"checkLocalTransactionState Exception: {error!r}"
        if remark is not None:
            LOG.error("producer:%s transaction %s: %s", self.producer.group, question.fields["msgId"], remark)
        self.counts["checked"] += 1
        self._count(state)
        self._tell(question.address, question.fields, state, remark)

    def _count(self, state: TransactionState) -> None:
        self.counts[{"commit": "committed", "rollback": "rolled_back", "unknown": "unknown"}[state.value]] += 1

    def _tell(self, address: str, fields: dict[str, str], state: TransactionState, remark: str | None) -> None:
        told = {**fields, "producerGroup": self.producer.group, "commitOrRollback": str(WIRE[state])}
        told.setdefault("fromTransactionCheck", "false")
        self._client.tell(address, Request.END_TRANSACTION, told, remark=remark)


class Deciding:
    """Around a local transaction: ends as its outcome says; if it raises, or gives no state, the end is unknown."""

    def __init__(self, end: Callable[[TransactionState, str | None], None]) -> None:
        self._end = end
        self.outcome: Any = None

    def __enter__(self) -> Deciding:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and isinstance(self.outcome, TransactionState):
            self._end(self.outcome, None)
            return
        wrong = error or TypeError(f"the local transaction gave {self.outcome!r}: a TransactionState is wanted")
        self._end(TransactionState.UNKNOWN, f"executeLocalTransactionBranch exception: {wrong!r}")
        if error is None:
            raise wrong
