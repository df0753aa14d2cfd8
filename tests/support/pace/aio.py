"""Waiting inside a loop."""

from __future__ import annotations

import asyncio

sleep = asyncio.sleep


class Event:
    """Set by a handler, waited for by the test."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    def clear(self) -> None:
        self._event.clear()

    async def wait(self, timeout: float) -> None:
        await asyncio.wait_for(self._event.wait(), timeout)
