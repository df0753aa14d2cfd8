"""Acknowledgements that wait to be told, story by story, on both implementations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

FULL = 2**63


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
