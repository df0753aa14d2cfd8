"""Owns reading Pulsar for Spark: what tasks get, and exact ranges of messages as record batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

from mqclient.errors import DeadlineError
from mqclient.spark import schema
from mqclient.spark.access import pulsar_client as client
from mqclient.spark.arrow import Maker, Piece, gathered
from mqclient.spark.filters import Bounds
from mqclient.spark.plan import between
from mqclient.spark.pulsar_heads import FORMAT, Heads, ahead_of, reading
from mqclient.spark.pulsar_places import (
    BEGIN,
    Place,
    Range,
    advance,
    behind,
    cut,
    firsts,
    flat,
    heads,
    nested,
    ranges,
    resolve,
)
from mqclient.spark.read_options import PULSAR_SOURCE, ReadOptions

__all__ = ["FORMAT", "Heads", "advance", "behind", "client", "firsts", "flat", "heads", "nested", "resolve"]
"""Together with the rest of this module: what `stream.Tracker`, `formats` and the sink ask of a system."""

COLUMNS: Final = schema.PULSAR
OPTIONS: Final = PULSAR_SOURCE
KEY: Final = "p"
WINDOW: Final = 2000
"""Messages that brokers may send ahead of a task."""
FETCHED: Final = 64
"""Entries that a task takes at once, if so many wait."""
FEW: Final = 20
"""Entries for which permits by entry are quick enough: an entry comes whole, however many messages it holds."""


def plan(options: ReadOptions, bounds: Bounds | None = None) -> list[Range]:
    """The tasks of a batch read; `bounds`: what the query itself leaves out."""
    with closing(Heads(options)) as heads:
        _, starts, stops = between(heads, options, resolve)
        wholes = ranges(starts, stops)
        return split(options, heads, wholes if bounds is None else clipped(wholes, bounds))


def clipped(wholes: Iterable[Range], bounds: Bounds) -> list[Range]:
    """Without what a query's conditions leave out. Times narrow nothing here: producers' clocks set them."""
    found = []
    for whole in wholes:
        named = (("topic", whole.topic), ("partition", partition_of(whole.topic)))
        if bounds.impossible() or not all(bounds.allows(column, value) for column, value in named):
            continue
        least, most = bounds.least("ledgerId"), bounds.most("ledgerId")
        after = whole.after if least is None else max(whole.after, (least, -1, -1))
        upto = whole.upto if most is None else min(whole.upto, (most + 1, -1, -1))
        if behind(after, upto):
            found.append(Range(whole.topic, after, upto))
    return found


def split(options: ReadOptions, heads: Heads, wholes: list[Range]) -> list[Range]:
    """Cut into ranges of entries, by what the first entry of each range holds; whole ledgers where one cannot know."""
    if options.max_records is None and (options.min_partitions or 0) <= len(wholes):
        return wholes
    firsts = {whole: heads.first_after(whole.topic, whole.after, whole.upto) for whole in wholes}
    aheads = {whole: ahead_of(first, whole.upto) for whole, first in firsts.items() if first is not None}
    known = [one.steps for one in aheads.values() if one.steps is not None]
    sizes = {whole: one.steps or max(known, default=1) for whole, one in aheads.items()}
    total, found = sum(sizes.values()), []
    for whole, ahead in aheads.items():
        pieces = 1 if options.max_records is None else -(-int(sizes[whole] * ahead.rows) // options.max_records)
        pieces = max(pieces, round(sizes[whole] / total * (options.min_partitions or 1)))
        found += [whole] if pieces == 1 else cut(whole, heads.ledgers(whole), pieces)
    return found


def stream_ranges(
    options: ReadOptions,
    heads: Heads,
    starts: Mapping[str, Place],
    stops: Mapping[str, Place],
    there: Mapping[str, Place],
) -> list[Range]:
    """The tasks of a batch of a stream; a topic that was made anew is read from its beginning."""
    again = {topic: BEGIN for topic in stops if behind(stops[topic], starts.get(topic, BEGIN))}
    return split(options, heads, ranges({**starts, **again}, stops))


def read(options: ReadOptions, part: Range, arrow_schema: Any) -> Iterator[Any]:
    """All record batches of a range."""
    maker = Maker(arrow_schema, schema.by_name(COLUMNS))
    return gathered(_pieces(options, part), maker, options.batch_rows, options.batch_bytes)


def _pieces(options: ReadOptions, part: Range) -> Iterator[Piece]:
    given = reading(part.after, window(part), options.timeout)
    with client(options.access) as borrowed, borrowed.reader(part.topic, **given) as reader:
        place, reached = part.after, False
        while not reached:
            # All that wait at once: to fetch each by itself costs as much as to read it.
            batches: Sequence[Any] = reader.receive_many(FETCHED, options.timeout)
            if not batches:
                raise DeadlineError(
                    f"{part.topic}: nothing came for {options.timeout:g} s after {place}, and the end {part.upto} is "
                    "not reached (option timeoutSeconds); was the topic trimmed, or made anew?"
                )
            for batch in batches:
                entry = batch.entry
                place = (entry.ledger, entry.entry, -1)
                reached = place[:2] >= part.upto[:2]
                first, last = _rows(batch, part)
                if place[:2] <= part.upto[:2] and first < last:
                    size = entry.uncompressed_size or len(entry.payload)
                    yield Piece(batch, len(batch), size, _same(entry, part), first, last)


def window(part: Range) -> int:
    """How many messages brokers may send ahead: of a few entries no more, for what lies behind comes for nothing."""
    entries = part.upto[1] - part.after[1] + (part.after[2] >= 0)
    return entries if part.after[0] == part.upto[0] and 0 < entries <= FEW else WINDOW


def partition_of(topic: str) -> int:
    """Its number, -1 for what is no partition."""
    number = topic.rpartition("-partition-")[2]
    return int(number) if number.isdecimal() and "-partition-" in topic else -1


def _same(entry: Any, part: Range) -> dict[str, Any]:
    """What all messages of an entry have in common."""
    return {
        "topic": part.topic,
        "partition": partition_of(part.topic),
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
