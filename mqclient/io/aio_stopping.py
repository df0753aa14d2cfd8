"""Owns how a process that serves in an event loop is asked to stop: SIGTERM and Ctrl-C."""

from __future__ import annotations

import asyncio
import signal

from mqclient.core.driver import AsyncDriver
from mqclient.core.slot import Slot, Wake

SIGNALS = (signal.SIGTERM, signal.SIGINT)


async def until_asked(driver: AsyncDriver, ended: Slot[None]) -> None:
    """Until one of the signals comes, or the slot is done; outside of the main thread there are no signals."""
    asked, loop = Wake(), asyncio.get_running_loop()

    def stop() -> None:
        with driver.enter():
            asked.complete(None)

    before = {}
    for number in SIGNALS:
        handler = signal.getsignal(number)
        try:
            loop.add_signal_handler(number, stop)
        except (NotImplementedError, RuntimeError, ValueError):
            break
        before[number] = handler
    with driver.enter():
        ended.then(lambda _: asked.complete(None))
    try:
        await driver.wait(asked)
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            if handler is not None:  # it was set in Python: removing the loop's one put the default there
                signal.signal(number, handler)
