"""From entries, and messages in parts, to messages."""

from __future__ import annotations

import zlib
from typing import Any

from mqclient.pulsar.chunks import Whole
from mqclient.pulsar.unpacking import unpacked


def entry(codec: Any, payload: bytes, **more: Any) -> Any:
    metadata = codec.pulsar.encode_metadata("p", 0, 1, **more)
    [event] = codec.pulsar.FrameReader().feed(codec.pulsar.encode_send(1, 0, metadata, payload))
    return event[-1]


def test_an_entry(codec: Any) -> None:
    plain = entry(codec, b"x")
    found, messages = unpacked(codec.pulsar, plain)
    assert found is plain
    assert [message.body for message in messages] == [b"x"]
    packed = entry(codec, zlib.compress(b"body"), compression=2, uncompressed_size=4)
    assert [message.body for message in unpacked(codec.pulsar, packed)[1]] == [b"body"]
    unknown = entry(codec, b"x", compression=9, uncompressed_size=4)
    assert unpacked(codec.pulsar, unknown)[1].corrupt is not None


def test_a_whole_in_parts(codec: Any) -> None:
    data = zlib.compress(bytes(6 << 20), 0)
    last = entry(codec, data[-10:], compression=2, uncompressed_size=6 << 20, uuid="u", num_chunks=2, chunk_id=1)
    found, messages = unpacked(codec.pulsar, Whole(last, data))
    assert found is last
    assert [len(message.body) for message in messages] == [6 << 20]
