"""Where a verb means the same in both protocols it has the same name, arguments and defaults; what differs is found.

A difference is declared in `differences.py`, with its reason; `.ci/gen_manners.py` prints all of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import NamedTuple

from mqclient import pulsar, rocketmq

PAIRS = (
    ("Client", rocketmq.Client, pulsar.Client),
    ("Producer", rocketmq.Producer, pulsar.Producer),
    ("Consumer", rocketmq.PopConsumer, pulsar.Consumer),
    ("Reader", rocketmq.PullConsumer, pulsar.Reader),
)
"""What stands for what. Of RocketMQ's consumers the one that acknowledges messages, and the one that follows queues."""


class Difference(NamedTuple):
    verb: str
    rocketmq: str
    pulsar: str


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))}


def differences() -> Iterator[Difference]:
    """Every verb that both have and do not take alike."""
    for name, one, other in PAIRS:
        for verb in sorted(public(one) & public(other)):
            first, second = parameters(one, verb), parameters(other, verb)
            if not alike(first, second):
                yield Difference(f"{name}.{verb}", shown(first, second), shown(second, first))


def parameters(kind: type, verb: str) -> list[inspect.Parameter]:
    return list(inspect.signature(getattr(kind, verb)).parameters.values())[1:]


def positional(found: list[inspect.Parameter]) -> list[inspect.Parameter]:
    return [one for one in found if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]


def alike(first: list[inspect.Parameter], second: list[inspect.Parameter]) -> bool:
    """The positional ones are the same in the same order; what both have has the same default, and the same way in."""
    if [one.name for one in positional(first)] != [one.name for one in positional(second)]:
        return False
    others = {one.name: one for one in second}
    return all(
        (one.kind, one.default) == (others[one.name].kind, others[one.name].default)
        for one in first
        if one.name in others
    )


def shown(these: list[inspect.Parameter], those: list[inspect.Parameter]) -> str:
    """The positional ones, and those that the other has, too."""
    common = {one.name for one in those}
    out, keyword = [], False
    for one in these:
        if one not in positional(these) and (one.name not in common or one.kind is one.VAR_KEYWORD):
            continue
        if one.kind is one.KEYWORD_ONLY and not keyword:
            out.append("*")
            keyword = True
        out.append(one.name if one.default is one.empty else f"{one.name}={one.default!r}")
    return f"({', '.join(out)})"
