"""The own share of 10,000 queues among 1,000 members, per call."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import md5
from itertools import count
from typing import Any, NamedTuple

import pytest

from benchmarks.support import Compare, Contender, twins

native, pure = twins("allocation")


class Queue(NamedTuple):
    topic: str
    broker_name: str
    queue_id: int


BROKERS = [f"broker-{number:03}" for number in range(100)]
QUEUES = [Queue("orders-of-the-day", broker, number) for broker in BROKERS for number in range(100)]
MEMBERS = sorted(
    f"10.0.{number // 250}.{number % 250}@{4000 + number}#12345678901{number:03}" for number in range(1000)
)
OWN = MEMBERS[333]


def sharing(module: Any, rule: str, **options: Any) -> Callable[[], object]:
    return lambda: module.allocate(rule, OWN, QUEUES, MEMBERS, **options)


def copied_members() -> object:
    """The floor: what looking at each member once costs in C."""
    return list(MEMBERS)


@pytest.mark.parametrize("rule", ["averagely", "averagely_by_circle"])
def bench_seen_before(compare: Compare, rule: str) -> None:
    compare(
        f"allocation.{rule}",
        per=1,
        native=sharing(native, rule),
        pure=sharing(pure, rule),
        floor=copied_members,
        asked="<= 3 us",
    )


def first_time(module: Any) -> Contender:
    """A list that was never seen: its first id is new."""
    numbers = count()
    rest = MEMBERS[1:]
    return Contender(
        lambda members: module.allocate("averagely", OWN, QUEUES, members), lambda: ([f"a{next(numbers)}", *rest],)
    )


def bench_first_time(compare: Compare) -> None:
    compare(
        "allocation.averagely_first",
        per=1,
        native=first_time(native),
        pure=first_time(pure),
        floor=copied_members,
        asked="<= 40 us",
    )


def hashlib_alone() -> Callable[[], None]:
    """The floor of whoever has hashlib and the texts at hand."""
    texts = [
        f"MessageQueue [topic={q.topic}, brokerName={q.broker_name}, queueId={q.queue_id}]".encode() for q in QUEUES
    ]

    def run() -> None:
        for text in texts:
            md5(text)

    return run


@pytest.mark.parametrize("rule", ["consistent_hash", "rendezvous"])
def bench_hashed(compare: Compare, rule: str) -> None:
    compare(
        f"allocation.{rule}",
        per=1,
        native=sharing(native, rule),
        pure=sharing(pure, rule),
        hashlib=hashlib_alone(),
        asked="<= 0.7 ms, >= 6 x pure" if rule == "consistent_hash" else "",
    )


def bench_sticky(compare: Compare) -> None:
    current = {own: pure.allocate("averagely", own, QUEUES, MEMBERS) for own in MEMBERS[1:]}
    compare(
        "allocation.sticky",
        per=1,
        native=sharing(native, "sticky", current=current),
        pure=sharing(pure, "sticky", current=current),
    )


def bench_repeated(compare: Compare) -> None:
    compare(
        "allocation.repeated",
        per=1,
        native=lambda: native.repeated(MEMBERS),
        pure=lambda: pure.repeated(MEMBERS),
    )
