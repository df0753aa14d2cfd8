"""Delays between tries."""

from __future__ import annotations

from random import Random

from mqclient.core.backoff import Backoff


def test_delays_grow_to_the_limit_and_start_again_after_a_success() -> None:
    backoff = Backoff(0.1, 1.0, jitter=0.0)
    assert [round(backoff.next(), 3) for _ in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert backoff.tries == 6
    backoff.reset()
    assert (backoff.next(), backoff.tries) == (0.1, 1)


def test_jitter_stays_within_its_part_and_differs_between_clients() -> None:
    one, other = (Backoff(1.0, 60.0, jitter=0.2, random=Random(seed)) for seed in (1, 2))
    ones, others = [one.next() for _ in range(50)], [other.next() for _ in range(50)]
    assert ones != others
    steps = [min(2.0**number, 60.0) for number in range(50)]
    assert all(0.8 * step <= delay <= step for step, delay in zip(steps, ones, strict=True))


def test_the_same_seed_gives_the_same_delays() -> None:
    one, other = (Backoff(1.0, 60.0, random=Random(7)) for _ in range(2))
    assert [one.next() for _ in range(20)] == [other.next() for _ in range(20)]


def test_a_very_long_outage_does_not_overflow() -> None:
    backoff = Backoff(1.0, 30.0, jitter=0.0)
    assert [backoff.next() for _ in range(5_000)][-1] == 30.0
