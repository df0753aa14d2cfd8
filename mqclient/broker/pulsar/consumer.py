"""Owns one consumer's half of the account of permits, and what it has not acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqclient.pulsar.codes import SubType

if TYPE_CHECKING:
    from mqclient.broker.pulsar.session import Session
    from mqclient.broker.pulsar.subscription import Subscription


class Consumer:
    """One consumer's half of the account of permits.

    A permit is the right to push one message. An entry is sent whole, so the account may dip below zero; messages of
    it that are acknowledged already are not charged. FLOW while blocked on unacknowledged messages is set aside.
    """

    __slots__ = (
        "aside",
        "at_end",
        "blocked",
        "consumer_id",
        "delivered",
        "epoch",
        "flows",
        "hash_ranges",
        "limit",
        "name",
        "pending",
        "permits",
        "priority",
        "read_compacted",
        "redelivered",
        "session",
        "subscription",
        "unacked",
    )

    def __init__(
        self, session: Session, subscription: Subscription, consumer_id: int, name: str, priority: int, limit: int
    ) -> None:
        self.session = session
        self.subscription = subscription
        self.consumer_id = consumer_id
        self.name = name
        self.priority = priority
        self.limit = limit
        self.epoch: int | None = None
        self.permits = 0
        self.aside = 0
        self.blocked = False
        self.unacked = 0
        self.pending: dict[int, int] = {}
        """Shared types: entry -> messages of it that were charged and are not acknowledged."""
        self.flows: list[int] = []
        """Every grant as it came: for tests, which add them up."""
        self.delivered = 0
        self.redelivered = 0
        self.at_end = False
        self.read_compacted = False
        self.hash_ranges: list[tuple[int, int]] = []
        """Key-shared, sticky: what it asked for."""

    def flow(self, permits: int) -> None:
        self.flows.append(permits)
        if self.subscription.shared and self.limit and self.unacked >= self.limit:
            self.blocked = True
        if self.blocked:
            self.aside += permits
        else:
            self.permits += permits
            self.subscription.poke()

    def charge(self, entry: int, messages: int) -> None:
        self.permits -= messages
        self.delivered += messages
        if self.subscription.shared:
            self.pending[entry] = messages
            self.unacked += messages
            self.blocked = self.blocked or bool(self.limit and self.unacked >= self.limit)

    def settle(self, entry: int, messages: int) -> None:
        """That many messages of an entry are acknowledged."""
        left = self.pending.get(entry, 0) - messages
        self.subscription.relieve(self, min(messages, self.pending.get(entry, 0)))
        if left > 0:
            self.pending[entry] = left
        else:
            self.pending.pop(entry, None)
        if self.blocked and self.unacked <= self.limit // 2:
            self.unblock()

    def unblock(self) -> None:
        self.blocked = False
        self.permits += self.aside
        self.aside = 0
        self.subscription.poke()

    def reach_end(self) -> None:
        """Nothing is left of a terminated topic, and nothing will come: told once, after the first FLOW."""
        if self.flows and not self.at_end:
            self.at_end = True
            self.session.send(27, "CommandReachedEndOfTopic", consumer_id=self.consumer_id)

    @property
    def ready(self) -> bool:
        return self.permits > 0 and not self.blocked and self.session.writable


def stats(consumer: Consumer) -> dict[str, Any]:
    """What CONSUMER_STATS_RESPONSE tells."""
    return {
        "consumerName": consumer.name,
        "availablePermits": max(0, consumer.permits),
        "unackedMessages": consumer.unacked,
        "blockedConsumerOnUnackedMsgs": consumer.blocked,
        "address": consumer.session.peer,
        "type": SubType(consumer.subscription.kind).name,
        "msgBacklog": consumer.subscription.backlog,
    }
