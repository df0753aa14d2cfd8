"""Owns how a process that serves on its main thread is asked to stop: SIGTERM and Ctrl-C."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress
from types import FrameType
from typing import Any

from mqclient.core.driver import SyncDriver
from mqclient.core.slot import Slot

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class _Asked(BaseException):
    """Raised by the signal in the thread that waits: as Ctrl-C does it, for which waiting is made."""


def until_asked(driver: SyncDriver, ended: Slot[None]) -> None:
    """Until one of the signals comes, or the slot is done; outside of the main thread there are no signals."""

    def stop(number: int, frame: FrameType | None) -> None:
        for other in before:  # a second signal during what follows is the program's own business again
            signal.signal(other, before[other])
        raise _Asked

    before: dict[signal.Signals, Any] = {}
    with suppress(_Asked):
        try:
            if threading.current_thread() is threading.main_thread():
                for number in SIGNALS:
                    before[number] = signal.getsignal(number)  # noted first: the signal may come in between
                    signal.signal(number, stop)
            driver.wait(ended)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
