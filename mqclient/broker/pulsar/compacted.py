"""Owns the compacted view of a topic: of each key the last message, keyless ones gone, ids as they were.

As upstream: an empty message deletes its key; of a batch of which something is left the others stay in place as empty
messages marked so, and its metadata lists what is left. What cannot be read (encrypted, damaged) stays as it is.
"""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from mqclient import _schema
from mqclient.broker.pulsar.cursor import ranges
from mqclient.core.compress import compress, decompressor
from mqclient.errors import ConfigError, ProtocolError

if TYPE_CHECKING:
    from mqclient.broker.pulsar.topics import Topic
    from mqclient.broker.store import Log

COMPRESSIONS = {1: "lz4-block", 2: "zlib", 3: "zstd", 4: "snappy"}
STEP = 500
"""Entries looked at in one go; others are served between."""
_decompress = decompressor(COMPRESSIONS)


@dataclass(slots=True)
class Compacted:
    """What a topic was compacted to: up to the horizon only these entries are left, some of them with messages gone."""

    horizon: int
    """The last entry that was looked at."""
    entries: dict[int, bytes] = field(default_factory=dict)
    """What is left, in order; empty bytes: as it is in the log."""

    def leaves_out(self, entry: int) -> bool:
        return entry <= self.horizon and entry not in self.entries

    def record(self, entry: int, log: Log) -> bytes | memoryview:
        """The bytes of an entry that is left, or lies behind the horizon."""
        return self.entries.get(entry) or log.record(entry)

    def last_seen(self, last: int) -> int:
        """The last entry that a reader of this view sees, of a topic that ends there; -1 if there is none."""
        return last if last > self.horizon else next(reversed(self.entries), -1)

    def dump(self) -> dict[str, Any]:
        """As JSON has it: ranges of what is left as it is, and the new bytes of the others."""
        rewritten = {entry: b64encode(record).decode() for entry, record in self.entries.items() if record}
        return {"horizon": self.horizon, "left": ranges(self.entries), "rewritten": list(rewritten.items())}

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> Compacted:
        """The reverse."""
        view = cls(dumped["horizon"])
        for first, last in dumped["left"]:
            view.entries.update(dict.fromkeys(range(first, last + 1), b""))
        view.entries.update((entry, b64decode(record)) for entry, record in dumped["rewritten"])
        return view


class Single(NamedTuple):
    """One message of a batch: its metadata, its bytes."""

    metadata: Any
    payload: bytes

    @property
    def key(self) -> str | None:
        return self.metadata.partition_key if self.metadata.HasField("partition_key") else None


def compact(topic: Topic, impl: Any) -> Iterator[Compacted | None]:
    """Step by step; the view comes last, None before it."""
    start, horizon = topic.log.first, topic.readable - 1
    latest: dict[str, tuple[int, int]] = {}
    for entry in range(start, horizon + 1):
        for index, key, empty in _keys(topic, entry, impl):
            if key is not None and empty:
                latest.pop(key, None)
            elif key is not None:
                latest[key] = entry, index
        if entry % STEP == 0:
            yield None
    left: dict[int, set[int]] = {}
    for at, index in latest.values():
        left.setdefault(at, set()).add(index)
    view = Compacted(horizon)
    for entry in range(start, horizon + 1):
        kept = None if entry in topic.hidden else _kept(topic, entry, left.get(entry, set()), impl)
        if kept is not None:
            view.entries[entry] = kept
        if entry % STEP == 0:
            yield None
    yield view


def _keys(topic: Topic, entry: int, impl: Any) -> Iterator[tuple[int, str | None, bool]]:
    """Index, key and emptiness of each message of an entry."""
    stored = impl.pulsar.Entry.from_stored(topic.log.record(entry))
    if entry in topic.hidden or _is_opaque(stored):
        return
    if not stored.batched:
        yield -1, stored.partition_key, not len(stored.payload)
        return
    for index, single in enumerate(_singles(stored) or ()):
        yield index, single.key, not single.payload


def _is_opaque(stored: Any) -> bool:
    """Whether the broker cannot look inside."""
    return bool(stored.corrupt is not None or stored.encrypted or stored.chunk_id is not None)


def _singles(stored: Any) -> list[Single] | None:
    """The messages of a batch; None if its bytes are not what they should be."""
    make: Any = _schema.message("SingleMessageMetadata")
    data = bytes(stored.payload)
    found: list[Single] = []
    try:
        if stored.compression:
            data = _decompress(stored.compression, memoryview(data), stored.uncompressed_size)
        at = 0
        for _ in range(stored.num_messages):
            (size,) = struct.unpack_from(">I", data, at)
            metadata = make.FromString(data[at + 4 : at + 4 + size])
            at += 4 + size
            found.append(Single(metadata, data[at : at + metadata.payload_size]))
            at += metadata.payload_size
    except (ProtocolError, ConfigError, struct.error, ValueError):
        return None
    except Exception as error:  # protobuf's DecodeError, whose class differs between its versions
        if type(error).__name__ != "DecodeError":
            raise
        return None
    return found if at <= len(data) else None


def _kept(topic: Topic, entry: int, wanted: set[int], impl: Any) -> bytes | None:
    """What is left of an entry: None: nothing, empty bytes: all of it, else its new bytes."""
    stored = impl.pulsar.Entry.from_stored(topic.log.record(entry))
    if _is_opaque(stored):
        return b""
    if not stored.batched:
        return b"" if wanted else None
    singles = _singles(stored)
    if singles is None or len(wanted) == len(singles):
        return b""
    return _without(stored, singles, wanted, impl) if wanted else None


def _without(stored: Any, singles: list[Single], wanted: set[int], impl: Any) -> bytes:
    """The batch with only these messages in it, the others empty and marked."""
    gone: Any = _schema.message("SingleMessageMetadata")
    parts: list[bytes] = []
    for index, single in enumerate(singles):
        kept = index in wanted
        metadata = single.metadata if kept else gone(payload_size=0, compacted_out=True)
        written = metadata.SerializeToString()
        parts += [struct.pack(">I", len(written)), written, single.payload if kept else b""]
    payload = b"".join(parts)
    make: Any = _schema.message("MessageMetadata")
    metadata = make.FromString(stored.metadata)
    metadata.uncompressed_size = len(payload)
    del metadata.compacted_batch_indexes[:]
    metadata.compacted_batch_indexes.extend(sorted(wanted))
    if stored.compression:
        payload = compress(COMPRESSIONS[stored.compression], payload)
    frame = impl.pulsar.encode_send(0, 0, metadata.SerializeToString(), payload)
    [event] = impl.pulsar.FrameReader(len(frame)).feed(frame)
    rewritten: bytes = event[-1].stored
    return rewritten
