"""Ranges of Pulsar reads: places are what is behind, and an index of -1 means the whole entry."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from mqclient.errors import ConfigError
from mqclient.spark.pulsar_places import (
    BEGIN,
    Place,
    Range,
    advance,
    behind,
    cut,
    firsts,
    flat,
    full,
    heads,
    nested,
    ranges,
    resolve,
)

T, U = "persistent://public/default/t", "persistent://public/default/u"
THERE: dict[str, Place] = {T: (3, 7, 4), U: BEGIN}


def test_positions() -> None:
    assert resolve("earliest", THERE, "startingOffsets") == {T: BEGIN, U: BEGIN}
    assert resolve("latest", THERE, "endingOffsets") == THERE
    assert resolve({"t": [1, 2, -1]}, THERE, "startingOffsets") == {T: (1, 2, -1), U: BEGIN}
    assert resolve({U: None}, THERE, "endingOffsets") == THERE
    with pytest.raises(ConfigError, match="default/v is not read here"):
        resolve({"v": [1, 2, 3]}, THERE, "startingOffsets")
    with pytest.raises(ConfigError, match="is not of the form"):
        flat({"t": [1, 2]}, "startingOffsets")


def test_places_behind_the_end_are_an_error_unless_losses_are_allowed() -> None:
    for what, place in (("startingOffsets", (3, 8, -1)), ("endingOffsets", (9, 0, 0))):
        with pytest.raises(
            ConfigError, match=rf"{what}: .* of {T} is not there: it ends at \[3, 7, 4\].*failOnDataLoss"
        ):
            resolve({T: list(place)}, THERE, what)
        assert resolve({T: list(place)}, THERE, what, clamp=True)[T] == (3, 7, 4)
    assert resolve({T: [3, 7, -1]}, THERE, "endingOffsets")[T] == (3, 7, -1)  # the whole of the last entry


def test_places_are_written_in_one_order() -> None:
    assert json.dumps(nested({U: BEGIN, T: (1, 2, 3)})) == json.dumps({T: [1, 2, 3], U: None})
    assert flat(nested(THERE), "x") == THERE


@pytest.mark.parametrize(
    ("after", "upto", "something"),
    [
        (BEGIN, (3, 7, 4), True),
        (BEGIN, BEGIN, False),
        ((3, 7, 4), (3, 7, 4), False),
        ((3, 7, 3), (3, 7, 4), True),
        ((3, 7, -1), (3, 7, 4), False),
        ((3, 7, 4), (3, 7, -1), True),
        ((3, 7, -1), (3, 8, -1), True),
        ((4, 0, -1), (3, 9, -1), False),
    ],
)
def test_what_lies_between(after: Place, upto: Place, something: bool) -> None:
    assert ranges({T: after}, {T: upto}) == ([Range(T, after, upto)] if something else [])


def test_names_are_whole() -> None:
    assert full("orders") == "persistent://public/default/orders"
    assert full("shop/eu/orders") == full("persistent://shop/eu/orders") == "persistent://shop/eu/orders"
    with pytest.raises(ConfigError, match="keeps nothing"):
        full("non-persistent://public/default/x")


def test_steps_and_ends() -> None:
    assert advance((7, 3, 2), 4) == (7, 7, -1)
    assert (heads(THERE), firsts(THERE)) == (THERE, {T: BEGIN, U: BEGIN})
    assert behind((7, 3, 2), (7, 3, -1))
    assert not behind((7, 3, -1), (7, 3, 9))


@pytest.mark.parametrize("pieces", [1, 2, 3, 7, 50])
def test_pieces_follow_each_other_and_hold_entries(pieces: int) -> None:
    whole = Range(T, (7, 3, 2), (7, 20, 4))
    found = cut(whole, [(7, 3)], pieces)
    assert len(found) == min(pieces, 18)
    assert (found[0].after, found[-1].upto) == (whole.after, whole.upto)
    assert all(one.upto == other.after and behind(one.after, one.upto) for one, other in pairwise(found))
