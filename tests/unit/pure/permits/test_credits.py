"""Permits of a Pulsar consumer, story by story, on both implementations."""

from __future__ import annotations

from typing import Any

import pytest


def balanced(credits: Any) -> bool:
    """The invariant of design 3.7, walk 3."""
    return bool(credits.at_broker + credits.here + credits.released - credits.debt == credits.window)


def subscribed(codec: Any, window: int) -> Any:
    credits = codec.permits.Credits(window)
    credits.reset(1)
    return credits


def test_grants_the_whole_window_first_and_then_by_halves(codec: Any) -> None:
    credits = subscribed(codec, 1000)
    assert credits.flow() == 1000
    assert credits.flow() == 0
    assert credits.arrive(600, 1)
    assert not credits.release(499, codec.permits.DELIVERED, 1)
    assert credits.due() == 0
    assert credits.release(1, codec.permits.DELIVERED, 1)
    assert credits.due() == 500
    assert credits.flow() == 500
    assert (credits.at_broker, credits.here, credits.released) == (900, 100, 0)
    assert balanced(credits)


@pytest.mark.parametrize(("window", "half"), [(1, 1), (2, 1), (3, 1), (4, 2), (10, 5), (1001, 500)])
def test_half_is_at_least_one(codec: Any, window: int, half: int) -> None:
    credits = subscribed(codec, window)
    assert credits.half == half
    assert credits.flow() == window
    assert credits.arrive(window, 1)
    for taken in range(1, window + 1):
        assert credits.release(1, codec.permits.DELIVERED, 1) == (taken >= half)


def test_nothing_flows_without_a_connection(codec: Any) -> None:
    credits = codec.permits.Credits(10)
    assert (credits.epoch, credits.flow()) == (-1, 0)
    assert not credits.arrive(1, -1)
    credits.reset(1)
    assert credits.flow() == 10
    credits.lost()
    assert not credits.arrive(5, 1)
    credits.reset(2)
    assert credits.flow() == 10


def test_an_entry_may_bring_more_than_was_granted(codec: Any) -> None:
    credits = subscribed(codec, 10)
    credits.flow()
    assert credits.arrive(9, 1)
    assert credits.arrive(1000, 1)
    assert (credits.at_broker, credits.here) == (-999, 1009)
    credits.release(1009, codec.permits.DELIVERED, 1)
    assert credits.flow() == 1009
    assert credits.at_broker == 10


def test_events_of_an_old_epoch_are_counted_and_have_no_effect(codec: Any) -> None:
    credits = subscribed(codec, 10)
    credits.flow()
    credits.arrive(8, 1)
    credits.reset(2)
    assert (credits.at_broker, credits.here, credits.released) == (0, 0, 10)
    assert credits.flow() == 10
    assert not credits.release(8, codec.permits.DELIVERED, 1)
    assert not credits.arrive(2, 1)
    assert (credits.at_broker, credits.here, credits.released) == (10, 0, 0)
    counts = credits.counts()
    assert (counts["stale_arrived"], counts["stale_released"], counts["resets"]) == (2, 8, 2)


def test_an_epoch_does_not_go_back(codec: Any) -> None:
    credits = subscribed(codec, 10)
    credits.reset(1)
    credits.reset(7)
    with pytest.raises(ValueError, match="epoch 6 is over, 7"):
        credits.reset(6)
    with pytest.raises(ValueError, match="epoch -1"):
        codec.permits.Credits(1).reset(-1)


def test_pausing_withholds_grants_and_goes_on_counting(codec: Any) -> None:
    credits = codec.permits.Credits(10)
    credits.pause()
    credits.reset(1)
    assert credits.flow() == 0
    credits.resume()
    assert credits.flow() == 10
    credits.pause()
    assert credits.paused
    credits.arrive(10, 1)
    assert not credits.release(10, codec.permits.DELIVERED, 1)
    assert credits.flow() == 0
    credits.resume()
    assert credits.flow() == 10


def test_every_way_out_has_its_counter(codec: Any) -> None:
    permits = codec.permits
    credits = subscribed(codec, 100)
    credits.flow()
    credits.arrive(15, 1)
    reasons = (permits.DELIVERED, permits.SKIPPED, permits.DISCARDED, permits.EXPIRED, permits.CHUNK)
    for count, reason in enumerate(reasons, 1):
        credits.release(count, reason, 1)
    by_reason = {"delivered": 1, "skipped": 2, "discarded": 3, "expired": 4, "chunk": 5}
    rest = {"stale_arrived": 0, "stale_released": 0, "excess": 0, "resets": 1}
    assert credits.counts() == {"arrived": 15, **by_reason, "granted": 100, "flows": 1, **rest}


