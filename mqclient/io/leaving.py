"""Owns the last words of clients that nobody closed: what they took is sent if that is quick, else it is told."""

from __future__ import annotations

import atexit
import logging
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from time import monotonic
from typing import Any, Final
from weakref import WeakSet

from mqclient.errors import MQError

logger = logging.getLogger("mqclient.io")

GRACE: Final = 1.0
"""Seconds that the end of the interpreter may take longer for what was not sent yet, of all clients together."""

_in_loops: WeakSet[Any] = WeakSet()


def note(driver: Any) -> None:
    """A driver whose loop is gone at the end of the interpreter: nothing can be sent any more, but it can be told."""
    _in_loops.add(driver)


def forget(driver: Any) -> None:
    """It was closed."""
    _in_loops.discard(driver)


def farewell(drivers: Iterable[Any]) -> None:
    """Let these drivers, which have threads of their own, send what their engines still hold; tell what is left."""
    there = list(drivers)
    with suppress(KeyboardInterrupt):  # whoever is in a hurry need not wait
        _drain(there)
    for driver in there:
        tell(driver)


@atexit.register
def tell_of_loops() -> None:
    """Of the clients of loops, which are gone by now; after a fork, others are the parent's."""
    for driver in [driver for driver in _in_loops if driver.pid == os.getpid()]:
        tell(driver)


def unsettled(driver: Any) -> dict[str, int]:
    """How many messages have no outcome, by whose they are."""
    count = getattr(driver._alarmed, "unsettled", None)
    found: dict[str, int] = {} if count is None else count()
    return found


def tell(driver: Any) -> None:
    """One line about messages without an outcome; to stderr, too, where nobody configured logging."""
    left = unsettled(driver) or getattr(driver, "left", {})
    if not left:
        return
    whose = ", ".join(f"{count} of {name}" for name, count in sorted(left.items()))
    text = (
        f"the process ended without close(), and messages were unsent, or unanswered: {whose}. They may be lost: "
        "close() and flush() wait for every outcome"
    )
    logger.warning("%s", text)
    if not _configured() and sys.stderr is not None:
        print(f"mqclient: {text}", file=sys.stderr)


def _drain(drivers: list[Any]) -> None:
    deadline = monotonic() + GRACE
    waits = []
    for driver in drivers:
        on_exit = getattr(driver._alarmed, "on_exit", None)
        if on_exit is not None:
            with driver.enter():
                waits.append((driver, on_exit()))
    for driver, slot in waits:
        with suppress(MQError):  # each message has its own outcome; who got none is told about
            driver.wait(slot, deadline)


def _configured() -> bool:
    """Whether a warning of ours reaches anybody."""
    current: logging.Logger | None = logger
    while current is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in current.handlers):
            return True
        current = current.parent if current.propagate else None
    return False
