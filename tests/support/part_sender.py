"""A producer that writes parts of messages one by one, in whatever order a test wants."""

from __future__ import annotations

from typing import Any

from tests.support.pulsar_world import PulsarWorld, RawClient


class PartSender:
    """Writes parts one by one, in whatever order a test wants."""

    def __init__(self, world: PulsarWorld, topic: str = "t", name: str = "raw") -> None:
        self.raw = RawClient(world)
        self.name = name
        self.raw.ask("PRODUCER", topic=topic, producer_id=1)
        self.number = 0

    def part(self, uuid: str, index: int, total: int, payload: bytes = b"x", *, age: int = 0, **more: Any) -> None:
        codec, world = self.raw.codec, self.raw.world.world
        metadata = codec.encode_metadata(
            self.name,
            self.number,
            world.wall_ms - age,
            uuid=uuid,
            num_chunks=total,
            chunk_id=index,
            total_chunk_size=total * len(payload),
            **more,
        )
        self.raw.write(codec.encode_send(1, self.number, metadata, payload, is_chunk=True))
        self.number += 1

    def whole(self, uuid: str, payloads: list[bytes], **more: Any) -> None:
        for index, payload in enumerate(payloads):
            self.part(uuid, index, len(payloads), payload, **more)
