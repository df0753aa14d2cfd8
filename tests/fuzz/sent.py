"""Messages to Pulsar that leave singly, and those that join an open batch; and the receipts that come for them."""

from __future__ import annotations

import socket
import struct
import threading
from random import Random
from time import time_ns
from typing import Any

from mqclient._impl import Impl, select
from mqclient.core.slot import Slot
from tests.fuzz import seeds
from tests.fuzz.written import SMALL, packed, read_back, text_of, unpacked
from tests.support.road import Road

LIMIT = 1000
"""Of an entry, in bytes: some of what is fuzzed is larger."""
FULL, OTHER = -1, -2
ROOM = 16_384
"""In a socket that nobody reads yet."""


def messages_sent_singly() -> list[bytes]:
    """Producer, first sequence id, publish and event time; then a name, the version of a schema, a key, an ordering
    key, two bodies, and what the broker says."""
    encode = select("pure").pulsar.encode_receipt
    said = [encode(7, 5, 3, 0) + encode(7, 6, 3, 1), encode(7, 5, -1, -1) + encode(8, 6, 3, 1), b"", encode(7, 5, 3, 9)]
    said += [frame for frame in seeds.pulsar_frames() if len(frame) < 100][:9]
    out = []
    for at, told in enumerate(said):
        numbers = struct.pack(">4q", 7, 5, 1_700_000_000_000, (0, 9, -1)[at % 3])
        texts = [b"standalone-0-1", (None, b"", b"v" * 8)[at % 3], (None, b"key", "é中".encode(), b"")[at % 4]]
        out.append(packed([numbers, *texts, (None, b"order")[at % 2], b"body" * at, (b"", b"x" * 980)[at % 2], told]))
    return out


def run_sent_singly(impl: Impl, data: bytes, random: Random) -> None:
    """A train and a flight write the same frames, our own decoder reads them, and both take the same receipts."""
    numbers, name, version, key, ordering_key, first, second, told = unpacked(data, 8)
    producer, number, born, event_time = struct.unpack(">4q", (numbers or b"").ljust(32, b"\0")[:32])
    number >>= 1  # there is room for more behind it
    rest: tuple[Any, ...] = (None if key is None else text_of(key), None, event_time, ordering_key, -1, bool(born & 1))
    plain = [(body or b"", *rest) for body in (first, second, first)]
    odd = [first, (first, "key"), (bytearray(second or b""), *rest), (b"", None, {}, 0, None, -1, False)]
    train = impl.pulsar.EntryTrain(producer, text_of(name), number, born, 1500, LIMIT, version)
    flight = impl.pulsar.EntryFlight(producer, text_of(name), 1, LIMIT, version)
    assert [train.add(message) for message in odd] == [OTHER] * len(odd)
    assert [flight.add(message, number, born, 1.0, None) for message in odd] == [None] * len(odd)
    places = [train.add(message) for message in plain]
    frames: list[Any] = []
    slots: list[Slot[Any]] = []
    for message, place in zip(plain, places, strict=True):
        if place == OTHER:  # with this sequence id, which takes more bytes the larger it is
            assert flight.add(message, number + len(frames), born, 1.0, None) is None
        elif place != FULL:
            slots.append(Slot())
            frames.append(flight.add(message, number + place, born, 1.0, slots[-1]))
    assert (train.close(), train.count, flight.count) == (b"".join(frames), len(frames), len(frames))
    assert [train.frame(index) for index in range(len(frames))] == frames
    if len(data) <= SMALL:
        pure = select("pure").pulsar.EntryTrain(producer, text_of(name), number, born, 1500, LIMIT, version)
        assert ([pure.add(message) for message in plain], pure.close()) == (places, train.close())
    rows = [(producer, number + place) for place in range(len(frames))]
    if rows:
        sizes = sum(len(message[0]) for message, place in zip(plain, places, strict=True) if place not in (FULL, OTHER))
        ends = number, number + len(rows) - 1
        assert (flight.sequence_id, flight.last_sequence_id, flight.deadline, flight.size) == (*ends, 1.0, sizes)
    read_singly(impl, train.close(), rows, random)
    take_told(impl, train, flight, slots, rows, told or b"", random)
    if frames:
        alone = impl.pulsar.EntryFlight(producer, text_of(name), 1, LIMIT, version)
        go_by_lane(impl, alone, plain[places.index(0)], rows[0], told or b"", random)
        together = impl.pulsar.EntryFlight(producer, text_of(name), 1, LIMIT, version)
        go_together(impl, together, plain[places.index(0)], rows[0], told or b"", random)
    join_batch(impl, [*plain, *odd], random)


