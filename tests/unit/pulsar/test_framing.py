"""From a payload to frames: what the wire says about compression, ids, size and chunks."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from mqclient.core.compress import decompress
from mqclient.errors import ConfigError
from mqclient.pulsar.batch import Batch
from mqclient.pulsar.framing import FORMATS, Framer
from mqclient.pulsar.gathering import alone_fields
from mqclient.pulsar.options import ProducerOptions
from mqclient.pulsar.outgoing import prepare
from tests.support.pulsar_world import PulsarWorld

LIMIT = 5 << 20


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def framed(
    world: PulsarWorld, payload: bytes, *, limit: int = LIMIT, count: int = 1, first: int = 7, **options: Any
) -> list[Any]:
    """The SEND events of what one batch becomes."""
    framer = Framer(world.impl.pulsar, 4, ProducerOptions(name="mine", **options))
    framer.schema_version = options.get("schema")
    batch = made(world, count, first)
    framer.frame(batch, payload, limit, {"num_messages": count} if count > 1 else {})
    events: list[Any] = world.impl.pulsar.FrameReader().feed(batch.frame)
    return events


def made(world: PulsarWorld, count: int = 1, first: int = 7) -> Batch:
    client = world.client()
    with client.driver.enter():
        batch = Batch(client, -1, first, 0.0)
    batch.count = count
    return batch


@pytest.mark.parametrize("name", list(FORMATS))
def test_compressed(world: PulsarWorld, name: str) -> None:
    [event] = framed(world, b"abc" * 1000, compression=name)
    entry = event[-1]
    assert (entry.compression, entry.uncompressed_size) == (FORMATS[name][0], 3000)
    assert decompress(FORMATS[name][1], bytes(entry.payload), 3000) == b"abc" * 1000


def test_what_compression_would_not_help(world: PulsarWorld) -> None:
    [small] = framed(world, b"abc" * 300, compression="zlib")
    assert small[-1].compression == 0
    noise = Random(1).randbytes(2000)
    [event] = framed(world, noise, compression="lz4")
    assert (event[-1].compression, bytes(event[-1].payload)) == (0, noise)


def test_ids_of_a_batch(world: PulsarWorld) -> None:
    [event] = framed(world, b"payload", count=3)
    assert event[1:5] == (4, 7, 3, 9)
    assert event[-1].highest_sequence_id == 9
    [event] = framed(world, b"payload")
    assert (event[3], event[4]) == (1, 0)


def test_the_version_of_the_schema(world: PulsarWorld) -> None:
    [event] = framed(world, b"x", schema=b"\0\0\0\1")
    assert event[-1].schema_version == b"\0\0\0\1"


def test_too_large(world: PulsarWorld) -> None:
    with pytest.raises(ConfigError, match=r"3000 bytes: the broker takes 1000 .* chunking=True"):
        framed(world, bytes(3000), limit=1000)
    with pytest.raises(ConfigError, match=r"3000 bytes \(\d+ compressed\)"):
        framed(world, Random(1).randbytes(1500) + bytes(1500), limit=1000, compression="lz4")


def test_in_parts(world: PulsarWorld) -> None:
    body = bytes(range(256)) * 10
    events = framed(world, body, limit=1000, batching=False, chunking=True)
    entries = [event[-1] for event in events]
    assert b"".join(bytes(entry.payload) for entry in entries) == body
    assert [entry.chunk_id for entry in entries] == list(range(len(entries)))
    assert {(entry.num_chunks, entry.total_chunk_size, entry.uuid) for entry in entries} == {
        (len(entries), len(body), "mine-7")
    }
    assert {(event[2], event[5]) for event in events} == {(7, True)}


@pytest.mark.parametrize("first", [0, 7])
def test_only_the_last_part_has_the_sequence_id(world: PulsarWorld, first: int) -> None:
    """A broker that starts again takes for stored what it finds: the larger of an entry's two ids (-1 is none)."""
    events = framed(world, bytes(2500), limit=1000, batching=False, chunking=True, first=first)
    entries = [event[-1] for event in events]
    found = [max(entry.sequence_id, entry.highest_sequence_id or 0) for entry in entries]
    assert found == [first - 1] * (len(entries) - 1) + [first]
    assert {event[2] for event in events} == {first}, "commands and receipts"


