"""Waiting among threads."""

from __future__ import annotations

import threading
import time

sleep = time.sleep


class Event:
    """Set by a handler, waited for by the test."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def clear(self) -> None:
        self._event.clear()

    def wait(self, timeout: float) -> None:
        if not self._event.wait(timeout):
            raise TimeoutError(f"nothing within {timeout} s")
