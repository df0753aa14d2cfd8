"""Credits, outstanding offsets and ack sets, story by story, on both implementations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

FULL = 2**63


def balanced(credits: Any) -> bool:
    """The invariant of design 3.7, walk 3."""
    return bool(credits.at_broker + credits.here + credits.released - credits.debt == credits.window)


def subscribed(codec: Any, window: int) -> Any:
    credits = codec.permits.Credits(window)
    credits.reset(1)
    return credits


# ---------------------------------------------------------------------------------------------------------- credits


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


# ------------------------------------------------------------------------------------------------------ outstanding


def test_the_commit_offset_is_the_lowest_not_yet_done(codec: Any) -> None:
    queue = codec.permits.Outstanding()
    assert (queue.commit_offset, queue.lowest, queue.highest_seen, queue.span) == (-1, -1, -1, 0)
    assert queue.add_many([10, 11, 15, 20], [1, 2, 3, 4]) == 4
    assert (queue.count, queue.bytes, queue.span, queue.commit_offset) == (4, 10, 10, 10)
    assert queue.done(11)
    assert queue.commit_offset == 10
    assert queue.done(10)
    assert (queue.commit_offset, queue.lowest, queue.span) == (15, 15, 5)
    assert queue.done(20)
    assert (queue.bytes, queue.span, queue.offsets()) == (3, 0, [15])
    assert queue.done_many([15, 15, 20]) == 1
    assert (queue.commit_offset, queue.highest_seen, len(queue)) == (21, 20, 0)


def test_only_what_is_in_flight_can_be_done(codec: Any) -> None:
    queue = codec.permits.Outstanding()
    assert not queue.done(0)
    queue.add_many([2, 4, 6, 8], [0, 0, 0, 0])
    queue.done(4)
    assert [offset in queue for offset in range(-1, 11)] == [False, False, False, True] + [False] * 3 + [
        True, False, True, False, False,
    ]  # fmt: skip
    assert "6" not in queue
    assert 2**70 not in queue
    assert not any(map(queue.done, (-1, 0, 3, 4, 5, 7, 9)))
    assert queue.count == 3


def test_a_message_that_came_twice_is_not_taken_up(codec: Any) -> None:
    queue = codec.permits.Outstanding()
    assert queue.add(5, 10)
    assert not queue.add(5, 10)
    assert not queue.add(4, 10)
    queue.done(5)
    assert not queue.add(5, 10)
    assert queue.add_many([3, 5, 6, 6, 7], [1] * 5) == 2
    assert (queue.count, queue.bytes) == (2, 2)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ((2, 99, 99), "COUNT"),
        ((3, 29, 99), "BYTES"),
        ((3, 30, 8), "SPAN"),
        ((3, 30, 9), None),
        ((-1, -1, -1), None),
        ((0, 0, 0), "COUNT"),
    ],
)
def test_the_flow_decision_names_the_limit_that_is_exceeded(
    codec: Any, limits: tuple[int, int, int], expected: str | None
) -> None:
    queue = codec.permits.Outstanding()
    assert queue.over(0, 0, 0) == 0
    queue.add_many([1, 5, 10], [10, 10, 10])
    assert queue.over(*limits) == (getattr(codec.permits, expected) if expected else 0)


def test_clear_forgets_what_was_seen(codec: Any) -> None:
    queue = codec.permits.Outstanding()
    queue.add_many([7, 8, 9], [1, 1, 1])
    queue.done(8)
    assert queue.clear() == 2
    assert (queue.count, queue.bytes, queue.span, queue.commit_offset) == (0, 0, 0, -1)
    assert queue.add(1, 1)


def test_outstanding_refuses_what_is_no_message(codec: Any) -> None:
    queue = codec.permits.Outstanding()
    for offset, size in ((-1, 0), (0, -1), (0, 2**31)):
        with pytest.raises(ValueError, match="no message"):
            queue.add(offset, size)
    with pytest.raises(ValueError, match="2 offsets with 1 sizes"):
        queue.add_many([1, 2], [1])
    assert queue.count == 0


def test_thousands_in_flight(codec: Any) -> None:
    queue = codec.permits.Outstanding()
    offsets = list(range(0, 30_000, 3))
    queue.add_many(offsets, [2] * len(offsets))
    assert queue.done_many(reversed(offsets[1:])) == len(offsets) - 1
    assert (queue.count, queue.span, queue.commit_offset) == (1, 0, 0)
    later = range(29_999, 60_000)
    queue.add_many(tuple(later), (1,) * len(later))
    assert queue.done(0)
    assert queue.commit_offset == 29_999


# ---------------------------------------------------------------------------------------------------------- ack set


@dataclass
class Entry:
    ledger: int
    entry: int
    num_messages: int = 1
    ack_set: tuple[int, ...] | None = None


@dataclass
class Message:
    entry: Entry
    batch_index: int = -1


@dataclass
class MessageId:
    ledger: int
    entry: int
    batch_index: int = -1
    batch_size: int = 0


def batch(size: int, ledger: int = 1, entry: int = 1, ack_set: tuple[int, ...] | None = None) -> list[Message]:
    shared = Entry(ledger, entry, size, ack_set)
    return [Message(shared, index) for index in range(size)]


def test_the_first_ack_arms_and_a_full_group_flushes(codec: Any) -> None:
    acks = codec.permits.AckSet(3)
    arm, flush = codec.permits.ARM, codec.permits.FLUSH
    signals = [acks.add(Message(Entry(1, entry))) for entry in range(4)]
    assert signals == [arm, 0, flush, flush]
    assert len(acks) == 4
    assert acks.take() == [(1, 0), (1, 1), (1, 2), (1, 3)]
    assert (acks.take(), len(acks)) == ([], 0)
    assert acks.add(Message(Entry(1, 9))) == arm


def test_acks_without_grouping_flush_at_once(codec: Any) -> None:
    acks = codec.permits.AckSet(1)
    assert acks.add(Message(Entry(1, 1))) == codec.permits.FLUSH
    acks.take()
    assert acks.add_cumulative(Message(Entry(1, 2))) == codec.permits.FLUSH


def test_a_part_of_a_batch_is_told_as_what_is_left(codec: Any) -> None:
    acks = codec.permits.AckSet()
    messages = batch(3)
    acks.add(messages[0])
    assert acks.take() == [(1, 1, (0b110,))]
    acks.add(messages[2])
    acks.add(messages[2])
    assert acks.take() == [(1, 1, (0b010,))]
    acks.add(messages[1])
    assert acks.take() == [(1, 1)]


def test_words_are_signed_and_trailing_zero_words_are_left_out(codec: Any) -> None:
    acks = codec.permits.AckSet()
    messages = batch(130)
    acks.add(messages[0])
    assert acks.take() == [(1, 1, (-2, -1, 3))]
    acks.add_many(messages[64:])
    assert acks.take() == [(1, 1, (-2,))]
    acks.add_many(messages[1:63])
    assert acks.take() == [(1, 1, (-FULL,))]
    acks.add(messages[63])
    assert acks.take() == [(1, 1)]


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 128, 1000])
def test_without_batch_index_only_whole_entries_are_told(codec: Any, size: int) -> None:
    acks = codec.permits.AckSet(batch_index=False)
    messages = batch(size)
    for message in messages[:-1]:
        assert acks.add(message) == 0
        assert acks.take() == []
    assert acks.add(messages[-1]) == codec.permits.ARM
    assert acks.take() == [(1, 1)]


def test_messages_acked_before_at_the_broker_are_not_waited_for(codec: Any) -> None:
    acks = codec.permits.AckSet(batch_index=False)
    messages = batch(70, ack_set=(0b101,))  # the second word is all zeros and was left out
    assert acks.add(messages[0]) == 0
    assert acks.add(messages[2]) == codec.permits.ARM
    assert acks.take() == [(1, 1)]
    partly = codec.permits.AckSet()
    redelivered = batch(70, ack_set=(-1, 0b111))
    partly.add_many(redelivered[:64])
    assert partly.take() == [(1, 1, (0, 0b111))]


def test_groups_keep_the_order_in_which_entries_came_up(codec: Any) -> None:
    acks = codec.permits.AckSet()
    first, second = batch(2, entry=9), batch(2, entry=3)
    acks.add_many([first[0], second[0], first[1], Message(Entry(0, 5)), second[1]])
    assert acks.take() == [(1, 9), (1, 3), (0, 5)]


def test_ids_and_messages_meet(codec: Any) -> None:
    acks = codec.permits.AckSet()
    assert acks.add(MessageId(4, 2, 1, 3)) == codec.permits.ARM
    assert acks.add_id(4, 2, 0, 3) == 0
    assert acks.add(batch(3, 4, 2)[2]) == 0
    assert acks.add_id(4, 3) == 0
    assert acks.add_many([MessageId(4, 4)]) == 0
    assert acks.take() == [(4, 2), (4, 3), (4, 4)]
    assert acks.add_many([]) == 0


def test_an_entry_acked_as_a_whole_is_done(codec: Any) -> None:
    acks = codec.permits.AckSet()
    messages = batch(100)
    acks.add(messages[5])
    acks.add_id(1, 1)
    acks.add(messages[6])
    assert acks.take() == [(1, 1)]
    acks.add_id(1, 2)
    acks.add_id(1, 2)
    assert acks.take() == [(1, 2)]


@pytest.mark.parametrize(("index", "size"), [(0, 0), (3, 3), (9, 3), (0, 2**24 + 1)])
def test_an_index_outside_of_its_batch(codec: Any, index: int, size: int) -> None:
    acks = codec.permits.AckSet()
    for call in (acks.add, acks.add_cumulative):
        with pytest.raises(ValueError, match=f"batch index {index} is not within a batch of {size}"):
            call(MessageId(1, 1, index, size))
    assert (acks.take(), acks.take_cumulative()) == ([], None)


def test_two_sizes_of_one_batch_do_no_harm(codec: Any) -> None:
    acks = codec.permits.AckSet()
    acks.add_id(1, 1, 0, 3)
    acks.add_id(1, 1, 4, 5)
    assert acks.take() == [(1, 1, (0b110,))]


@pytest.mark.parametrize("limit", [0, -1, 2**31])
def test_impossible_groups(codec: Any, limit: int) -> None:
    with pytest.raises(ValueError, match="impossible"):
        codec.permits.AckSet(limit)


def test_cumulative_goes_forward_only(codec: Any) -> None:
    acks = codec.permits.AckSet()
    assert acks.add_cumulative(Message(Entry(2, 5))) == codec.permits.ARM
    assert acks.add_cumulative(Message(Entry(2, 4))) == 0
    assert acks.add_cumulative(Message(Entry(1, 9))) == 0
    assert acks.add_cumulative(Message(Entry(2, 6))) == 0
    assert acks.take_cumulative() == (2, 6)
    assert acks.take_cumulative() is None
    assert acks.add_cumulative(Message(Entry(2, 6))) == 0
    assert acks.take_cumulative() is None
    assert acks.add_cumulative(MessageId(3, 0)) == codec.permits.ARM


def test_one_timer_serves_both_kinds(codec: Any) -> None:
    acks = codec.permits.AckSet()
    assert acks.add_cumulative(Message(Entry(2, 5))) == codec.permits.ARM
    assert acks.add(Message(Entry(2, 7))) == 0
    acks.take()
    acks.take_cumulative()
    assert acks.add(Message(Entry(2, 8))) == codec.permits.ARM
    assert acks.add_cumulative(Message(Entry(2, 9))) == 0


@pytest.mark.parametrize(
    ("index", "words"), [(0, (-2, -1, 3)), (62, (-FULL, -1, 3)), (63, (0, -1, 3)), (64, (0, -2, 3)), (128, (0, 0, 2))]
)
def test_cumulative_inside_a_batch_tells_what_is_left(codec: Any, index: int, words: tuple[int, ...]) -> None:
    acks = codec.permits.AckSet()
    messages = batch(130)
    acks.add_cumulative(messages[index])
    assert acks.take_cumulative() == (1, 1, words)
    assert acks.add_cumulative(messages[index]) == 0
    acks.add_cumulative(messages[129])
    assert acks.take_cumulative() == (1, 1)


def test_cumulative_without_batch_index_acks_the_entry_before_once(codec: Any) -> None:
    acks = codec.permits.AckSet(batch_index=False)
    messages = batch(3, entry=7)
    assert acks.add_cumulative(messages[0]) == codec.permits.ARM
    assert acks.take_cumulative() == (1, 6)
    assert acks.add_cumulative(messages[1]) == 0
    assert acks.take_cumulative() is None
    assert acks.add_cumulative(messages[2]) == codec.permits.ARM
    assert acks.take_cumulative() == (1, 7)


def test_covers_names_what_need_not_be_shown_again(codec: Any) -> None:
    acks = codec.permits.AckSet()
    acks.add_cumulative(batch(10, 5, 5)[3])
    acks.add(batch(3, 6, 1)[1])
    acks.add(Message(Entry(6, 2)))
    covered = [(4, 99, -1), (5, 4, -1), (5, 5, 0), (5, 5, 3), (6, 1, 1), (6, 2, -1), (6, 2, 0)]
    open_ones = [(5, 5, 4), (5, 5, -1), (6, 1, 0), (6, 1, 2), (6, 1, 3), (6, 1, -1), (6, 2, 1), (6, 3, -1), (7, 0, 0)]
    assert all(acks.covers(*place) for place in covered)
    assert not any(acks.covers(*place) for place in open_ones)
    acks.take()
    assert acks.covers(6, 1, 1), "the rest of the batch is still waited for"
    assert not acks.covers(6, 2), "told, so that the broker knows"


def test_forget_drops_what_was_told_in_part(codec: Any) -> None:
    acks = codec.permits.AckSet()
    told, waiting = batch(2, entry=1), batch(2, entry=2)
    acks.add(told[0])
    acks.take()
    acks.add(waiting[0])
    acks.forget()
    assert not acks.covers(1, 1, 0)
    assert acks.covers(1, 2, 0)
    assert acks.take() == [(1, 2, (0b10,))]
    assert not acks.covers(1, 2, 0)
    acks.add(told[1])
    assert acks.take() == [(1, 1, (0b01,))]


def test_clear_drops_everything(codec: Any) -> None:
    acks = codec.permits.AckSet()
    acks.add_many(batch(200)[:3])
    acks.add_cumulative(Message(Entry(0, 9)))
    acks.clear()
    assert (len(acks), acks.take(), acks.take_cumulative()) == (0, [], None)
    assert not acks.covers(0, 1)
    assert acks.add(Message(Entry(1, 1))) == codec.permits.ARM


def test_thousands_of_entries_partly_acked(codec: Any) -> None:
    acks = codec.permits.AckSet(10**6)
    batches = [batch(1 + entry % 70, entry=entry) for entry in range(3000)]
    for messages in batches:
        acks.add(messages[0])
    assert len(acks.take()) == 3000
    for messages in reversed(batches):
        acks.add_many(messages[1:])
    expected = [(1, messages[0].entry.entry) for messages in reversed(batches) if len(messages) > 1]
    assert acks.take() == expected
    assert not any(acks.covers(1, entry, 0) for entry in range(3000))


# ------------------------------------------------------------------------------------- messages of the Pulsar codec


def received(codec: Any, size: int, ledger: int, entry: int, ack_set: tuple[int, ...] | None = None) -> list[Any]:
    """The messages of one MESSAGE frame."""
    pulsar = codec.pulsar
    builder = pulsar.BatchBuilder(size)
    builder.add_many([b"x"] * size)
    payload, count = builder.seal()
    metadata = pulsar.encode_metadata("p", 0, 1, num_messages=count)
    (sent,) = pulsar.FrameReader().feed(pulsar.encode_send(1, 0, metadata, payload, num_messages=count))
    frame = pulsar.encode_message(1, ledger, entry, sent[-1].stored, ack_set=ack_set)
    ((_, arrived),) = pulsar.FrameReader().feed(frame)
    return list(pulsar.decode_messages(arrived))


def test_messages_of_the_codec_are_acked(codec: Any) -> None:
    acks = codec.permits.AckSet()
    messages = received(codec, 100, 2**40, 2**33)
    assert acks.add(messages[0]) == codec.permits.ARM
    assert acks.add_many(messages[:64]) == 0
    assert acks.take() == [(2**40, 2**33, (0, 2**36 - 1))]
    acks.add_many(received(codec, 1, 7, 7))
    acks.add_many(messages[64:])
    acks.add(codec.pulsar.MessageId(8, 8))
    acks.add(messages[5].message_id)
    assert acks.take() == [(7, 7), (2**40, 2**33), (8, 8)]
    acks.add_cumulative(messages[98])
    assert acks.take_cumulative() == (2**40, 2**33, (0, 2**35))


def test_messages_of_the_codec_bring_the_ack_set_of_their_entry(codec: Any) -> None:
    acks = codec.permits.AckSet(batch_index=False)
    first, second = received(codec, 70, 1, 1, (0, 0b11))
    assert (first.batch_index, second.batch_index) == (64, 65)
    assert acks.add(second) == 0
    assert acks.add(first) == codec.permits.ARM
    assert acks.take() == [(1, 1)]
