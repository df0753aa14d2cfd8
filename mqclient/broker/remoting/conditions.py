"""Owns what the conditions of a property filter mean: comparisons of text, numbers and what is not there.

A value is text (properties are nothing else), a number, a boolean, or None for what is not there or not known.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Properties = Mapping[str, str]
Evaluate = Callable[[Properties], Any]

INTEGER: Final = re.compile(r"[+-]?\d+\Z", re.ASCII)
DECIMAL: Final = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?\s*\Z", re.ASCII)
ORDERINGS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
PATTERNS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "CONTAINS": lambda text, pattern: pattern in text,
    "STARTSWITH": str.startswith,
    "ENDSWITH": str.endswith,
}
INT: Final = 1 << 31
LONG: Final = 1 << 63


class SqlError(ValueError):
    """The expression is none; the text says where."""


class Unfit(Exception):
    """A text that should be a number is none: the message does not match."""


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression: what it gives for a message, and what is known of it beforehand."""

    evaluate: Evaluate
    kind: str = "value"
    """constant, property, boolean (it can be true or false) or value."""
    value: Any = None
    """Of a constant itself, of a property its name."""


def constant(value: Any) -> Node:
    return Node(lambda properties: value, "constant", value)


def negative(node: Node) -> Node:
    if node.kind == "constant" and is_number(node.value):
        return constant(-node.value)

    def evaluate(properties: Properties) -> Any:
        value = node.evaluate(properties)
        return -value if is_number(value) else None

    return Node(evaluate)


def negation(node: Node) -> Node:
    def evaluate(properties: Properties) -> Any:
        value = node.evaluate(properties)
        return None if value is None else not value

    return Node(evaluate, "boolean")


def every(parts: list[Evaluate]) -> Evaluate:
    def evaluate(properties: Properties) -> Any:
        result: bool | None = True
        for part in parts:
            value = part(properties)
            if value is False:
                return False
            if value is None:
                result = None
        return result

    return evaluate


def some(parts: list[Evaluate]) -> Evaluate:
    def evaluate(properties: Properties) -> Any:
        result: bool | None = False
        for part in parts:
            value = part(properties)
            if value is True:
                return True
            if value is None:
                result = None
        return result

    return evaluate


def is_null(node: Node, negated: bool) -> Node:
    return Node(lambda properties: (node.evaluate(properties) is None) != negated, "boolean")


def equal(left: Node, right: Node) -> Node:
    for node in (left, right):
        if node.kind == "constant" and node.value is None:
            raise SqlError("NULL cannot be compared: IS NULL asks for it")
    if left.kind == right.kind == "constant" and isinstance(left.value, bool) and not isinstance(right.value, bool):
        raise SqlError(f"{left.value!r} cannot be compared with {right.value!r}")

    def evaluate(properties: Properties) -> Any:
        one, other = left.evaluate(properties), right.evaluate(properties)
        if one is None:
            return None if other is not None else True
        if other is None:
            return False
        if isinstance(other, bool) and is_number(one):
            return False
        one, other = _alike(one, other)
        return bool(one == other)

    return Node(evaluate, "boolean")


def ordered(sign: str, left: Node, right: Node) -> Node:
    for node in (left, right):
        if node.kind == "boolean" or (node.kind == "constant" and not is_number(node.value)):
            raise SqlError(f"{node.value!r} cannot be compared by {sign}")
    compare = ORDERINGS[sign]

    def evaluate(properties: Properties) -> Any:
        one, other = left.evaluate(properties), right.evaluate(properties)
        if one is None or other is None:
            return None
        if isinstance(one, str) and isinstance(other, str):
            one, other = _decimal(one), _decimal(other)
        return compare(*_alike(one, other))

    return Node(evaluate, "boolean")


def between(node: Node, low: Node, high: Node, negated: bool) -> Node:
    if (
        low.kind == high.kind == "constant"
        and is_number(low.value)
        and is_number(high.value)
        and low.value > high.value
    ):
        raise SqlError(f"illegal values of between, {low.value} is greater than {high.value}")
    if negated:
        return Node(some([ordered("<", node, low).evaluate, ordered(">", node, high).evaluate]), "boolean")
    return Node(every([ordered(">=", node, low).evaluate, ordered("<=", node, high).evaluate]), "boolean")


def one_of(node: Node, texts: frozenset[str], negated: bool) -> Node:
    if node.kind != "property":
        raise SqlError("IN needs a property before it")

    def evaluate(properties: Properties) -> Any:
        value = node.evaluate(properties)
        return None if value is None else (value in texts) != negated

    return Node(evaluate, "boolean")


def patterned(word: str, node: Node, pattern: str, negated: bool) -> Node:
    """Without the property or with an empty pattern it is false, and so is its NOT."""
    if node.kind != "property":
        raise SqlError(f"{word} needs a property before it")
    fits = PATTERNS[word]

    def evaluate(properties: Properties) -> Any:
        value = node.evaluate(properties)
        return bool(value and pattern and fits(value, pattern) != negated)

    return Node(evaluate, "boolean")


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _alike(one: Any, other: Any) -> tuple[Any, Any]:
    """Two values of one kind: a text is read as what the other is."""
    if isinstance(one, str) and not isinstance(other, str):
        return _read(one, other), other
    if isinstance(other, str) and not isinstance(one, str):
        if isinstance(one, bool):
            raise Unfit
        return one, _read(other, one)
    return one, other


def _read(text: str, like: Any) -> Any:
    if isinstance(like, bool):
        return text.lower() == "true"
    return _integer(text, INT if -INT <= like < INT else LONG) if isinstance(like, int) else _decimal(text)


def _integer(text: str, limit: int) -> int:
    if len(text) < 40 and INTEGER.match(text) and -limit <= (value := int(text)) < limit:
        return value
    raise Unfit


def _decimal(text: str) -> float:
    if not DECIMAL.match(text):
        raise Unfit
    return float(text.strip().rstrip("dDfF"))
