"""What tests of clients share: names of their own, and a handler that keeps what it got."""

from __future__ import annotations

import uuid
from typing import Any


def unique(name: str) -> str:
    """A topic or group of this test alone."""
    return f"{name}-{uuid.uuid4().hex[:8]}"


class Seen:
    """A handler that keeps the bodies."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def __call__(self, messages: Any) -> None:
        self.bodies += [message.body for message in messages]