def test_a_smaller_part_size(world: PulsarWorld) -> None:
    assert len(framed(world, bytes(1000), batching=False, chunking=True, chunk_size=200)) > 5
    assert len(framed(world, bytes(100), batching=False, chunking=True, chunk_size=200)) == 1
    with pytest.raises(ConfigError, match="no room"):
        framed(world, bytes(1000), batching=False, chunking=True, chunk_size=10)


def test_chunks_of_what_was_compressed(world: PulsarWorld) -> None:
    body = Random(2).randbytes(3000) + bytes(3000)
    events = framed(world, body, limit=1000, batching=False, chunking=True, compression="zlib")
    whole = b"".join(bytes(event[-1].payload) for event in events)
    assert decompress("zlib", whole, 6000) == body
    assert {(event[-1].uncompressed_size, event[-1].total_chunk_size) for event in events} == {(6000, len(whole))}


def test_alone_and_as_it_is(world: PulsarWorld) -> None:
    """The short way says what the long one says."""
    codec = world.impl.pulsar
    framer = Framer(codec, 4, ProducerOptions(name="mine"))
    for item in (prepare(b"x"), prepare(None, key=b"k", properties={"a": "b"}, event_time=5, ordering_key=b"o")):
        short, long = made(world), made(world)
        long.published_at = short.published_at
        assert framer.frame_alone(short, item, LIMIT)
        framer.frame(long, item[0] or b"", LIMIT, alone_fields(item))
        assert short.frame == long.frame


def test_what_cannot_go_the_short_way(world: PulsarWorld) -> None:
    item = prepare(bytes(100))
    for options in ({"compression": "zlib"}, {"chunking": True}, {"chunk_size": 50, "chunking": True}):
        framer = Framer(world.impl.pulsar, 4, ProducerOptions(name="mine", batching=False, **options))
        assert not framer.frame_alone(made(world), item, LIMIT)
    framer = Framer(world.impl.pulsar, 4, ProducerOptions(name="mine"))
    assert not framer.frame_alone(made(world), item, 90)
    framer.schema_version = b"1"
    assert not framer.frame_alone(made(world), item, LIMIT)


class Seal:
    """Turns payloads around, and says so."""

    overhead = 16

    def __init__(self) -> None:
        self.ivs = iter(range(100))

    def fields(self) -> dict[str, Any]:
        return {"encryption_keys": (b"\n\1k\x12\1v",), "encryption_param": b"%012d" % next(self.ivs)}

    def seal(self, fields: dict[str, Any], payload: Any) -> bytes:
        iv: bytes = fields["encryption_param"]
        return bytes(payload)[::-1] + iv + bytes(4)


def sealed(world: PulsarWorld, payload: bytes, limit: int, **options: Any) -> list[Any]:
    framer = Framer(world.impl.pulsar, 4, ProducerOptions(name="mine", **options))
    seal: Any = Seal()
    framer.sealer = seal
    batch = made(world)
    framer.frame(batch, payload, limit, {})
    return [event[-1] for event in world.impl.pulsar.FrameReader().feed(batch.frame)]


def test_a_payload_is_sealed_after_it_was_compressed(world: PulsarWorld) -> None:
    [entry] = sealed(world, bytes(3000), LIMIT, compression="zlib")
    assert entry.encrypted
    assert decompress("zlib", bytes(entry.payload)[-17::-1], 3000) == bytes(3000)


def test_what_a_seal_adds_counts(world: PulsarWorld) -> None:
    [entry] = sealed(world, bytes(900), 1000)
    most = 1000 - len(entry.metadata) - 16
    assert len(sealed(world, bytes(most), 1000)) == 1
    with pytest.raises(ConfigError, match="the broker takes 1000"):
        sealed(world, bytes(most + 1), 1000)


def test_each_part_has_a_seal_of_its_own(world: PulsarWorld) -> None:
    body = bytes(range(250)) * 10
    parts = sealed(world, body, 1000, batching=False, chunking=True)
    assert b"".join(bytes(part.payload)[-17::-1] for part in parts) == body
    assert len({bytes(part.payload)[-16:] for part in parts}) == len(parts) > 2
