"""Expressions are read as the dialect has it, long and deep ones end in an error, and nothing is read twice."""

from __future__ import annotations

import time

import pytest

from mqclient.broker.remoting.conditions import SqlError
from mqclient.broker.remoting.sql import selector

ORDER = {"region": "north", "price": "7", "note": "it's -- fine", "$id": "9"}


@pytest.mark.parametrize(
    "expression",
    [
        "region = 'north'",
        "note = 'it''s -- fine'",
        "price between 5 and 9 And not (region iN ('south', 'west'))",
        "region = 'south' OR price > 6 AND price < 8",
        "NOT (region = 'south' OR price > 8)",
        "price /* not the\ncost */ = 7",
        "price = -- a comment\n 7",
        "price = 7L AND price = 7.0 AND price = .7e1 AND price <> -7",
        "price >= 7 AND price <= + 7",
        "missing IS NULL AND region IS NOT NULL",
        "region STARTSWITH 'no' AND region ENDSWITH 'th' AND region CONTAINS 'ort'",
        "region NOT CONTAINS 'south' AND region NOT IN ('south')",
        "price NOT BETWEEN 8 AND 9",
        "$id = 9",
        "TRUE and NOT FALSE",
        "(((region = 'north')))",
        "NOT NOT TRUE",
    ],
)
def test_what_is_selected(expression: str) -> None:
    assert selector(expression)(ORDER)


@pytest.mark.parametrize("expression", ["REGION = 'north'", "missing = 1", "missing <> 1", "NOT missing", "region > 1"])
def test_what_is_not(expression: str) -> None:
    assert not selector(expression)(ORDER)


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("", "encountered the end"),
        ("price >", "was expecting a value"),
        ("(price > 1", "was expecting \\)"),
        ("price IS 7", "was expecting NULL"),
        ("price BETWEEN 1 OR 2", "was expecting AND"),
        ("region NOT 'x'", "was expecting BETWEEN, IN"),
        ("region CONTAINS 7", "a text in quotes"),
        ("'a' CONTAINS 'a'", "CONTAINS needs a property"),
        ("region = 'open", "lexical error"),
        ("region ! 'x'", "lexical error"),
        ("7", "not result in a boolean"),
        ("7 AND TRUE", "not result in a boolean"),
        ("a = 9223372036854775808", "beyond 64 bits"),
        ("a = " + "9" * 5000, "beyond 64 bits"),
        ("/* open", "lexical error"),
        ("(" * 100_00 + "a", "nested deeper"),
        ("NOT " * 1000 + "a", "signs in a row"),
        ("a" + " = a" * 1000, "comparisons in a row"),
        ("TRUE OR " * 10_000 + "TRUE", "longer than"),
    ],
)
def test_what_cannot_be_read_says_why(expression: str, told: str) -> None:
    with pytest.raises(SqlError, match=told):
        selector(expression)


def test_long_chains_are_fine_and_blanks_take_no_time() -> None:
    started = time.thread_time()
    chain = " OR ".join(f"price = {number}" for number in range(3000))
    assert selector(chain)(ORDER)
    assert selector(" " * 30_000 + "price" + "\n" * 30_000 + "= 7")(ORDER)
    with pytest.raises(SqlError):
        selector(" " * 60_000 + "!")
    assert time.thread_time() - started < 5


def test_an_expression_is_read_once() -> None:
    assert selector("price = 7 AND once = 1") is selector("price = 7 AND once = 1")