def test_releasing_more_than_is_here_grants_nothing_twice(codec: Any) -> None:
    credits = subscribed(codec, 10)
    credits.flow()
    credits.arrive(4, 1)
    credits.release(9, codec.permits.DISCARDED, 1)
    assert (credits.here, credits.released, credits.counts()["excess"]) == (0, 4, 5)
    assert balanced(credits)


def test_shrinking_is_a_debt_paid_by_withheld_grants(codec: Any) -> None:
    credits = subscribed(codec, 1000)
    credits.flow()
    credits.resize(-900)
    assert (credits.window, credits.half, credits.debt) == (100, 50, 900)
    credits.arrive(1000, 1)
    assert not credits.release(900, codec.permits.DELIVERED, 1)
    assert credits.debt == credits.released == 0
    assert credits.release(50, codec.permits.DELIVERED, 1)
    assert credits.flow() == 50
    assert balanced(credits)


def test_growing_is_granted(codec: Any) -> None:
    credits = subscribed(codec, 1)
    credits.flow()
    credits.resize(1)
    assert credits.flow() == 1
    credits.resize(2)
    assert credits.flow() == 2
    assert (credits.window, credits.at_broker) == (4, 4)


@pytest.mark.parametrize("delta", [-10, -11, 2**31, -(2**62), 2**62])
def test_impossible_windows(codec: Any, delta: int) -> None:
    credits = subscribed(codec, 10)
    with pytest.raises(ValueError, match="impossible"):
        credits.resize(delta)
    assert credits.window == 10


def test_senseless_numbers_are_refused(codec: Any) -> None:
    credits = subscribed(codec, 10)
    credits.flow()
    credits.arrive(0, 1)
    for count in (-1, 2**31):
        with pytest.raises(ValueError, match="no number of permits"):
            codec.permits.Credits(count)
        with pytest.raises(ValueError, match="no number of permits"):
            credits.arrive(count, 1)
        with pytest.raises(ValueError, match="no number of permits"):
            credits.release(count, codec.permits.DELIVERED, 1)
    for reason in (-1, 5):
        with pytest.raises(ValueError, match="no reason"):
            credits.release(0, reason, 1)
    for call in (credits.receive_waits, credits.receive_ends):
        with pytest.raises(ValueError, match="zero-queue consumer only"):
            call()


def test_zero_queue_grants_one_per_waiting_receive(codec: Any) -> None:
    credits = subscribed(codec, 0)
    assert credits.zero_queue
    assert credits.flow() == 0
    for waiting in range(1, 6):
        credits.receive_waits()
        assert credits.flow() == 1
        assert credits.at_broker == credits.window == waiting
    credits.arrive(1, 1)
    credits.receive_ends()
    assert not credits.release(1, codec.permits.DELIVERED, 1)
    assert (credits.at_broker, credits.window) == (4, 4)


def test_zero_queue_cancelled_receives_leave_their_grant_for_the_next(codec: Any) -> None:
    """`wait_for(receive(), 0.01)` a hundred times: one permit at the broker, not a hundred."""
    credits = subscribed(codec, 0)
    granted = 0
    for _ in range(100):
        credits.receive_waits()
        granted += credits.flow()
        credits.receive_ends()
        assert balanced(credits)
    assert granted == credits.at_broker == credits.debt == 1


def test_zero_queue_takes_a_whole_batch_before_it_grants_again(codec: Any) -> None:
    credits = subscribed(codec, 0)
    credits.receive_waits()
    assert credits.flow() == 1
    credits.arrive(10, 1)
    credits.receive_ends()
    assert not credits.release(1, codec.permits.DELIVERED, 1)
    for _ in range(9):
        credits.receive_waits()
        assert credits.flow() == 0
        credits.receive_ends()
        assert not credits.release(1, codec.permits.DELIVERED, 1)
    assert credits.at_broker == -9
    credits.receive_waits()
    assert credits.flow() == 10
    assert credits.at_broker == 1


def test_zero_queue_grants_again_for_a_message_that_was_dropped_while_somebody_waits(codec: Any) -> None:
    credits = subscribed(codec, 0)
    credits.receive_waits()
    credits.flow()
    credits.arrive(1, 1)
    assert credits.release(1, codec.permits.SKIPPED, 1)
    assert credits.flow() == 1
    credits.arrive(1, 1)
    credits.receive_ends()
    assert not credits.release(1, codec.permits.SKIPPED, 1)
    assert credits.flow() == 0


def test_zero_queue_grants_for_those_who_wait_after_a_reconnect(codec: Any) -> None:
    credits = subscribed(codec, 0)
    for _ in range(3):
        credits.receive_waits()
    assert credits.flow() == 3
    credits.reset(2)
    assert credits.flow() == 3
    with pytest.raises(ValueError, match="zero-queue"):
        credits.resize(1)
    for _ in range(3):
        credits.receive_ends()
    with pytest.raises(ValueError, match="no receive waits"):
        credits.receive_ends()
