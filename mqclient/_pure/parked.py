"""Owns the look at parked connections: whether callers still come to read them by themselves."""

from __future__ import annotations

import select
from collections.abc import Iterable
from time import monotonic
from typing import Protocol


class Borrowed(Protocol):
    """A frame reader, as far as this needs it."""

    last_borrow: float


def look_after(poller: int, readers: Iterable[Borrowed], park: float, seconds: float, /) -> None:
    """See `FrameReader.look_after` in mqclient/_native/pulsar.pyi."""
    poll = select.poll()
    poll.register(poller, select.POLLIN)
    now = began = monotonic()
    until = began + seconds
    while now < until:
        due = min(park + (now if reader.last_borrow > now else max(reader.last_borrow, began)) for reader in readers)
        if due <= now or poll.poll((min(due, until) - now) * 1000 + 1):
            return
        now = monotonic()
