"""Ranges of Pulsar reads: places are what is behind, and an index of -1 means the whole entry."""

from __future__ import annotations

import json

import pytest

from mqclient.errors import ConfigError
from mqclient.spark.pulsar_source import BEGIN, Place, Range, flat, nested, ranges, resolve

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
