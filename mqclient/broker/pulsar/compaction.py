"""Owns how compactions are run: one for a topic at a time, in steps between which others are served."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mqclient.broker.pulsar.compacted import Compacted, compact

if TYPE_CHECKING:
    from mqclient.broker.pulsar.topics import Topic

log = logging.getLogger("mqclient.broker")

NOT_RUN, RUNNING, SUCCESS, ERROR = "NOT_RUN", "RUNNING", "SUCCESS", "ERROR"


class Compaction:
    """What became of the last compaction of a topic."""

    __slots__ = ("error", "status")

    def __init__(self) -> None:
        self.status = NOT_RUN
        self.error = ""

    def start(self, topic: Topic, impl: Any, soon: Callable[[Callable[[], None]], None]) -> bool:
        """Begin, unless one is running."""
        if self.status == RUNNING:
            return False
        self.status, self.error = RUNNING, ""
        steps = compact(topic, impl)
        soon(lambda: self._go_on(topic, steps, soon))
        return True

    def _go_on(
        self, topic: Topic, steps: Iterator[Compacted | None], soon: Callable[[Callable[[], None]], None]
    ) -> None:
        try:
            view = next(steps)
        except Exception as error:
            # A topic that cannot be compacted is told so to whoever asks; the broker serves on.
            log.exception("compaction of %s failed", topic.text)
            self.status, self.error = ERROR, str(error) or type(error).__name__
            return
        if view is None:
            soon(lambda: self._go_on(topic, steps, soon))
            return
        topic.compacted = view
        topic.changed()
        self.status = SUCCESS
