"""Transactions and their coordinators.

| command | answer |
|---|---|
| TC_CLIENT_CONNECT_REQUEST | TC_CLIENT_CONNECT_RESPONSE; TransactionCoordinatorNotFound |
| NEW_TXN | its id: coordinator and number |
| ADD_PARTITION_TO_TXN, ADD_SUBSCRIPTION_TO_TXN | its id; TransactionNotFound, TopicNotFound, SubscriptionNotFound |
| END_TXN | its id, when everything is decided; TransactionNotFound |

One that has not ended in its time is aborted. SEND and ACK name only what was added before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mqclient.broker.pulsar.refused import Refused
from mqclient.broker.pulsar.txn_buffer import Txn, end_on_topic
from mqclient.broker.watched import Watched
from mqclient.pulsar.codes import ServerError

if TYPE_CHECKING:
    from mqclient.broker.broker import House
    from mqclient.broker.control import Alarm
    from mqclient.broker.pulsar.session import Session
    from mqclient.broker.pulsar.topics import Topics

COORDINATORS = 1
ASSIGN = "persistent://pulsar/system/transaction_coordinator_assign"
"""The topic by whose partitions clients find coordinators."""
COMMIT = 0
MOST = 10_000
"""Transactions that may be open at one coordinator."""


@dataclass(slots=True)
class Transaction:
    """One that is open: the topics it sends to, the subscriptions it acknowledges on."""

    ends_at: int
    """Wall time (ms) at which it is aborted."""
    topics: set[str] = field(default_factory=set)
    subscriptions: set[tuple[str, str]] = field(default_factory=set)
    alarm: Alarm | None = None


class Transactions:
    """All that are open."""

    def __init__(self, house: House, topics: Topics) -> None:
        self._house = house
        self._topics = topics
        self.open: Watched[Txn, Transaction] = Watched()
        self.begun: Watched[int, int] = Watched()
        """How many each coordinator has begun: the next one's number."""

    def resume(self) -> None:
        """Those of a former run have the rest of their time."""
        for txn in self.open:
            self._watch(txn)

    def coordinator(self, number: int) -> None:
        if not (self._topics.policies.setting("transactionCoordinatorEnabled", True) and number < COORDINATORS):
            text = f"Transaction coordinator with id {number} not found"
            raise Refused(ServerError.TransactionCoordinatorNotFound, text)

    def begin(self, number: int, ttl_ms: int) -> Txn:
        self.coordinator(number)
        if len(self.open) >= MOST:
            raise Refused(ServerError.TooManyRequests, f"{MOST} transactions are open")
        txn = number, self.begun.get(number, 0)
        self.begun[number] = txn[1] + 1
        self.open[txn] = Transaction(self._house.clock.wall_ms() + min(max(ttl_ms, 1), 2**40))
        self._watch(txn)
        return txn

    def _watch(self, txn: Txn) -> None:
        transaction, clock = self.open[txn], self._house.clock
        seconds = max(0, transaction.ends_at - clock.wall_ms()) / 1000
        transaction.alarm = clock.after(seconds, lambda: self.end(txn, commit=False))

    def get(self, txn: Txn) -> Transaction:
        found = self.open.get(txn)
        if found is None:
            raise Refused(ServerError.TransactionNotFound, f"The transaction {txn} is not found: it may have ended")
        return found

    def end(self, txn: Txn, *, commit: bool) -> None:
        """Decide what it sent and acknowledged, everywhere, in this turn."""
        transaction = self.get(txn)
        del self.open[txn]
        if transaction.alarm is not None:
            transaction.alarm.cancel()
        for name in sorted(transaction.topics):
            topic = self._topics.get(name)
            if topic is not None:
                end_on_topic(topic, txn, commit, self._house.impl, self._house.clock.wall_ms())
        for name, subscription_name in sorted(transaction.subscriptions):
            topic = self._topics.get(name)
            subscription = None if topic is None else topic.subscriptions.get(subscription_name)
            if subscription is not None:
                subscription.end_txn(txn, commit)


def _answer(session: Session, kind: int, name: str, request: Any, txn: Txn | None, refused: Refused | None) -> None:
    fields: dict[str, Any] = {}
    if txn is not None:
        fields |= {"txnid_most_bits": txn[0], "txnid_least_bits": txn[1]}
    if refused is not None:
        fields |= {"error": refused.code, "message": str(refused)}
    session.send(kind, name, request_id=request.request_id, **fields)


def on_connect(session: Session, request: Any) -> None:
    refused = None
    try:
        session.topics.transactions.coordinator(request.tc_id)
    except Refused as error:
        refused = error
    _answer(session, 63, "CommandTcClientConnectResponse", request, None, refused)


def on_new(session: Session, request: Any) -> None:
    txn, refused = None, None
    try:
        txn = session.topics.transactions.begin(request.tc_id, request.txn_ttl_millis)
    except Refused as error:
        refused = error
    _answer(session, 51, "CommandNewTxnResponse", request, txn, refused)


def on_add_partition(session: Session, request: Any) -> None:
    txn, refused = (request.txnid_most_bits, request.txnid_least_bits), None
    try:
        transaction = session.topics.transactions.get(txn)
        transaction.topics.update(session.topics.admit(name).text for name in request.partitions)
        session.topics.transactions.open.touch(txn)
    except Refused as error:
        refused = error
    _answer(session, 53, "CommandAddPartitionToTxnResponse", request, txn, refused)


def on_add_subscription(session: Session, request: Any) -> None:
    txn, refused = (request.txnid_most_bits, request.txnid_least_bits), None
    try:
        transaction = session.topics.transactions.get(txn)
        for wanted in request.subscription:
            topic = session.topics.admit(wanted.topic, create=False)
            if wanted.subscription not in topic.subscriptions:
                text = f"{topic.text} has no subscription {wanted.subscription}"
                raise Refused(ServerError.SubscriptionNotFound, text)
            transaction.subscriptions.add((topic.text, wanted.subscription))
        session.topics.transactions.open.touch(txn)
    except Refused as error:
        refused = error
    _answer(session, 55, "CommandAddSubscriptionToTxnResponse", request, txn, refused)


def on_end(session: Session, request: Any) -> None:
    txn, refused = (request.txnid_most_bits, request.txnid_least_bits), None
    try:
        session.topics.transactions.end(txn, commit=request.txn_action == COMMIT)
    except Refused as error:
        refused = error
    _answer(session, 57, "CommandEndTxnResponse", request, txn, refused)


HANDLERS = {62: on_connect, 50: on_new, 52: on_add_partition, 54: on_add_subscription, 56: on_end}
