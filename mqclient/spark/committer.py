"""Owns telling brokers how far a query is, beside it: the last word counts, and a failure is only a warning."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from mqclient.errors import MQError

log = logging.getLogger("mqclient.spark")


class Committer:
    """A thread of its own: no trigger waits for it."""

    def __init__(self, commit: Callable[[Any], None]) -> None:
        self._commit = commit
        self._changed = threading.Condition()
        self._next: Any = None
        self._closed = False
        self._thread: threading.Thread | None = None

    def tell(self, places: Any) -> None:
        with self._changed:
            self._next = places
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="mqclient-spark-commit", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self, timeout: float = 5.0) -> None:
        """What was told last is still committed, if that does not take too long."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        while (places := self._wait()) is not None:
            try:
                self._commit(places)
            except MQError as error:
                # Spark's checkpoint is what counts: the next batch tells again, and further.
                log.warning("the brokers were not told how far the query is: %s", error)

    def _wait(self) -> Any:
        with self._changed:
            while self._next is None and not self._closed:
                self._changed.wait()
            places, self._next = self._next, None
            return places
