"""Many entries in one call: which of them are plain, what is made of those, and where a run ends."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient._impl import Impl


def frame(codec: Impl, entry: int, bodies: list[bytes], consumer: int = 1, **more: Any) -> bytes:
    """A MESSAGE; a single body is not batch-framed. `more` goes to the metadata or, of an ack set, to the command."""
    builder = codec.pulsar.BatchBuilder()
    for body in bodies:
        builder.add(body)
    payload, count = (bodies[0], 0) if len(bodies) == 1 else builder.seal()
    ack_set = more.pop("ack_set", None)
    metadata = codec.pulsar.encode_metadata("p", 5, 6, num_messages=count, **more)
    [event] = codec.pulsar.FrameReader().feed(codec.pulsar.encode_send(0, 0, metadata, payload))
    made: bytes = codec.pulsar.encode_message(consumer, 3, entry, event[-1].stored, ack_set=ack_set)
    return made


def entries(codec: Impl, *frames: bytes) -> list[Any]:
    return [event[1] for event in codec.pulsar.FrameReader().feed(b"".join(frames))]


def test_a_run_is_of_one_consumer_and_of_messages_only(codec: Impl) -> None:
    first, second = frame(codec, 0, [b"a"]), frame(codec, 1, [b"b"])
    stream = [first, second, codec.pulsar.PING_FRAME, first, frame(codec, 2, [b"c"], consumer=2)]
    events = codec.pulsar.FrameReader().feed(b"".join(stream))
    take = codec.pulsar.take_run
    assert take(events, 0) == [events[0][1], events[1][1]]
    assert take(events, 1) == [events[1][1]]
    assert take(events, 2) == []
    assert [len(take(events, at)) for at in (3, 4, 5)] == [1, 1, 0]


def test_plain_entries_become_one_list(codec: Impl) -> None:
    run = entries(codec, frame(codec, 0, [b"a"]), frame(codec, 1, [b"b", b"c"]), frame(codec, 2, [b"d"]))
    messages, charged, following = codec.pulsar.decode_run(run, 0, "t", 9, -1, -1)
    assert [message.body for message in messages] == [b"a", b"b", b"c", b"d"]
    assert [(message.entry.entry, message.batch_index) for message in messages] == [(0, -1), (1, 0), (1, 1), (2, -1)]
    assert (charged, following) == (4, 3)
    assert {(entry.topic, entry.epoch) for entry in run} == {("t", 9)}
    assert [message.sequence_id for message in messages] == [5, 5, 6, 5]
    assert codec.pulsar.decode_run(run, 3, "t", 9, -1, -1) == ([], 0, 3)


@pytest.mark.parametrize(
    "strange",
    [
        {"compression": 2, "uncompressed_size": 1},
        {"uuid": "u", "num_chunks": 2, "chunk_id": 0, "total_chunk_size": 2},
        {"ack_set": [1]},
    ],
    ids=["compressed", "a part", "acknowledged in part"],
)
def test_what_is_not_plain_ends_a_run(codec: Impl, strange: dict[str, Any]) -> None:
    run = entries(codec, frame(codec, 0, [b"a"]), frame(codec, 1, [b"b"], **strange), frame(codec, 2, [b"c"]))
    messages, charged, following = codec.pulsar.decode_run(run, 0, "t", 9, -1, -1)
    assert ([message.body for message in messages], charged, following) == ([b"a"], 1, 1)
    assert run[1].topic is None
    assert codec.pulsar.decode_run(run, 1, "t", 9, -1, -1) == ([], 0, 1)
    assert codec.pulsar.decode_run(run, 2, "t", 9, -1, -1)[1:] == (1, 3)


def test_what_lies_before_a_start_is_not_plain(codec: Impl) -> None:
    run = entries(codec, *(frame(codec, number, [b"x"]) for number in range(3)))
    decode = codec.pulsar.decode_run
    assert [decode(run, at, "t", 9, 3, 1)[2] for at in (0, 1, 2)] == [0, 1, 3]
    assert decode(run, 0, "t", 9, 4, 1)[2] == 3


def test_a_damaged_batch_or_checksum_is_not_plain(codec: Impl) -> None:
    good = frame(codec, 0, [b"aaaa", b"b"])
    [entry] = entries(codec, good)
    damaged = good.replace(b"aaaa", b"aaab")
    short = codec.pulsar.encode_metadata("p", 5, 6, num_messages=3)
    [event] = codec.pulsar.FrameReader().feed(codec.pulsar.encode_send(0, 0, short, bytes(entry.payload)))
    cut = codec.pulsar.encode_message(1, 3, 0, event[-1].stored)
    for wrong in (damaged, cut):
        assert codec.pulsar.decode_run(entries(codec, wrong), 0, "t", 9, -1, -1) == ([], 0, 0)


def test_a_null_value_stays_one(codec: Impl) -> None:
    messages = codec.pulsar.decode_run(entries(codec, frame(codec, 0, [b""], null_value=True)), 0, "t", 9, -1, -1)[0]
    assert [(message.body, message.null_value, message.value) for message in messages] == [(b"", True, None)]
