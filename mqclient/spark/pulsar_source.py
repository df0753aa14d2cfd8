"""Owns reading Pulsar for Spark: where topics end, what tasks get, and exact ranges as record batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final, NamedTuple

from mqclient import pulsar
from mqclient.errors import ConfigError, DeadlineError
from mqclient.spark import schema
from mqclient.spark.arrow import Maker, Piece, gathered
from mqclient.spark.clients import CLIENTS
from mqclient.spark.options import EARLIEST, PULSAR_SOURCE, Position, ReadOptions, Secret

FORMAT: Final = "mq-pulsar"
COLUMNS: Final = schema.PULSAR
OPTIONS: Final = PULSAR_SOURCE
KEY: Final = "p"
WINDOW: Final = 2000
"""Messages that brokers may send ahead of a task."""

Place = tuple[int, int, int]
"""(ledger, entry, batch index) of the last message that is behind; an index of -1 means the whole entry."""
BEGIN: Final[Place] = (-1, -1, -1)


class Range(NamedTuple):
    """The messages of one topic or partition after `after` up to and including `upto`."""

    topic: str
    after: Place
    upto: Place


def client(address: str, token: Secret | None) -> AbstractContextManager[pulsar.Client]:
    """This process' client of this service."""

    def make() -> pulsar.Client:
        return pulsar.Client(address, auth=None if token is None else pulsar.token(token.reveal()))

    return CLIENTS.borrow((FORMAT, address, token), make)


