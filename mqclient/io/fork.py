"""Owns what happens at a fork and at the end of the interpreter: drivers there are, and what they are told."""

from __future__ import annotations

import atexit
import logging
import os
import sys
from typing import Any, Protocol
from weakref import WeakSet

from mqclient.io.leaving import farewell

logger = logging.getLogger("mqclient.io")


class Forkable(Protocol):
    """A driver with threads."""

    def after_fork(self) -> None: ...

    def close(self) -> None: ...


_drivers: WeakSet[Forkable] = WeakSet()


def watch(driver: Forkable) -> None:
    """Tell this driver of forks, and close it when the interpreter ends."""
    _drivers.add(driver)
    _at_end_of_child(None)


def forget(driver: Forkable) -> None:
    """It was closed."""
    _drivers.discard(driver)


def _in_child() -> None:
    for driver in list(_drivers):
        try:
            driver.after_fork()
        except Exception:  # an engine's bug must not leave the other clients with the parent's locks
            logger.exception("a client could not start anew after the fork")
    util = sys.modules.get("multiprocessing.util")
    if util is not None:  # its bootstrap forgets the parent's finalizers first, and then calls this
        util.register_after_fork(_at_exit, _at_end_of_child)


_children: set[int] = set()
"""Processes whose end we shall be told of."""


def _at_end_of_child(_: object) -> None:
    """Children of multiprocessing end by `os._exit`, without `atexit`: they are told of their end another way."""
    process: Any = sys.modules.get("multiprocessing.process")
    util: Any = sys.modules.get("multiprocessing.util")
    if util is None or process is None or process.parent_process() is None or os.getpid() in _children:
        return
    _children.add(os.getpid())
    util.Finalize(None, _at_exit, exitpriority=0)


def _at_exit() -> None:
    # Our threads are daemons, so they cannot keep the interpreter from ending; atexit comes after the user's own
    # threads were joined and before daemons are frozen, so what was written by then still goes out. The earlier
    # `threading._register_atexit` would close clients that the user's threads still work with.
    drivers = list(_drivers)
    farewell(drivers)
    for driver in drivers:
        driver.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
atexit.register(_at_exit)
