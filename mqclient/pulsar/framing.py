"""Owns the way from a payload to SEND frames: metadata, compression, encryption, the size limit, chunks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from mqclient.core.compress import compress, lookup
from mqclient.errors import ConfigError
from mqclient.pulsar.batch import Batch
from mqclient.pulsar.codes import CompressionType

if TYPE_CHECKING:
    from mqclient.pulsar.options import ProducerOptions
    from mqclient.pulsar.outgoing import Item
    from mqclient.pulsar.sealing import Sealer

FORMATS: Final[Mapping[str, tuple[int, str]]] = {
    "lz4": (CompressionType.LZ4, "lz4-block"),
    "zlib": (CompressionType.ZLIB, "zlib"),
    "zstd": (CompressionType.ZSTD, "zstd"),
    "snappy": (CompressionType.SNAPPY, "snappy"),
}
"""What users write -> the wire's number, and the name of the format."""


class Framer:
    """One producer's. `name` and `schema_version` are what the broker answered last."""

    __slots__ = ("_as_it_is", "_chunk_size", "_chunking", "_codec", "_kind", "_producer_id", "_shrink", "_threshold",
                 "name", "schema_version", "sealer")  # fmt: skip

    def __init__(self, codec: Any, producer_id: int, options: ProducerOptions) -> None:
        self._codec = codec
        self._producer_id = producer_id
        self._chunking = options.chunking
        self._chunk_size = options.chunk_size
        self._threshold = options.compress_above
        self._kind, self._shrink = FORMATS[options.compression] if options.compression else (0, "")
        if self._shrink:
            lookup(self._shrink)  # a library that is missing is told when the producer is made
        self.name = options.name or ""
        self.schema_version: bytes | None = None
        self.sealer: Sealer | None = None
        self._as_it_is = not (self._shrink or self._chunking or self._chunk_size)

    def train(self, sequence_id: int, published_at: int, most: int, limit: int) -> Any:
        """For messages that travel as they are, in entries of their own; None: these do not."""
        if not self._as_it_is or self.sealer is not None:
            return None
        return self._codec.EntryTrain(
            self._producer_id, self.name, sequence_id, published_at, most, limit, self.schema_version
        )

    def flight(self, partition: int, limit: int) -> Any:
        """For messages that travel as they are, in entries of their own; None: these do not."""
        if not self._as_it_is or self.sealer is not None:
            return None
        return self._codec.EntryFlight(self._producer_id, self.name, partition, limit, self.schema_version)

    def frame_alone(self, batch: Batch, item: Item, limit: int) -> bool:
        """As `frame`, of a message of its own that travels as it is; False: it does not, or is too large."""
        if not self._as_it_is or self.schema_version is not None or self.sealer is not None:
            return False
        body, key, properties, event_time, ordering_key, _, key_b64 = item
        codec, number = self._codec, batch.sequence_id
        if key is None and properties is None and ordering_key is None and body is not None and not event_time:
            metadata = codec.encode_metadata(self.name, number, batch.published_at)
        else:
            metadata = codec.encode_metadata(
                self.name,
                number,
                batch.published_at,
                properties=properties,
                partition_key=key,
                key_b64=key_b64 or None,
                ordering_key=ordering_key,
                event_time=event_time,
                null_value=body is None,
            )
        payload = b"" if body is None else body
        if len(metadata) + len(payload) > limit:
            return False
        batch.frame = codec.encode_send(self._producer_id, number, metadata, payload)
        return True

    def frame(self, batch: Batch, payload: Any, limit: int, fields: dict[str, Any]) -> int:
        """Give the batch its frame, ready to be written again and again; how many bytes it is. Too large: it raises.

        `fields` are the arguments of `encode_metadata` that the caller knows.
        """
        size = len(payload)
        if self._shrink and size > self._threshold:
            small = compress(self._shrink, payload)
            if len(small) < size:
                fields["compression"] = self._kind
                fields["uncompressed_size"] = size
                payload = small
        if self.schema_version is not None:
            fields.setdefault("schema_version", self.schema_version)
        last = batch.last_sequence_id
        if last > batch.sequence_id and not batch.scattered:
            fields["highest_sequence_id"] = last
        sealer = self.sealer
        if sealer is not None:
            fields |= sealer.fields()
        metadata = self._metadata(batch, batch.sequence_id, fields)
        around = len(metadata) if sealer is None else len(metadata) + sealer.overhead
        most = limit if not self._chunk_size else min(limit, self._chunk_size)
        if self._chunking and around + len(payload) > most:
            return self._chunks(batch, payload, most - around, fields)
        if around + len(payload) > limit:
            raise _too_large(size, len(payload), limit, self._chunking)
        if sealer is not None:
            payload = sealer.seal(fields, payload)
        batch.frame = self._codec.encode_send(
            self._producer_id,
            batch.sequence_id,
            metadata,
            payload,
            num_messages=fields.get("num_messages", 0),
            highest_sequence_id=fields.get("highest_sequence_id"),
            txn=fields.get("txn"),
        )
        return len(payload)

    def _metadata(self, batch: Batch, sequence_id: int, fields: dict[str, Any]) -> bytes:
        made: bytes = self._codec.encode_metadata(self.name, sequence_id, batch.published_at, **fields)
        return made

    def _chunks(self, batch: Batch, payload: Any, room: int, fields: dict[str, Any]) -> int:
        """Entries of one message, in a row: nothing of this producer may come in between."""
        if room < 1:
            raise ConfigError(f"the properties and keys of a message leave no room for its body: {room} bytes")
        view = memoryview(payload)
        count = -(-len(view) // room)
        fields |= {
            "uuid": f"{self.name}-{batch.sequence_id}",
            "num_chunks": count,
            "total_chunk_size": len(view),
        }
        fields.setdefault("uncompressed_size", len(view))
        # Race: a broker dies between two parts of a message. As it comes back it learns sequence ids from the metadata
        # of all that is stored (4.2.4; while it runs, only from last parts): it takes this message for stored, answers
        # its last part, sent again, as a duplicate, and nobody ever gets it. So the others name the message before.
        numbers = [batch.sequence_id - 1] * (count - 1) + [batch.sequence_id]
        if batch.sequence_id == 0:  # no message before: -1. A broker takes the larger one of two, so both are told
            fields["highest_sequence_id"] = -1
        frames = []
        for chunk_id, sequence_id in enumerate(numbers):
            part: Any = view[chunk_id * room : (chunk_id + 1) * room]
            fields["chunk_id"] = chunk_id
            if self.sealer is not None:
                fields |= self.sealer.fields()
                part = self.sealer.seal(fields, part)
            metadata = self._metadata(batch, sequence_id, fields)
            frames.append(
                self._codec.encode_send(
                    self._producer_id, batch.sequence_id, metadata, part, is_chunk=True, txn=fields.get("txn")
                )
            )
        batch.frame = b"".join(frames)
        batch.chunks = count
        return len(view)


def _too_large(size: int, sent: int, limit: int, chunking: bool) -> ConfigError:
    shrunk = f" ({sent} compressed)" if sent != size else ""
    cure = "" if chunking else "; chunking=True, with batching=False, sends it in parts"
    return ConfigError(f"a message of {size} bytes{shrunk}: the broker takes {limit} with its metadata{cure}")
