"""Owns how a process is asked to stop: SIGTERM and Ctrl-C turned into a slot that somebody waits for."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mqclient.core.slot import Slot, Wake
from mqclient.io.aio import AsyncioDriver

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_signals(driver: Any) -> Iterator[Slot[None]]:
    """The slot is done at the first signal; a second one does what it did before, so that Ctrl-C still interrupts.

    Only the main thread hears of signals: in another one the slot is never done by itself.
    """
    asked = Wake()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    loop = asyncio.get_running_loop() if isinstance(driver, AsyncioDriver) else None
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def complete() -> None:
        with driver.enter():
            asked.complete(None)

    def heard(number: int, frame: object) -> None:
        restore()
        # We stand between any two instructions of the main thread, which may be inside the engine: so another one,
        # or a later turn of the loop, tells it.
        if loop is not None:
            loop.call_soon_threadsafe(complete)
        else:
            threading.Thread(target=complete, name="mqclient-signal", daemon=True).start()

    def restore() -> None:
        for number, handler in before.items():
            if signal.getsignal(number) is heard:
                signal.signal(number, handler)

    for number in SIGNALS:
        signal.signal(number, heard)
    try:
        yield asked
    finally:
        restore()
