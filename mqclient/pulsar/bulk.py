"""Owns sending in bulk: runs of messages and rows of Arrow columns become entries, crossing by crossing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mqclient.core.slot import Slot
from mqclient.core.steps import Steps
from mqclient.errors import MQError
from mqclient.pulsar.batch import Batch
from mqclient.pulsar.columns import Rows
from mqclient.pulsar.gathering import ROWS, Full, Gathering
from mqclient.pulsar.outgoing import Mixed, Part, as_item

Refuse = Callable[[MQError, int], Batch]
"""Messages that were never taken, because the producer ended before it was their turn."""


def send_many_steps(gathering: Gathering, items: Sequence[Any], refuse: Refuse) -> Steps[list[Part]]:
    """The parts, when each has its outcome."""
    parts: list[Part] = []
    start, reserved = 0, False
    add = gathering.add_one if isinstance(items, Mixed) else gathering.add_run
    while start < len(items):
        try:
            start = add(items, start, parts, reserved)
            reserved = False
        except Full:
            yield gathering.reserve(as_item(items[start]))
            reserved = True
        except MQError as error:
            if not parts:
                raise
            parts.append(Part(refuse(error, len(items) - start), 0, len(items) - start))
            break
    yield from _done_steps([part.batch for part in parts])
    return parts


def send_rows_steps(
    gathering: Gathering, columns: Mapping[str, Any], rows: int, refuse: Refuse, first: int | None = None
) -> Steps[list[Rows]]:
    """The runs of rows that travelled together, when each has its outcome. `first`: the first row's sequence id."""
    parts: list[tuple[Batch, int, int]] = []
    start, reserved = 0, False
    while start < rows:
        try:
            sequence_id = None if first is None else first + start
            batch, following = gathering.add_rows(columns, start, rows, reserved, sequence_id)
        except Full:
            yield gathering.reserve(ROWS)
            reserved = True
        except MQError as error:
            if not parts:
                raise
            parts.append((refuse(error, rows - start), start, rows))
            break
        else:
            parts.append((batch, start, following))
            start, reserved = following, False
    yield from _done_steps([batch for batch, _, _ in parts])
    return [Rows(start, stop, batch.outcome(0)) for batch, start, stop in parts]


def _done_steps(batches: list[Batch]) -> Steps[None]:
    for batch in dict.fromkeys(batches):
        done: Slot[None] = Slot()
        batch.then(lambda _, done=done: done.complete(None))  # type: ignore[misc]
        yield done
