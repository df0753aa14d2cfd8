"""Owns what happens at a fork and at the end of the interpreter: drivers there are, and what they are told."""

from __future__ import annotations

import atexit
import logging
import os
from typing import Protocol
from weakref import WeakSet

logger = logging.getLogger("mqclient.io")


class Forkable(Protocol):
    """A driver with threads."""

    def after_fork(self) -> None: ...

    def close(self) -> None: ...


_drivers: WeakSet[Forkable] = WeakSet()


def watch(driver: Forkable) -> None:
    """Tell this driver of forks, and close it when the interpreter ends."""
    _drivers.add(driver)


def forget(driver: Forkable) -> None:
    """It was closed."""
    _drivers.discard(driver)


def _in_child() -> None:
    for driver in list(_drivers):
        try:
            driver.after_fork()
        except Exception:  # an engine's bug must not leave the other clients with the parent's locks
            logger.exception("a client could not start anew after the fork")


def _at_exit() -> None:
    # Our threads are daemons, so they cannot keep the interpreter from ending; atexit comes after the user's own
    # threads were joined and before daemons are frozen, so what was written by then still goes out. The earlier
    # `threading._register_atexit` would close clients that the user's threads still work with.
    for driver in list(_drivers):
        driver.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
atexit.register(_at_exit)
