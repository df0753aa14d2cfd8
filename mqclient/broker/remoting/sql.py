"""Owns the SQL92 dialect of RocketMQ's property filters: an expression in, a selector of messages out.

    or          = and {OR and}
    and         = equality {AND equality}
    equality    = comparison {= comparison | <> comparison | IS [NOT] NULL}
    comparison  = unary {(> >= < <=) unary | [NOT] BETWEEN unary AND unary | [NOT] IN ('s' {, 's'})
                | [NOT] (CONTAINS STARTSWITH ENDSWITH) 's'}
    unary       = (+ | - | NOT) unary | literal | property | ( or )

A text that meets a number is read as one; if it is none the message does not match, whatever NOT stands before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

from mqclient.broker.remoting.conditions import (
    LONG,
    ORDERINGS,
    PATTERNS,
    Evaluate,
    Node,
    Properties,
    SqlError,
    Unfit,
    between,
    constant,
    equal,
    every,
    is_null,
    negation,
    negative,
    one_of,
    ordered,
    patterned,
    some,
)

KEYWORDS: Final = frozenset(
    ("NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS", "CONTAINS", "STARTSWITH", "ENDSWITH")
)
BLANK: Final = re.compile(r"\s+|--[^\n\r]*[\n\r]|/\*.*?\*/", re.DOTALL)
TOKEN: Final = re.compile(
    r"""
        (?P<decimal>\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
      | (?P<integer>(?:0|[1-9]\d*)[lL]?)
      | (?P<text>'(?:[^']|'')*')
      | (?P<word>[A-Za-z_$][A-Za-z0-9_$]*)
      | (?P<sign><>|>=|<=|[=<>()+,-])
      | (?P<end>\Z)
    """,
    re.VERBOSE,
)
DEEPEST: Final = 64
LONGEST: Final = 1 << 16


@lru_cache(maxsize=512)
def selector(expression: str) -> Callable[[Properties], bool]:
    """Whether a message with such properties is wanted. SqlError if the expression cannot be understood.

    >>> wanted = selector("region IN ('north', 'east') AND price BETWEEN 1 AND 9")
    >>> wanted({"region": "east", "price": "5"}), wanted({"region": "east"})
    (True, False)
    """
    if len(expression) > LONGEST:
        raise SqlError(f"the expression is longer than {LONGEST} characters")
    evaluate = _Parser(expression).parse().evaluate

    def wanted(properties: Properties) -> bool:
        try:
            return evaluate(properties) is True
        except Unfit:
            return False

    return wanted


class _Parser:
    """Recursive descent; chains of AND and OR are loops, so that long ones do not go deep."""

    def __init__(self, expression: str) -> None:
        self._tokens = list(_tokens(expression))
        self._at = 0
        self._depth = 0

    @property
    def _token(self) -> tuple[str, Any]:
        kind, value = token = self._tokens[self._at]
        if kind == "wrong":
            raise SqlError(f"lexical error before {value!r}")
        return token

    def parse(self) -> Node:
        """What stands after a whole expression is not looked at, as upstream has it."""
        return self._truth(self._or())

    def _or(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise SqlError(f"the expression is nested deeper than {DEEPEST} levels")
        node = self._chain("OR", self._and, some)
        self._depth -= 1
        return node

    def _and(self) -> Node:
        return self._chain("AND", self._equality, every)

    def _chain(self, word: str, part: Callable[[], Node], joined: Callable[[list[Evaluate]], Evaluate]) -> Node:
        node = part()
        if not self._next_is(word):
            return node
        parts = [self._truth(node).evaluate]
        while self._take(word):
            parts.append(self._truth(part()).evaluate)
        return Node(joined(parts), "boolean")

    def _equality(self) -> Node:
        node, links = self._comparison(), 0
        while True:
            if self._take("IS"):
                negated = self._take("NOT")
                self._need("NULL")
                node = is_null(node, negated)
            elif self._take("="):
                node = equal(node, self._comparison())
            elif self._take("<>"):
                node = negation(equal(node, self._comparison()))
            else:
                return node
            links = self._link(links)

    def _comparison(self) -> Node:
        node, links = self._unary(), 0
        while True:
            negated = self._next_is("NOT") and self._take("NOT")
            kind, value = self._token
            if not negated and kind == "sign" and value in ORDERINGS:
                self._at += 1
                node = ordered(value, node, self._unary())
            elif self._take("BETWEEN"):
                low = self._unary()
                self._need("AND")
                node = between(node, low, self._unary(), negated)
            elif self._take("IN"):
                node = one_of(node, self._list(), negated)
            elif kind == "word" and value in PATTERNS:
                self._at += 1
                node = patterned(value, node, self._text(), negated)
            elif negated:
                raise self._wrong("BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH")
            else:
                return node
            links = self._link(links)

    def _unary(self) -> Node:
        signs = []
        while (token := self._token) in (("sign", "+"), ("sign", "-"), ("word", "NOT")):
            signs.append(token[1])
            self._at += 1
        if len(signs) > DEEPEST:
            raise SqlError(f"more than {DEEPEST} signs in a row")
        node = self._primary()
        for sign in reversed(signs):
            if sign == "-":
                node = negative(node)
            elif sign == "NOT":
                node = negation(self._truth(node))
        return node

    def _primary(self) -> Node:
        kind, value = self._token
        self._at += 1
        if kind in ("text", "number"):
            return constant(value)
        if kind == "name":
            return Node(lambda properties: properties.get(value), "property", value)
        if kind == "word" and value in ("TRUE", "FALSE", "NULL"):
            return constant({"TRUE": True, "FALSE": False}.get(value))
        if (kind, value) == ("sign", "("):
            node = self._or()
            self._need(")")
            return node
        self._at -= 1
        raise self._wrong("a value")

    def _list(self) -> frozenset[str]:
        self._need("(")
        texts = [self._text()]
        while self._take(","):
            texts.append(self._text())
        self._need(")")
        return frozenset(texts)

    def _text(self) -> str:
        kind, value = self._token
        if kind != "text":
            raise self._wrong("a text in quotes")
        self._at += 1
        return str(value)

    def _truth(self, node: Node) -> Node:
        """What may stand where true or false is needed; a property is text, and thus false."""
        if node.kind == "boolean" or isinstance(node.value, bool):
            return node
        if node.kind == "property":
            return Node(lambda properties: None if node.evaluate(properties) is None else False, "boolean")
        raise SqlError(f"expression will not result in a boolean value, before {self._token[1]!r}")

    def _next_is(self, word: str) -> bool:
        return self._token in (("word", word), ("sign", word))

    def _take(self, word: str) -> bool:
        taken = self._next_is(word)
        self._at += taken
        return taken

    def _need(self, word: str) -> None:
        if not self._take(word):
            raise self._wrong(word)

    def _link(self, links: int) -> int:
        if links == DEEPEST:
            raise SqlError(f"more than {DEEPEST} comparisons in a row")
        return links + 1

    def _wrong(self, wanted: str) -> SqlError:
        kind, value = self._token
        return SqlError(f"encountered {'the end' if kind == 'end' else repr(value)}, was expecting {wanted}")


def _tokens(expression: str) -> Iterator[tuple[str, Any]]:
    """Kind and value of each: text, number, word (a keyword), name, sign, end."""
    at = 0
    while True:
        while blank := BLANK.match(expression, at):
            at = blank.end()
        match = TOKEN.match(expression, at)
        if match is None:
            yield "wrong", expression[at : at + 20]
            return
        at, kind = match.end(), str(match.lastgroup)
        yield _token(kind, match[kind])
        if kind == "end":
            return


def _token(kind: str, text: str) -> tuple[str, Any]:
    if kind == "text":
        return kind, text[1:-1].replace("''", "'")
    if kind == "decimal":
        return "number", float(text)
    if kind == "integer":
        value = int(text.rstrip("lL")) if len(text) < 30 else LONG
        if value >= LONG:
            raise SqlError(f"{text} is beyond 64 bits")
        return "number", value
    if kind == "word" and text.upper() in KEYWORDS:
        return kind, text.upper()
    return ("name" if kind == "word" else kind), text
