"""Owns places in Pulsar topics: their order, their JSON, and what lies between two of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

from mqclient.errors import ConfigError
from mqclient.spark.options import EARLIEST, Position

Place = tuple[int, int, int]
"""(ledger, entry, batch index) of the last message that is behind; an index of -1 means the whole entry."""
BEGIN: Final[Place] = (-1, -1, -1)


class Range(NamedTuple):
    """The messages of one topic or partition after `after` up to and including `upto`."""

    topic: str
    after: Place
    upto: Place


def full(topic: str) -> str:
    """
    >>> full("orders"), full("shop/eu/orders")
    ('persistent://public/default/orders', 'persistent://shop/eu/orders')
    """
    if topic.startswith("non-persistent://"):
        raise ConfigError(f"topic {topic!r} keeps nothing that could be read again: a source needs a persistent one.")
    if "://" in topic:
        return topic
    return f"persistent://{topic}" if topic.count("/") == 2 else f"persistent://public/default/{topic}"


def resolve(position: Position, there: Mapping[str, Place], what: str, *, clamp: bool = False) -> dict[str, Place]:
    """The last message that is behind, of each topic: symbolic or named; topics left out begin first and end last.

    `clamp`: topics that are not there are passed over, and what lies behind the end becomes the end.
    """
    if isinstance(position, str):
        return {topic: BEGIN if position == EARLIEST else there[topic] for topic in there}
    wanted = flat(position, what)
    unknown = sorted(set(wanted) - set(there))
    if unknown and not clamp:
        raise ConfigError(f"option {what}: {unknown[0]} is not read here; there are {', '.join(sorted(there))}.")
    found = {topic: wanted.get(topic, BEGIN if what == "startingOffsets" else there[topic]) for topic in there}
    beyond = [topic for topic in sorted(found) if found[topic][:2] > there[topic][:2]]
    if beyond and not clamp:
        topic = beyond[0]
        raise ConfigError(
            f"option {what}: {list(found[topic])} of {topic} is not there: it ends at {list(there[topic])}. "
            'With .option("failOnDataLoss", "false") its end is taken.'
        )
    return found | {topic: there[topic] for topic in beyond}


def flat(nested: Mapping[str, Any], what: str) -> dict[str, Place]:
    """{"topic": [ledger, entry, batch index]}, or a whole stream offset with these under "p"; null is the beginning."""
    found: dict[str, Place] = {}
    try:
        for topic, place in (nested["p"] if nested.get("v") == 1 else nested).items():
            ledger, entry, index = BEGIN if place is None else place
            found[full(topic)] = (int(ledger), int(entry), int(index))
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
        if behind(starts.get(topic, BEGIN), stops[topic])
    ]


def order(place: Place) -> tuple[int, int, float]:
    """An index of -1 means the whole entry, hence its last message."""
    return place[0], place[1], float("inf") if place[2] < 0 <= place[0] else place[2]


def behind(one: Place, other: Place) -> bool:
    """Whether a place lies before another."""
    return order(one) < order(other)


def heads(there: Mapping[str, Place]) -> dict[str, Place]:
    return dict(there)


def firsts(there: Mapping[str, Place]) -> dict[str, Place]:
    """Where topics begin that appear while a stream runs."""
    return dict.fromkeys(there, BEGIN)


def advance(begin: Place, steps: int) -> Place:
    """So many entries further, whole ones; where the ledger has less, its end."""
    return begin[0], begin[1] + steps, -1


def cut(whole: Range, ledgers: list[tuple[int, int]], pieces: int) -> list[Range]:
    """A range in about so many pieces of entries. `ledgers`: in order, each with its first entry that lies in the
    range; the last one is that of the end.

    >>> t = "t"
    >>> [(one.after, one.upto) for one in cut(Range(t, (7, 3, -1), (7, 9, 4)), [(7, 4)], 2)]
    [((7, 3, -1), (7, 6, -1)), ((7, 6, -1), (7, 9, 4))]
    """
    marks: list[Place] = [(ledger, first - 1, -1) for ledger, first in ledgers[1:]]
    ledger, first = ledgers[-1]
    entries = whole.upto[1] - first + 1
    inside = max(1, min(pieces - len(marks), entries))
    marks += [(ledger, first - 1 + entries * number // inside, -1) for number in range(1, inside)]
    places = [whole.after, *marks, whole.upto]
    return [Range(whole.topic, low, high) for low, high in pairwise(places) if behind(low, high)]
