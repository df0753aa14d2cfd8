"""Pulsar's codec, per message: a frame to messages, messages to a batch, columns both ways."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.support import Compare, Contender, floor, twins

native, pure = twins("pulsar")

COUNT = 1000
BODIES = [bytes([place & 0xFF]) * 100 for place in range(COUNT)]
PROPERTIES = {"color": "red", "size": "17", "origin": "warehouse-7", "trace": "4f1c2a9be0"}


@cache
def frame(kind: str) -> bytes:
    """A MESSAGE with a batch of 100 B bodies: bare, or with a key and four properties each."""
    builder = native.BatchBuilder()
    for place, body in enumerate(BODIES):
        if kind == "rich":
            builder.add(body, f"key-{place}", PROPERTIES, 1700000000000 + place, None, place)
        else:
            builder.add(body, sequence_id=place)
    payload, count = builder.seal()
    metadata = native.encode_metadata("producer", 0, 1700000000000, num_messages=count)
    stored = native.encode_send(0, 0, metadata, payload, num_messages=count)
    ((*_, entry),) = native.FrameReader().feed(stored)
    found: bytes = native.encode_message(1, 5, 7, entry.stored, partition=-1)
    return found


@cache
def file(kind: str) -> str:
    """The frame where the floor reads it."""
    path = Path(tempfile.mkdtemp(prefix="mqclient-bench-")) / kind
    path.write_bytes(frame(kind))
    return str(path)


def entry(module: Any, kind: str) -> Any:
    ((_, found),) = module.FrameReader().feed(frame(kind))
    return found


def reading(module: Any, kind: str, touch: Any) -> Contender:
    """From the frame's bytes on; `touch` gets the list of messages."""

    def run(feed: Any, decode: Any) -> None:
        ((_, found),) = feed(frame(kind))
        touch(list(decode(found)))

    return Contender(run, lambda: (module.FrameReader().feed, module.decode_messages))


def bodies(messages: list[Any]) -> None:
    for message in messages:
        message.body  # noqa: B018


def everything(messages: list[Any]) -> None:
    for message in messages:
        message.body, message.key, message.properties, message.event_time  # noqa: B018


def bench_frame_to_list(compare: Compare) -> None:
    compare(
        "pulsar.frame_to_list",
        per=COUNT,
        native=reading(native, "bare", bodies),
        pure=reading(pure, "bare", bodies),
        floor=floor("pulsar", "bodies", file("bare")),
        asked="<= 125 ns or <= 5 x floor; pure >= 25 x",
    )


def bench_everything(compare: Compare) -> None:
    compare(
        "pulsar.everything",
        per=COUNT,
        native=reading(native, "rich", everything),
        pure=reading(pure, "rich", everything),
        asked="pure >= 25 x where honest",
    )


def bench_lazy(compare: Compare) -> None:
    def lazy(module: Any) -> Contender:
        def run(feed: Any, decode: Any) -> None:
            ((_, found),) = feed(frame("bare"))
            decode(found)

        return Contender(run, lambda: (module.FrameReader().feed, module.decode_messages))

    compare(
        "pulsar.lazy",
        per=COUNT,
        native=lazy(native),
        pure=lazy(pure),
        floor=floor("pulsar", "walk", file("bare")),
        asked="<= 4 x the C walk",
    )


@pytest.mark.parametrize("kind", ["bare", "rich"])
def bench_columns(compare: Compare, kind: str) -> None:
    """What the floor copies: body, key, sequence id, event time; from the frame on."""
    names = ("body", "key", "sequence_id", "event_time")

    def making(module: Any) -> Contender:
        def run(feed: Any, decode: Any) -> None:
            ((_, found),) = feed(frame(kind))
            decode(found).columns(names)

        return Contender(run, lambda: (module.FrameReader().feed, module.decode_messages))

    compare(
        f"pulsar.columns.{kind}",
        per=COUNT,
        native=making(native),
        pure=making(pure),
        floor=floor("pulsar", "columns", file(kind)),
        asked="<= 2.5 x floor",
    )


def bench_batch(compare: Compare) -> None:
    """As `send_many` does it: one crossing."""

    def building(module: Any) -> Contender:
        def run(builder: Any) -> None:
            builder.add_many(BODIES, 0, 0)
            builder.seal()

        return Contender(run, lambda: (module.BatchBuilder(),))

    compare(
        "pulsar.batch",
        per=COUNT,
        native=building(native),
        pure=building(pure),
        floor=floor("pulsar", "encode", file("bare")),
        asked="<= 150 ns; pure >= 20 x",
    )


@pytest.mark.parametrize("kind", ["bare", "rich"])
def bench_batch_one_by_one(compare: Compare, kind: str) -> None:
    """As `send` does it: one crossing a message."""

    def building(module: Any) -> Contender:
        def run(builder: Any) -> None:
            add = builder.add
            for place, body in enumerate(BODIES):
                if kind == "rich":
                    add(body, "key", PROPERTIES, 1700000000000, None, place)
                else:
                    add(body, None, None, 0, None, place)
            builder.seal()

        return Contender(run, lambda: (module.BatchBuilder(),))

    compare(
        f"pulsar.add.{kind}",
        per=COUNT,
        native=building(native),
        pure=building(pure),
        asked="<= 150 ns; pure >= 20 x" if kind == "bare" else "",
    )


def bench_send(compare: Compare) -> None:
    """The sealed batch to a frame, checksum included."""
    metadata = native.encode_metadata("producer", 0, 1700000000000, num_messages=COUNT)
    payload = bytes(entry(native, "bare").payload)
    compare(
        "pulsar.send",
        per=COUNT,
        native=lambda: native.encode_send(0, 0, metadata, payload, num_messages=COUNT),
        pure=lambda: pure.encode_send(0, 0, metadata, payload, num_messages=COUNT),
    )


def bench_encode_columns(compare: Compare) -> None:
    columns = native.decode_messages(entry(native, "bare")).columns(("body",))
    compare(
        "pulsar.encode_columns",
        per=COUNT,
        native=lambda: native.encode_columns(columns, 0, COUNT, sequence_id=0),
        pure=lambda: pure.encode_columns(columns, 0, COUNT, sequence_id=0),
        floor=floor("pulsar", "encode", file("bare")),
        asked="<= 100 ns a row",
    )


def bench_unbatched(compare: Compare) -> None:
    """Entries of one message, many in a read."""
    metadata = native.encode_metadata("producer", 0, 1700000000000)
    ((*_, stored),) = native.FrameReader().feed(native.encode_send(0, 0, metadata, BODIES[0]))
    stream = b"".join(native.encode_message(1, 5, place, stored.stored, partition=-1) for place in range(COUNT))

    def unbatched(module: Any) -> Contender:
        def run(feed: Any, decode: Any) -> None:
            for _, found in feed(stream):
                for message in decode(found):
                    message.body  # noqa: B018

        return Contender(run, lambda: (module.FrameReader().feed, module.decode_messages))

    compare("pulsar.unbatched", per=COUNT, native=unbatched(native), pure=unbatched(pure))


def bench_ack(compare: Compare) -> None:
    """A grouped acknowledgement."""
    ids = [(5, place) for place in range(COUNT)]
    compare("pulsar.ack", per=COUNT, native=lambda: native.encode_ack(1, ids), pure=lambda: pure.encode_ack(1, ids))
