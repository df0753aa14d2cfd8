"""What must be so when a test ends: nobody waits for what will never come (DESIGN part 4)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from mqclient.core.link import Link
from mqclient.core.slot import Slot


def assert_done(*slots: Slot[Any]) -> None:
    """No slot is left pending."""
    pending = [index for index, slot in enumerate(slots) if not slot.done]
    assert not pending, f"slots left pending: {pending}"


def assert_quiet(links: Iterable[Link]) -> None:
    """No request is in flight and no byte waits to be written."""
    for link in links:
        assert not len(link.inflight), f"{len(link.inflight)} requests in flight to {link.address}"
        assert not link.outbox, f"{len(link.outbox)} buffers in the outbox to {link.address}"


@contextmanager
def no_threads_left(within: float = 5.0) -> Iterator[None]:
    """All threads started inside have ended when it is left."""
    before = set(threading.enumerate())
    yield
    end = time.monotonic() + within
    while (left := set(threading.enumerate()) - before) and time.monotonic() < end:
        time.sleep(0.005)
    assert not left, f"threads left: {sorted(thread.name for thread in left)}"
