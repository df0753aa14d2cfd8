"""Owns writing one task's record batches: by topic, in pieces that fit, every row acknowledged before it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from typing import Any, Protocol

from mqclient.errors import ConfigError, MQError
from mqclient.spark.rows import Place, Shaper, groups, pieces, taken
from mqclient.spark.write_options import WriteOptions


class SinkError(MQError):
    """Rows were not stored: the task fails, and Spark may try it again."""


class Refused(Exception):
    """Rows of a batch were not stored: the first of them, how many, and why."""

    def __init__(self, row: int, rows: int, cause: Exception) -> None:
        super().__init__(row, rows, cause)
        self.row = row
        self.rows = rows
        self.cause = cause


class Task(Protocol):
    """A system's producers for one task."""

    def send(self, topic: str, batch: Any, /) -> None:
        """Returns when all rows are acknowledged; else Refused."""


Opened = Callable[[WriteOptions, Place], AbstractContextManager[Task]]


def write(batches: Iterable[Any], options: WriteOptions, shaper: Shaper, place: Place, opened: Opened) -> int:
    """Send everything; how many rows it was. Without rows nothing is opened."""
    rows = 0
    waiting = iter(batches)
    first = next((batch for batch in waiting if len(batch)), None)
    if first is None:
        return 0
    with opened(options, place) as task:
        for batch in chain([first], waiting):
            for piece, start in pieces(shaper.shape(batch, rows), options.in_flight):
                _send_piece(task, piece, rows + start, options, place)
            rows += len(batch)
    return rows


def _send_piece(task: Task, piece: Any, row: int, options: WriteOptions, place: Place) -> None:
    for topic, rows in [(options.topic, None)] if options.topic is not None else groups(piece, "topic"):
        try:
            with among(rows):
                if topic is None:
                    raise Refused(0, 1, ConfigError("it has no topic: fill the column, or give the option topic."))
                task.send(topic, taken(piece, rows))
        except Refused as refused:
            start = row + refused.row
            which = f"row {start}" if refused.rows == 1 else f"row {start} and {refused.rows - 1} that went with it"
            where = f"{which} of task {place}, topic {topic!r}"
            raise SinkError(f"{where}: not stored: {refused.cause}") from refused.cause


@contextmanager
def among(rows: Any) -> Iterator[None]:
    """What is refused among chosen rows is told by its number among all of them. None: they are all."""
    try:
        yield
    except Refused as refused:
        if rows is None:
            raise
        raise Refused(rows[refused.row].as_py(), refused.rows, refused.cause) from refused.cause


def check(runs: Iterable[Any]) -> None:
    """Of runs of rows that travelled together the first that was refused."""
    for run in runs:
        if not run.ok:
            raise Refused(run.start, run.stop - run.start, run.outcome) from run.outcome


def check_each(outcomes: Iterable[Any]) -> None:
    """Of rows that travelled alone the first that was refused."""
    for row, outcome in enumerate(outcomes):
        if not outcome.ok:
            raise Refused(row, 1, outcome) from outcome
