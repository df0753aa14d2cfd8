"""The native Pulsar codec and its pure twin read the same from everything: valid, damaged, cut off and sliced."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.property.pulsar_frames import (
    ID_FACTS,
    MESSAGE_FACTS,
    ONE,
    RECORDED,
    TWINS,
    blobs,
    entry_facts,
    fed,
    frames,
    message_ids,
    same,
    size,
    stored_entries,
)


def fed_the_same(*parts: bytes) -> Any:
    return same(lambda twin: fed(twin, *parts))


@given(st.lists(frames, max_size=4))
@settings(max_examples=150)
def test_frames_read_the_same(sent: list[bytes]) -> None:
    same(lambda twin: fed(twin, b"".join(sent)))


@st.composite
def plain_frames(draw: st.DrawFn) -> bytes:
    """Of few consumers and ledgers: alone or batches, some of them acknowledged in part."""
    builder = TWINS[-1].BatchBuilder(9, 999)
    count = draw(st.integers(0, 3))
    for _ in range(count):
        builder.add(draw(blobs))
    payload = builder.seal()[0] if count else draw(blobs)
    metadata = TWINS[-1].encode_metadata("p", 1, 2, num_messages=count, null_value=draw(st.booleans()))
    stored = TWINS[-1].encode_send(0, 0, metadata, payload).split(b"\x0e\x01", 1)[1]
    places = draw(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 3)))
    made: bytes = TWINS[-1].encode_message(
        *places, b"\x0e\x01" + stored, ack_set=draw(st.sampled_from([None] * 5 + [[1]]))
    )
    return made


@given(st.lists(st.one_of(plain_frames(), plain_frames(), frames), max_size=8), st.integers(0, 2), st.integers(-1, 2))
@settings(max_examples=150)
def test_runs_of_entries_are_what_their_entries_are(sent: list[bytes], ledger: int, until: int) -> None:
    def runs(twin: Any) -> Any:
        reader = twin.FrameReader()
        events = reader.feed(b"".join(sent))
        at, found = 0, []
        while at < len(events):
            entries = twin.take_run(events, at)
            assert entries == [event[-1] for event in events[at : at + len(entries)]]
            assert bool(entries) is (events[at][0] == twin.MESSAGE)
            assert len({entry.consumer_id for entry in entries}) < 2
            at += max(len(entries), 1)
            place = 0
            while place < len(entries):
                messages, charged, following = twin.decode_run(entries, place, "t", 7, ledger, until)
                decoded = [message for entry in entries[place:following] for message in twin.decode_messages(entry)]
                assert charged == sum(entry.charged for entry in entries[place:following]) == len(messages)
                assert all(entry.topic == "t" and entry.epoch == 7 for entry in entries[place:following])
                facts = [[getattr(message, name) for name in MESSAGE_FACTS] for message in messages]
                assert facts == [[getattr(message, name) for name in MESSAGE_FACTS] for message in decoded]
                hidden = [
                    entry for entry in entries[place:following] if entry.ledger == ledger and entry.entry <= until
                ]
                assert not hidden
                found.append((facts, charged, following))
                place = following + 1
        return found

    same(runs)


@given(st.lists(frames, max_size=4), st.lists(st.integers(0, 400), max_size=6))
def test_slicing_changes_nothing(sent: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(sent)
    at = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    whole = same(lambda twin: fed(twin, stream))
    sliced = same(lambda twin: fed(twin, *(stream[a:b] for a, b in pairwise(at))))
    assert sliced == whole


@given(st.one_of(frames, st.sampled_from(RECORDED).map(Path.read_bytes)), st.data())
@settings(max_examples=200)
def test_damaged_bytes_read_the_same_and_never_raise(stream: bytes, data: st.DataObject) -> None:
    broken = bytearray(stream)
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, len(broken) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    same(lambda twin: fed(twin, bytes(broken)))


@given(frames)
@settings(max_examples=12)
def test_cut_at_every_byte(frame: bytes) -> None:
    """Of the stream: nothing comes. Of the frame, its size put right: the same damage on both sides."""
    for cut in range(len(frame)):
        events, good, _ = fed_the_same(frame[:cut])
        assert not events
        assert good
        if cut >= 8:
            fed_the_same(size(frame[4:cut]) + frame[4:cut])


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: str(path.stem))
def test_real_frames_cut_at_every_byte(path: Path) -> None:
    stream = path.read_bytes()[:600]
    for cut in range(len(stream)):
        whole = ONE.FrameReader()
        parts = ONE.FrameReader()
        kinds = [event[0] for event in whole.feed(stream)]
        assert [event[0] for part in (stream[:cut], stream[cut:]) for event in parts.feed(part)] == kinds
        assert parts.pending == whole.pending


@given(stored_entries(), st.data())
@settings(max_examples=150)
def test_stored_entries_cut_or_damaged_read_the_same(stored: bytes, data: st.DataObject) -> None:
    broken = bytearray(stored[: data.draw(st.integers(0, len(stored)))])
    if broken and data.draw(st.booleans()):
        broken[data.draw(st.integers(0, len(broken) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    same(lambda twin: entry_facts(twin, twin.Entry.from_stored(bytes(broken), 1, 2, 3)))


@given(st.binary(max_size=64))
@example(b"\x00\x00\x00\x04\x00\x00\x00\x00")
@example(b"\xff\xff\xff\xff")
@example(b"\x00\x00\x00\x00")
@example(b"\x00\x00\x00\x09\x00\x00\x00\x05\x08\x12\x92\x01\x00")
def test_any_bytes_read_the_same(data: bytes) -> None:
    same(lambda twin: fed(twin, data))


@given(st.one_of(message_ids, blobs))
@example(b"\x08\x01\x10\x02\x3a\x04\x08\x01\x10\x02")
@example(b"\x08\x01\x10\x02\x3a\x0a\x08\x01\x10\x02\x3a\x04\x08\x01\x10\x02")
def test_message_ids_read_the_same(data: bytes) -> None:
    def read(twin: Any) -> Any:
        found = twin.MessageId.from_bytes(data)
        assert twin.MessageId.from_bytes(found.to_bytes()) == found
        assert pickle.loads(pickle.dumps(found)) == found
        chunk = found.first_chunk
        return [getattr(found, name) for name in ID_FACTS], found.to_bytes(), chunk and chunk.to_bytes(), repr(found)

    same(read)


ids = st.tuples(st.integers(-1, 2), st.integers(-1, 2), st.integers(-1, 1), st.integers(-1, 2))


@given(ids, ids)
def test_message_ids_are_ordered_and_equal_the_same(left: Any, right: Any) -> None:
    def compare(twin: Any) -> Any:
        a, b = twin.MessageId(*left), twin.MessageId(*right)
        assert (a == b) is (left == right)
        assert (hash(a) == hash(b)) or a != b
        assert (a < b) is (b > a)
        assert (a <= b) is (a < b or a == b)
        return a < b, a <= b, a == b, a > b, a >= b

    same(compare)
