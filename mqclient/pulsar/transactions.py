"""Owns transactions: their coordinators, what was made known of each, what is still under way in it, and its end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

from mqclient.core.slot import Slot, completed, failed
from mqclient.core.steps import Steps, run_steps
from mqclient.errors import ConfigError, MQError, TransactionError
from mqclient.pulsar import requests
from mqclient.pulsar.codes import ServerError, TxnAction
from mqclient.pulsar.names import TopicName
from mqclient.pulsar.patience import partitions_steps, patiently_steps

if TYPE_CHECKING:
    from mqclient.pulsar.client import ClientEngine
    from mqclient.pulsar.connection import Connection

ASSIGN = TopicName("persistent", "pulsar", "system", "transaction_coordinator_assign")
"""The topic by whose partitions coordinators are found."""
GONE = frozenset((ServerError.TransactionNotFound, ServerError.InvalidTxnStatus))

log = logging.getLogger("mqclient.pulsar")


class Coordinators:
    """A client's: found when the first transaction begins, taken in turn, said hello to on each new connection."""

    def __init__(self, client: ClientEngine) -> None:
        self._client = client
        self._turn = count(client.random.randrange(1 << 16))
        self._count = 0
        self._known: dict[int, Connection] = {}

    def begin_steps(self, seconds: float, deadline: float) -> Steps[Transaction]:
        if not self._count:
            self._count = yield run_steps(partitions_steps(self._client, ASSIGN, deadline))
            if not self._count:
                raise ConfigError(
                    f"{self._client.url.text} has no transaction coordinators: brokers need "
                    "transactionCoordinatorEnabled=true and systemTopicEnabled=true"
                )
        number = next(self._turn) % self._count
        reply = yield run_steps(self.ask_steps(number, requests.new_txn(number, round(seconds * 1000)), deadline))
        return Transaction(self._client, (reply.txnid_most_bits, reply.txnid_least_bits), seconds)

    def ask_steps(self, number: int, command: requests.Command, deadline: float) -> Steps[Any]:
        """The coordinator's answer; asked again if the connection is lost, or another broker has it now."""
        reply = yield run_steps(
            patiently_steps(self._client, lambda: self._try_steps(number, command, deadline), deadline)
        )
        return reply

    def _try_steps(self, number: int, command: requests.Command, deadline: float) -> Steps[Any]:
        connection = self._known.get(number)
        if connection is None or not connection.ready:
            found: Any = yield run_steps(self._client.lookup_steps(ASSIGN.partitioned(number), deadline))
            yield found.request(requests.tc_connect(number), deadline)
            connection = self._known[number] = found
        try:
            reply = yield connection.request(command, deadline)
        except MQError as error:
            if error.refresh_route:
                self._known.pop(number, None)
            raise
        return reply


