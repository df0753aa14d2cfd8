"""One consumer's half of the account, alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mqclient.broker.pulsar.consumer import Consumer, stats


def made(kind: int = 1, limit: int = 4) -> tuple[Consumer, list[Any]]:
    said: list[Any] = []
    subscription: Any = SimpleNamespace(shared=kind in (1, 3), kind=kind, backlog=7, poke=lambda: said.append("poke"))

    def relieve(consumer: Consumer, messages: int) -> None:
        consumer.unacked -= messages

    subscription.relieve = relieve
    session: Any = SimpleNamespace(writable=True, peer="here:1", send=lambda *given, **fields: said.append(given))
    return Consumer(session, subscription, 3, "c", 0, limit), said


def test_the_account() -> None:
    consumer, said = made()
    consumer.flow(3)
    consumer.charge(0, 5)
    assert (consumer.permits, consumer.unacked, consumer.blocked, consumer.ready) == (-2, 5, True, False)
    consumer.flow(10)
    assert (consumer.permits, consumer.aside) == (-2, 10)
    consumer.settle(0, 2)
    assert (consumer.pending, consumer.blocked) == ({0: 3}, True)
    consumer.settle(0, 1)
    assert (consumer.permits, consumer.aside, consumer.blocked) == (8, 0, False)
    consumer.settle(9, 1)
    assert (consumer.unacked, consumer.flows, "poke" in said) == (2, [3, 10], True)


def test_flow_while_too_much_is_unacknowledged() -> None:
    consumer, _ = made(limit=2)
    consumer.unacked = 2
    consumer.flow(1)
    assert (consumer.blocked, consumer.aside) == (True, 1)


def test_one_active_consumer_owes_nothing() -> None:
    consumer, _ = made(kind=0)
    consumer.charge(0, 9)
    assert (consumer.pending, consumer.unacked, consumer.blocked) == ({}, 0, False)


def test_the_end_is_told_once_after_flow() -> None:
    consumer, said = made(kind=0)
    consumer.reach_end()
    assert said == []
    consumer.flow(1)
    said.clear()
    consumer.reach_end()
    consumer.reach_end()
    assert [given[1] for given in said] == ["CommandReachedEndOfTopic"]


def test_stats() -> None:
    consumer, _ = made()
    consumer.flow(3)
    told = stats(consumer)
    assert (told["availablePermits"], told["type"], told["msgBacklog"]) == (3, "Shared", 7)