class Heads:
    """Looks where topics and partitions end, over readers that stay open and ask for no message."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._open = ExitStack()
        self._readers: dict[str, pulsar.Reader] = {}
        self._client: pulsar.Client | None = None

    def look(self) -> dict[str, Place]:
        """Of each topic or partition the place of its last message, BEGIN if it is empty."""
        options = self._options
        if self._client is None:
            self._client = self._open.enter_context(client(options.address, options.token))
        found = {}
        for name in options.topics:
            for topic in self._client.partitions(name, options.timeout):
                last = self._reader(self._client, topic).last_message_id(options.timeout)
                found[topic] = BEGIN if last is None else (last.ledger, last.entry, last.batch_index)
        return found

    def close(self) -> None:
        self._readers.clear()
        self._client = None
        self._open.close()

    def _reader(self, client: pulsar.Client, topic: str) -> pulsar.Reader:
        reader = self._readers.get(topic)
        if reader is None:
            opening = client.reader(topic, start="latest", receiver_queue=0, timeout=self._options.timeout)
            reader = self._readers[topic] = self._open.enter_context(opening)
        return reader


def plan(options: ReadOptions) -> list[Range]:
    """The tasks of a batch read."""
    heads = Heads(options)
    try:
        there = heads.look()
    finally:
        heads.close()
    starts = resolve(options.start or EARLIEST, there, "startingOffsets")
    return ranges(starts, resolve(options.end, there, "endingOffsets"))


def stream_ranges(
    options: ReadOptions, starts: Mapping[str, Place], stops: Mapping[str, Place], there: Mapping[str, Place]
) -> list[Range]:
    """The tasks of a batch of a stream; a topic that was made anew is read from its beginning."""
    again = {topic: BEGIN for topic in stops if behind(stops[topic], starts.get(topic, BEGIN))}
    return ranges({**starts, **again}, stops)


def resolve(position: Position, there: Mapping[str, Place], what: str, *, clamp: bool = False) -> dict[str, Place]:
    """The last message that is behind, of each topic: symbolic or named; topics left out begin first and end last.

    `clamp`: topics that are not there are passed over.
    """
    if isinstance(position, str):
        return {topic: BEGIN if position == EARLIEST else there[topic] for topic in there}
    wanted = flat(position, what)
    unknown = sorted(set(wanted) - set(there))
    if unknown and not clamp:
        raise ConfigError(f"option {what}: {unknown[0]} is not read here; there are {', '.join(sorted(there))}.")
    return {topic: wanted.get(topic, BEGIN if what == "startingOffsets" else there[topic]) for topic in there}


def flat(nested: Mapping[str, Any], what: str) -> dict[str, Place]:
    """{"topic": [ledger, entry, batch index]}, or a whole stream offset with these under "p"; null is the beginning."""
    found: dict[str, Place] = {}
    try:
        for topic, place in (nested["p"] if nested.get("v") == 1 else nested).items():
            ledger, entry, index = BEGIN if place is None else place
            found[topic if "://" in topic else f"persistent://public/default/{topic}"] = (ledger, entry, index)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ConfigError(f'option {what}: {nested} is not of the form {{"topic": [ledger, entry, index]}}.') from None
    return found


def nested(places: Mapping[str, Place]) -> dict[str, Any]:
    """The inverse of `flat`, in one order always: Spark compares offsets as text."""
    return {topic: None if places[topic] == BEGIN else list(places[topic]) for topic in sorted(places)}


def ranges(starts: Mapping[str, Place], stops: Mapping[str, Place]) -> list[Range]:
    """What lies between, where anything does."""
    return [
        Range(topic, starts.get(topic, BEGIN), stops[topic])
        for topic in sorted(stops)
        if _order(starts.get(topic, BEGIN)) < _order(stops[topic])
    ]


def read(options: ReadOptions, part: Range, arrow_schema: Any) -> Iterator[Any]:
    """All record batches of a range."""
    maker = Maker(arrow_schema, schema.by_name(COLUMNS))
    return gathered(_pieces(options, part, maker), maker, options.batch_rows, options.batch_bytes)


def _pieces(options: ReadOptions, part: Range, maker: Maker) -> Iterator[Piece]:
    after: Any = (
        "earliest" if part.after == BEGIN else pulsar.MessageId(part.after[0], part.after[1], -1, part.after[2])
    )
    given = {"start": after, "by_batch": True, "receiver_queue": WINDOW, "timeout": options.timeout}
    with client(options.address, options.token) as borrowed, borrowed.reader(part.topic, **given) as reader:
        place, reached = part.after, False
        while not reached:
            batch = reader.receive_batch(options.timeout)
            if batch is None:
                raise DeadlineError(
                    f"{part.topic}: nothing came for {options.timeout:g} s after {place}, and the end {part.upto} is "
                    "not reached (option timeoutSeconds); was the topic trimmed, or made anew?"
                )
            place = (batch.entry.ledger, batch.entry.entry, -1)
            reached = place[:2] >= part.upto[:2]
            first, last = _rows(batch, part)
            if place[:2] <= part.upto[:2] and first < last:
                yield Piece(batch.columns(maker.native), len(batch), _same(batch.entry, part), first, last)


def _same(entry: Any, part: Range) -> dict[str, Any]:
    """What all messages of an entry have in common."""
    number = part.topic.rpartition("-partition-")[2]
    return {
        "topic": part.topic,
        "partition": int(number) if number.isdecimal() else -1,
        "ledgerId": entry.ledger,
        "entryId": entry.entry,
        "producerName": entry.producer_name,
    }


def _rows(batch: Any, part: Range) -> tuple[int, int]:
    """Which rows of an entry are meant: all, but for the entries in which the range begins and ends."""
    here = (batch.entry.ledger, batch.entry.entry)
    first, last = 0, len(batch)
    if here == part.after[:2] and part.after[2] >= 0:
        first = sum(message.batch_index <= part.after[2] for message in batch)
    if here == part.upto[:2] and part.upto[2] >= 0:
        last = sum(message.batch_index <= part.upto[2] for message in batch)
    return first, last


def _order(place: Place) -> tuple[int, int, float]:
    """An index of -1 means the whole entry, hence its last message."""
    return place[0], place[1], float("inf") if place[2] < 0 <= place[0] else place[2]


def behind(one: Place, other: Place) -> bool:
    """Whether a place lies before another."""
    return _order(one) < _order(other)


def heads(there: Mapping[str, Place]) -> dict[str, Place]:
    return dict(there)


def firsts(there: Mapping[str, Place]) -> dict[str, Place]:
    """Where topics begin that appear while a stream runs."""
    return dict.fromkeys(there, BEGIN)
