"""The native and the pure form of a module, called alike: what they give has to be the same, errors included."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from hypothesis import strategies as st

from mqclient.errors import ConfigError, ProtocolError

NAMES = ("pure",) if os.environ.get("MQCLIENT_IMPL") == "pure" else ("native", "pure")

Errors = tuple[type[Exception], ...]
OURS: Errors = (ConfigError, ProtocolError)

flips = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 7)), min_size=1, max_size=4)


def twins_of(name: str) -> list[ModuleType]:
    return [import_module(f"mqclient._{impl}.{name}") for impl in NAMES]


def compared(twins: Sequence[ModuleType], call: Callable[[ModuleType], Any], errors: Errors = OURS) -> Any:
    """The outcome of all twins, which must be one."""
    answers = [outcome(lambda twin=twin: call(twin), errors) for twin in twins]  # type: ignore[misc]
    assert all(answer == answers[0] for answer in answers), answers
    return answers[0]


def outcome(call: Callable[[], Any], errors: Errors = OURS) -> Any:
    """What a call gives, or which of the errors it raises."""
    try:
        return call()
    except errors as error:
        return type(error)


def damaged(data: bytes, places: list[tuple[int, int]]) -> bytes:
    """With some bits flipped."""
    out = bytearray(data)
    for place, bit in places:
        if out:
            out[place % len(out)] ^= 1 << bit
    return bytes(out)
