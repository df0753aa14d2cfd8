"""Permits, offsets in flight and grouped acknowledgements, per message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.support import Compare, Contender, twins

native, pure = twins("permits")
native_pulsar, pure_pulsar = twins("pulsar")

COUNT = 1000


def empty_calls(per_message: int) -> Contender:
    """The floor: native methods that do nothing, called as often."""

    def once(call: Callable[[], None]) -> None:
        for _ in range(COUNT):
            call()

    def twice(call: Callable[[], None]) -> None:
        for _ in range(COUNT):
            call()
            call()

    return Contender(twice if per_message == 2 else once, lambda: (native.Credits(1).pause,))


def granted(module: Any) -> Any:
    credits = module.Credits(COUNT)
    credits.reset(1)
    credits.flow()
    return credits


def arriving(module: Any) -> Callable[[], None]:
    credits = granted(module)

    def run(arrive: Any = credits.arrive, release: Any = credits.release) -> None:
        for _ in range(COUNT):
            arrive(1, 1)
            release(1, 0, 1)

    return run


def bench_arrive_and_release(compare: Compare) -> None:
    compare(
        "permits.arrive_release",
        per=COUNT,
        native=arriving(native),
        pure=arriving(pure),
        floor=empty_calls(2),
        asked="<= 80 ns a pair",
    )


def pulling(module: Any, batch: int) -> Contender:
    """What a pull reply brings goes in, its flow decision is asked, and message lists go out."""

    def setup() -> tuple[Any, list[list[int]]]:
        starts = range(0, COUNT, batch)
        return module.Outstanding(), [list(range(start, min(start + batch, COUNT))) for start in starts]

    def run(queue: Any, pulls: list[list[int]]) -> None:
        sizes = [100] * batch
        for offsets in pulls:
            queue.add_many(offsets, sizes[: len(offsets)])
            queue.over(1000, 1 << 27, 2000)
            queue.done_many(offsets)

    return Contender(run, setup)


@pytest.mark.parametrize("batch", [1, 32])
def bench_offsets_in_flight(compare: Compare, batch: int) -> None:
    compare(
        f"permits.outstanding.{batch}",
        per=COUNT,
        native=pulling(native, batch),
        pure=pulling(pure, batch),
        floor=empty_calls(1),
    )


def messages(pulsar: Any, entries: int) -> list[Any]:
    """COUNT messages in so many entries, as a subscription gets them."""
    size = COUNT // entries
    builder = pulsar.BatchBuilder(size, 1 << 20)
    builder.add_many([b"x" * 100] * size)
    payload, count = builder.seal()
    metadata = pulsar.encode_metadata("p", 0, 1, num_messages=count)
    (event,) = pulsar.FrameReader().feed(pulsar.encode_send(1, 0, metadata, payload, num_messages=count))
    stored = event[-1].stored
    whole = [pulsar.decode_messages(pulsar.Entry.from_stored(stored, 1, entry)) for entry in range(entries)]
    return [message for batch in whole for message in batch]


def acknowledging(module: Any, received: list[Any]) -> Contender:
    def run(acks: Any, received: list[Any]) -> None:
        add = acks.add
        for message in received:
            add(message)

    return Contender(run, lambda: (module.AckSet(2 * COUNT), received))


@pytest.mark.parametrize("entries", [1, COUNT])
def bench_acknowledge(compare: Compare, entries: int) -> None:
    compare(
        f"permits.ack_add.{COUNT // entries}",
        per=COUNT,
        native=acknowledging(native, messages(native_pulsar, entries)),
        pure=acknowledging(pure, messages(pure_pulsar, entries)),
        floor=empty_calls(1),
        asked="<= 60 ns",
    )


def telling(module: Any) -> Contender:
    def setup() -> tuple[Any]:
        acks = module.AckSet(2 * COUNT)
        for entry in range(COUNT):
            acks.add_id(1, entry)
        return (acks,)

    return Contender(lambda acks: acks.take(), setup)


def bench_take_acks(compare: Compare) -> None:
    compare("permits.ack_take", per=COUNT, native=telling(native), pure=telling(pure))
