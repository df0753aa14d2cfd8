"""Owns sending the rows of Arrow columns: cut into batch requests, no object per row."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mqclient.core.columns import Parts, columns_of, first_empty
from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, gather, run_steps
from mqclient.errors import ConfigError, MQError
from mqclient.rocketmq.model import MessageQueue, Receipt, check_queue, check_topic
from mqclient.rocketmq.remoting.many import MAX_BATCH
from mqclient.rocketmq.remoting.outgoing import Stored
from mqclient.rocketmq.remoting.producer import ProducerEngine
from mqclient.rocketmq.remoting.sending import Sending

COLUMNS: Final = ("body", "keys", "tag", "properties", "flag")
NUMBERS: Final = {"flag": "int32"}
MAX_BATCH_BYTES: Final = 1 << 20
AROUND: Final = 128
"""Bytes that a row takes beyond body and properties: frame, unique key, the names of its own properties."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The outcome of some rows that travelled together, `start` to before `stop`: a receipt, or an MQError."""

    start: int
    stop: int
    outcome: Receipt | MQError

    @property
    def ok(self) -> bool:
        return self.outcome.ok


def prepare_rows(batch: Any, names: Mapping[str, str] | None) -> tuple[dict[str, Parts], int]:
    """Outside of any entry: the buffers of a record batch, and how many rows it has.

    Without `names` the columns called as the codec calls them; a body there must be, and none null or empty.
    """
    chosen = names or {name: name for name in COLUMNS if name in batch.schema.names}
    unknown = sorted(set(chosen) - set(COLUMNS))
    if unknown or "body" not in chosen:
        raise ConfigError(f"columns={dict(chosen)}: body is needed, and there are {', '.join(COLUMNS)}; not {unknown}")
    columns = columns_of(batch, chosen, NUMBERS)
    bad = first_empty(batch.column(chosen["body"]))
    if bad is not None:
        raise ConfigError(f"row {bad}: an empty or null body cannot be sent: brokers fail on it")
    return columns, len(batch)


Part = tuple[int, int, Any]
"""Rows `start` to before `stop`, and the body of the request in which they travel."""


class Sheaf:
    """One `send_arrow`: all rows to a topic, each batch to the next queue in turn, or all of them to one.

    Each request leaves while the next one is made, so that brokers have work, and the bytes lie in the cache still.
    """

    def __init__(
        self,
        engine: ProducerEngine,
        topic: str,
        prepared: tuple[Mapping[str, Parts], int],
        deadline: float | None,
        queue: MessageQueue | None,
    ) -> None:
        check_topic(topic)
        if queue is not None:
            check_queue(queue, topic)
        engine.check_open()
        self._engine = engine
        self._topic = topic
        self._columns, self._rows = prepared
        self._deadline = deadline
        self._queue = queue
        self._sent: list[tuple[int, int, Slot[Stored]]] = []

    def submit(self, driver: Any) -> Slot[list[Rows]]:
        """Outside of any entry: all of it is on its way; what became of it."""
        for part in self._parts():
            with driver.enter():
                self._send(part)
        with driver.enter():
            return run_steps(self._outcome_steps())

    def _parts(self) -> Iterator[Part]:
        engine, columns = self._engine, self._columns
        for start, stop in cuts(columns, self._rows):
            wall_ms = engine.client.driver.now.wall_ms
            yield (
                start,
                stop,
                engine.remoting.encode_columns(columns, start, stop, unique=engine.client.keys, now_ms=wall_ms),
            )

    def _send(self, part: Part) -> None:
        engine, (start, stop, body) = self._engine, part
        self._deadline = engine.deadline(self._deadline)
        prepared = engine.preparer.batch(self._topic, body, [""] * (stop - start))
        self._sent.append((start, stop, Sending(engine, prepared, self._deadline, self._queue).start()))

    def _outcome_steps(self) -> Steps[list[Rows]]:
        yield gather([slot for _, _, slot in self._sent])
        return [Rows(start, stop, _outcome(slot)) for start, stop, slot in self._sent]


def _outcome(slot: Slot[Stored]) -> Any:
    return slot.error if slot.error is not None else slot.result().first


def cuts(columns: Mapping[str, Parts], rows: int) -> list[tuple[int, int]]:
    """Rows that travel together: up to a number, and to a size that no broker refuses."""
    size = sizes(columns)
    found, start = [], 0
    while start < rows:
        most = min(rows, start + MAX_BATCH)
        fits = bisect_right(range(start + 1, most + 1), size(start) + MAX_BATCH_BYTES, key=size)
        stop = start + max(1, fits)
        found.append((start, stop))
        start = stop
    return found


def sizes(columns: Mapping[str, Parts]) -> Callable[[int], int]:
    """About how many bytes all rows before one take: grows with the row, so that it can be searched."""
    ends = [_ends(columns[name][1]) for name in ("body", "keys", "tag") if name in columns]
    maps = columns.get("properties")
    places, keys, values = ([], [], []) if maps is None else (_ends(maps[1]), _ends(maps[2]), _ends(maps[4]))

    def size(row: int) -> int:
        total = AROUND * row + sum(end[row] for end in ends)
        if places:
            place = places[row]  # of each entry of the map: its name, its value, and two separators
            total += keys[place] + values[place] + 2 * place
        return total

    return size


def _ends(offsets: Any) -> Sequence[int]:
    return memoryview(offsets).cast("B").cast("i")