def read_singly(impl: Impl, frames: bytes, rows: list[tuple[int, int]], random: Random) -> None:
    reader = impl.pulsar.FrameReader()
    cut = random.randrange(len(frames) + 1)
    events = [*reader.feed(frames[:cut]), *reader.feed(frames[cut:])]
    assert (reader.error, [event[1:3] for event in events]) == (None, rows)
    for event in events:
        (message,) = impl.pulsar.decode_messages(event[8])
        assert (message.sequence_id, event[8].corrupt) == (event[2], None)


def take_told(
    impl: Impl,
    train: Any,
    flight: Any,
    slots: list[Slot[Any]],
    rows: list[tuple[int, int]],
    told: bytes,
    random: Random,
) -> None:
    """What the broker says, with the right receipts among it."""
    right = b"".join(impl.pulsar.encode_receipt(*row, 3, place) for place, row in enumerate(rows))
    events = list(impl.pulsar.FrameReader().feed(told))
    at = random.randrange(len(events) + 1)
    events[at:at] = impl.pulsar.FrameReader().feed(right)
    at = 0
    while at < len(events):
        taken = train.take_receipts(events, at)
        assert flight.take_receipts(events, at) == taken
        at += taken or 1
    ids = [slot.result() for slot in slots if slot.done]
    assert [(one.ledger, one.entry) for one in ids] == [train.place(index) for index in range(train.landed)]
    assert [part[4] for part in flight.part()] == slots[train.landed :]
    train.drop()


def go_by_lane(impl: Impl, flight: Any, message: Any, row: tuple[int, int], told: bytes, random: Random) -> None:
    """Who sends alone and waits reads all that the broker says, and gets the receipt that is for him."""
    road = Road(impl.pulsar, flight)
    if road.open(row[1]):  # nobody opens the twin's
        hindered = random.randrange(8)
        if hindered == 0:
            road.clog()
        road.peer.sendall(told[:ROOM] + impl.pulsar.encode_receipt(*row, 3, 0))
        if hindered == 1:
            road.peer.shutdown(socket.SHUT_WR)
        road.end_bell.ring()  # nobody waits for what does not come
        slot = road.lane.send(message)
        assert road.reading.acquire(False)
        if slot is None:  # with the present time, which takes more bytes than some, it is too large
            assert flight.add(message, row[1], time_ns() // 1_000_000, 1.0, None) is None
            road.close()
            return
        assert bool(road.link.outbox) == road.rung() == (hindered == 0)
        assert road.lane.shut(1.0)[0] == row[1] + 1
        assert road.lane.send(message) is None
        assert [(one[2], one[4]) for one in flight.part()] == ([] if slot.done else [(row[1], slot)])
        assert not slot.done or slot.result().partition == 1
    road.close()


def go_together(impl: Impl, flight: Any, message: Any, row: tuple[int, int], told: bytes, random: Random) -> None:
    """Of several who wait at once each has its own receipt, or a slot for it; nobody is forgotten."""
    road = Road(impl.pulsar, flight)
    if not road.open(row[1]):  # nobody opens the twin's
        road.close()
        return
    right = b"".join(impl.pulsar.encode_receipt(row[0], row[1] + place, 3, place) for place in range(3))
    at = random.choice([0, len(told), len(right)])
    said = (told[:ROOM] + right, right[:at] + told[:ROOM] + right[at:])[random.randrange(2)]
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(road.lane.send(message))) for _ in range(3)]
    for thread in threads:
        thread.start()
    cut = random.randrange(len(said) + 1)
    road.peer.sendall(said[:cut])
    road.peer.sendall(said[cut:])
    road.end_bell.ring()  # nobody waits for what does not come
    for thread in threads:
        thread.join()
    assert not road.connection.lent
    assert road.reading.acquire(False)
    road.lane.shut(1.0)
    slots = [slot for slot in found if slot is not None]  # None: as above, it is too large
    waiting = [slot for slot in slots if not slot.done]
    assert len(found) == 3
    assert all(slot.result().ledger >= 0 for slot in slots if slot.done)
    assert sorted(map(id, waiting)) == sorted(id(one[4]) for one in flight.part())
    road.close()


def join_batch(impl: Impl, messages: list[Any], random: Random) -> None:
    """Those that join an open batch are in it as if they had been added."""
    builder, added = impl.pulsar.BatchBuilder(5, 1200), impl.pulsar.BatchBuilder(5, 1 << 20)
    token = builder.open(9)
    joined = [message for message in messages if builder.join(message, token) >= 0]
    assert builder.shut() == 9 + len(joined)
    assert builder.join((b"", None, None, 0, None, -1, False), token) == -1
    assert added.add_many(joined, 0, 9) == len(joined)
    payload, count = builder.seal()
    assert (payload, count) == added.seal()
    ids = [impl.pulsar.MessageId(7, token, 3, index, count) for index in range(count)]
    assert impl.pulsar.MessageId.of_batch(7, token, 3, 0, count, count) == ids
    if count:
        batch = read_back(impl, payload, count)
        assert [message.body for message in batch] == [message[0] for message in joined]