class Transaction:
    """One transaction. Inside entries only.

    `began` and `ended` bracket each thing that is done in it: its end waits for all of them, and one that failed makes
    a commit impossible.
    """

    __slots__ = ("_client", "_enlisted", "_expiry", "_failure", "_idle", "_on_abort", "_running", "id", "state")

    def __init__(self, client: ClientEngine, txn: tuple[int, int], seconds: float) -> None:
        self._client = client
        self.id = txn
        self.state = "open"  # then committing or aborting, then committed, aborted, or unknown; or expired
        self._enlisted: dict[tuple[str, str | None], Slot[None]] = {}
        """Topics that are sent to, and subscriptions that are acknowledged on."""
        self._running = 0
        self._idle: list[Slot[None]] = []
        self._failure: MQError | None = None
        self._on_abort: dict[Callable[[], None], None] = {}
        self._expiry = client.timers.after(seconds, self._on_expiry)

    def __str__(self) -> str:
        return f"transaction {self.id[0]}:{self.id[1]}"

    def check(self, client: ClientEngine) -> None:
        """Whether something can be done in it, by this client."""
        if client is not self._client:
            raise ConfigError(f"{self} is of another client: the one that began it sends and acknowledges in it")
        if self.state != "open":
            raise TransactionError(f"{self} has ended: {self.state}")

    def enlisted(self, topic: str, subscription: str | None = None) -> bool:
        slot = self._enlisted.get((topic, subscription))
        return slot is not None and slot.done and slot.error is None

    def enlist(self, topic: str, subscription: str | None = None) -> Slot[None]:
        """Make known that it sends to a topic, or acknowledges on its subscription; once each."""
        slot = self._enlisted.get((topic, subscription))
        if slot is None:
            if subscription is None:
                command = requests.add_partition_to_txn(self.id, topic)
            else:
                command = requests.add_subscription_to_txn(self.id, topic, subscription)
            slot = self._enlisted[topic, subscription] = run_steps(self._ask_steps(command))
        return slot

    def began(self) -> None:
        self._running += 1

    def ended(self, error: BaseException | None) -> None:
        if error is not None and self._failure is None:
            self._failure = error if isinstance(error, MQError) else MQError(repr(error))
        self._running -= 1
        if not self._running:
            idle, self._idle = self._idle, []
            for slot in idle:
                slot.complete(None)

    def on_abort(self, call: Callable[[], None]) -> None:
        """Told when it was aborted; once, however often it was asked for."""
        self._on_abort[call] = None

    def commit_steps(self) -> Steps[None]:
        """All of it takes effect; if something in it failed, it is aborted instead, and that is an error."""
        self.check(self._client)
        self.state = "committing"
        yield self._when_idle()
        if self._failure is not None:
            failure = self._failure
            yield run_steps(self._end_steps(TxnAction.ABORT, "aborted"))
            raise TransactionError(f"{self} was aborted, for something in it failed: {failure}") from failure
        yield run_steps(self._end_steps(TxnAction.COMMIT, "committed"))

    def abort_steps(self) -> Steps[None]:
        """Nothing of it takes effect: what it sent is never seen, what it acknowledged comes again."""
        self.check(self._client)
        self.state = "aborting"
        yield self._when_idle()
        yield run_steps(self._end_steps(TxnAction.ABORT, "aborted"))

    def _when_idle(self) -> Slot[None]:
        if not self._running:
            return completed(None)
        slot: Slot[None] = Slot()
        self._idle.append(slot)
        return slot

    def _end_steps(self, action: TxnAction, state: str) -> Steps[None]:
        try:
            yield run_steps(self._ask_steps(requests.end_txn(self.id, action)))
        except MQError as error:
            self.state = "unknown"
            if error.code in GONE:
                text = f"{self} is not known any more: it may have been decided by an earlier try, or its time was over"
                raise TransactionError(text).about(outcome_unknown=True) from error
            raise error.about(outcome_unknown=True) from None
        finally:
            self._expiry.cancel()
            if action == TxnAction.ABORT:
                self._undo()
        self.state = state

    def _ask_steps(self, command: requests.Command) -> Steps[None]:
        yield run_steps(self._client.coordinators.ask_steps(self.id[0], command, self._client.deadline()))

    def _on_expiry(self, now: Any) -> None:
        """The coordinator aborts it at this time; what it acknowledged comes again."""
        if self.state == "open":
            self.state = "expired"
            self._undo()

    def _undo(self) -> None:
        for call in self._on_abort:
            call()


def begin(client: ClientEngine, seconds: float, deadline: float | None) -> Slot[Transaction]:
    """A new transaction, which is aborted if it has not ended after so many seconds."""
    if seconds <= 0:
        return failed(ConfigError(f"ttl={seconds}: a transaction lasts some seconds"))
    return run_steps(client.coordinators.begin_steps(seconds, client.deadline() if deadline is None else deadline))


def commit(transaction: Transaction) -> Slot[None]:
    return run_steps(transaction.commit_steps())


def leave(transaction: Transaction, error: BaseException | None) -> Slot[None]:
    """The end of a `with`: committed, or aborted for the error, unless it has ended inside."""
    return run_steps(_leave_steps(transaction, error))


def _leave_steps(transaction: Transaction, error: BaseException | None) -> Steps[None]:
    if error is None and transaction.state not in ("committed", "aborted"):
        yield run_steps(transaction.commit_steps())
    elif error is not None and transaction.state == "open":
        try:
            yield run_steps(transaction.abort_steps())
        except MQError as failure:  # the error that led here says more; the coordinator aborts it in time
            log.warning("%s was not aborted: %s", transaction, failure)


def abort(transaction: Transaction) -> Slot[None]:
    return run_steps(transaction.abort_steps())
