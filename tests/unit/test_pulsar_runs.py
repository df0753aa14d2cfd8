"""Many entries in one call: which of them are plain, what is made of those, and where a run ends."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient._impl import Impl
from mqclient.core.slot import Slot


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


# ---- the other way: entries of one message each that are sent together, and messages that join a batch


def message(body: Any = b"x", key: Any = None, **other: Any) -> tuple[Any, ...]:
    said = {"properties": None, "event_time": 0, "ordering_key": None, "own": -1, "key_b64": False, **other}
    return (body, key, *said.values())


ODD = [
    b"x",
    (b"x",),
    message(None),
    message(bytearray(b"x")),
    message(key=b"k"),
    message(properties={}),
    message(ordering_key="o"),
    message(own=5),
]
"""What only the long way can say."""


def test_a_train_holds_what_is_plain_and_fits(codec: Any) -> None:
    train = codec.pulsar.EntryTrain(3, "p", 100, 7, 400, 150, b"v1")
    assert [train.add(odd) for odd in ODD] == [-2] * len(ODD)
    assert train.add(message(bytes(150))) == -2
    assert (train.count, train.size) == (0, 0)
    assert train.add(message(b"first", "key", event_time=9, ordering_key=b"o", key_b64=True)) == 0
    while train.add(message(bytes(60))) >= 0:
        pass
    assert train.size <= 400
    frames = train.close()
    assert train.size == len(frames)
    assert train.add(message()) == -1
    events = codec.pulsar.FrameReader().feed(frames)
    assert [event[1:3] for event in events] == [(3, number) for number in range(100, train.following)]
    assert b"".join(train.frame(index) for index in range(train.count)) == frames
    entry = codec.pulsar.Entry.from_stored(bytes(events[0][8].stored))
    assert (entry.partition_key, entry.event_time, entry.ordering_key, entry.key_b64) == ("key", 9, b"o", True)
    assert (entry.schema_version, entry.published_at, entry.producer_name) == (b"v1", 7, "p")


def test_a_train_takes_the_receipts_that_are_next(codec: Any) -> None:
    train = codec.pulsar.EntryTrain(3, "p", 100, 7, 4000, 4000)
    for _ in range(4):
        train.add(message())
    reader = codec.pulsar.FrameReader()

    def receipts(*told: tuple[int, int, int, int]) -> list[Any]:
        found: list[Any] = reader.feed(b"".join(codec.pulsar.encode_receipt(*one) for one in told))
        return found

    right = receipts((3, 100, 5, 0), (3, 101, 5, 1), (4, 102, 5, 2))
    assert train.take_receipts(right, 0) == 0  # nothing has left yet
    train.close()
    assert train.take_receipts(right, 0) == 2
    assert train.take_receipts(receipts((3, 103, 5, 3)), 0) == 0
    assert train.take_receipts(receipts((3, 102, -1, -1)), 0) == 0
    assert train.take_receipts(reader.feed(codec.pulsar.PING_FRAME), 0) == 0
    train.land(6, 6)
    assert [train.place(index) for index in range(train.landed)] == [(5, 0), (5, 1), (6, 6)]
    assert train.take_receipts(receipts((3, 103, 7, 7), (3, 104, 7, 8)), 0) == 1
    for call, given in ((train.land, (1, 1)), (train.place, (4,)), (train.frame, (4,)), (train.place, (-1,))):
        with pytest.raises(IndexError):
            call(*given)
    train.drop()
    assert (train.close(), train.place(3)) == (b"", (7, 7))
    with pytest.raises(IndexError):
        train.frame(0)


def test_who_joins_a_batch(codec: Any) -> None:
    builder, added = codec.pulsar.BatchBuilder(5, 300), codec.pulsar.BatchBuilder(5, 300)
    assert builder.join(message(), 0) == -1
    token = builder.open(7)
    assert [builder.join(odd, token) for odd in ODD] == [-1] * len(ODD)
    assert [builder.join(message(), token - 1), builder.join(message(bytes(300)), token)] == [-1, -1]
    keyed = message(b"body", "key", event_time=5, ordering_key=b"o", key_b64=True)
    assert [builder.join(keyed, token) for _ in range(5)][:2] == [0, 1]
    assert builder.shut() == 7 + builder.count
    assert builder.join(message(), token) == -1
    for number in range(builder.count):
        added.add(b"body", "key", None, 5, b"o", 7 + number, True)
    assert builder.seal() == added.seal()


def test_what_is_plain_joins_by_the_door(codec: Any) -> None:
    builder, joined = codec.pulsar.BatchBuilder(7, 300), codec.pulsar.BatchBuilder(7, 300)
    door = codec.pulsar.Door(lambda batch, index: (batch, index))
    plain = (b"body", "key", None, 5, b"o", None, None, None, None, None)
    nothing = (b"", None, None, 0, None, None, None, None, None, None)
    assert door.board(*plain) is None  # nothing gathers
    door.open(builder, "batch", builder.open(7))
    odd: dict[int, tuple[Any, ...]] = {
        0: (bytearray(b"x"), "text", None, 5),
        1: (b"key", 5, "\ud800"),
        2: ({}, {"a": "b"}),
        3: (True, 1.5, None, 1 << 63, -1 << 63),
        4: ("text", bytearray()),
        5: (0, 7),
        6: (0, 1.5),
        7: (0,),
        8: ((), ["here"]),
        9: ("a transaction",),
    }
    for place, values in odd.items():
        for value in values:
            assert door.board(*plain[:place], value, *plain[place + 1 :]) is None
    assert door.board(bytes(300), *plain[1:]) is None
    assert [door.board(*plain), door.board(*nothing)] == [("batch", 0), ("batch", 1)]
    token = joined.open(7)
    for item in (message(b"body", "key", event_time=5, ordering_key=b"o"), message(b"")):
        assert joined.join(item, token) >= 0
    assert builder.shut() == joined.shut() == 9
    assert door.board(*plain) is None  # who joins there has to say so here, too
    door.open(builder, "another", builder.open(9))
    assert door.board(*plain) == ("another", 2)
    door.shut()
    assert door.board(*plain) is None
    assert builder.shut() == 10
    with pytest.raises(TypeError):
        door.board(b"body")


def test_a_flight_holds_what_is_plain_and_tells_who_waits(codec: Any) -> None:
    flight = codec.pulsar.EntryFlight(3, "p", 1, 150, b"v1")
    slots: list[Slot[Any]] = [Slot() for _ in range(3)]
    assert [flight.add(odd, 7, 0, 1.0, slots[0]) for odd in ODD] == [None] * len(ODD)
    assert flight.add(message(bytes(150)), 7, 0, 1.0, slots[0]) is None
    assert (flight.count, flight.closed) == (0, False)
    told = message(b"first", "key", event_time=9, ordering_key=b"o", key_b64=True)
    frames = [flight.add(told, 100, 7, 1.0, slots[0]), flight.add(message(b"xy"), 105, 8, 2.0, slots[1])]
    frames.append(flight.add(message(b""), 106, 8, 3.0, slots[2]))
    assert (flight.count, flight.sequence_id, flight.last_sequence_id, flight.deadline) == (3, 100, 106, 1.0)
    reader = codec.pulsar.FrameReader()
    events = reader.feed(b"".join(frames))
    assert [event[1:3] for event in events] == [(3, 100), (3, 105), (3, 106)]
    entry = codec.pulsar.Entry.from_stored(bytes(events[0][8].stored))
    assert (entry.partition_key, entry.event_time, entry.ordering_key, entry.key_b64) == ("key", 9, b"o", True)
    assert (entry.schema_version, entry.published_at, entry.producer_name) == (b"v1", 7, "p")

    def receipts(*told: tuple[int, int, int, int]) -> list[Any]:
        found: list[Any] = reader.feed(b"".join(codec.pulsar.encode_receipt(*one) for one in told))
        return found

    for wrong in ((4, 100, 5, 0), (3, 105, 5, 0), (3, 100, -1, -1)):
        assert flight.take_receipts(receipts(wrong), 0) == flight.landed_bytes == 0
    assert flight.take_receipts(reader.feed(codec.pulsar.PING_FRAME), 0) == 0
    right = receipts((3, 100, 5, 0), (3, 105, 5, 1), (3, 999, 5, 2))
    assert (flight.take_receipts(right, 0), flight.landed_bytes) == (2, 7)
    assert [slot.result() for slot in slots[:2]] == [codec.pulsar.MessageId(5, entry, 1) for entry in (0, 1)]
    assert (flight.count, flight.sequence_id, flight.deadline, slots[2].done) == (1, 106, 3.0, False)
    assert flight.part() == [(frames[2], 0, 106, 3.0, slots[2])]
    assert (flight.part(), flight.count, flight.closed) == ([], 0, True)
    assert flight.take_receipts(receipts((3, 106, 5, 2)), 0) == 0
    assert flight.add(message(b"late"), 107, 0, 1.0, slots[0]) is None
    for asked in ("sequence_id", "last_sequence_id", "deadline"):
        with pytest.raises(IndexError):
            getattr(flight, asked)


def test_a_flight_goes_on_for_ever(codec: Any) -> None:
    """Whoever is told may send the next one at once; of those that have landed nothing is kept."""
    flight = codec.pulsar.EntryFlight(3, "p", -1, 1000)
    found: list[int] = []

    def send(number: int) -> None:
        slot: Slot[Any] = Slot()
        slot.then(lambda done: found.append(done.result().entry))
        if number < 3000:
            slot.then(lambda _: send(number + 2))
        assert flight.add(message(b"x"), number, 0, 1.0, slot) is not None

    send(0)
    send(1)
    feed = codec.pulsar.FrameReader().feed
    for number in range(0, 3002, 2):
        told = b"".join(codec.pulsar.encode_receipt(3, one, 5, one) for one in (number, number + 1))
        assert flight.take_receipts(feed(told), 0) == 2
    assert found == list(range(3002))
    assert flight.count == 0
