"""Owns the hook that tests of handlers look at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mqclient.hooks import Consumed


class Span:
    """A hook around handlers that notes what it sees, and one that listens."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.told: list[Consumed] = []

    @contextmanager
    def around_consume(self, messages: Any) -> Iterator[None]:
        self.seen.append(("begins", len(messages)))
        try:
            yield
        except ValueError as error:
            self.seen.append(("failed", str(error)))
            raise
        else:
            self.seen.append("ended")

    def after_consume(self, consumed: Consumed) -> None:
        self.told.append(consumed)
