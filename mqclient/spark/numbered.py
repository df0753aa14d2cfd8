"""Owns exactly-once on Pulsar: a producer whose name and sequence ids a second attempt of a task makes again.

The broker's deduplication stores a sequence id once for each producer name, and tells at opening the last one that it
was given. Rows up to it are left out; the last of them is sent once more, alone, for only the receipt of a duplicate
proves that it is stored and not just on its way. Two attempts at the same time have the same name: the second one waits
until the first is gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, NamedTuple

from mqclient.errors import ConfigError, MQError
from mqclient.spark.rows import Place
from mqclient.spark.write_options import AT_LEAST_ONCE, WriteOptions

ROWS_BITS: Final = 32
"""A sequence id is the number of the batch, then so many bits for the row in it."""
BUSY: Final = 16
"""ProducerBusy: the name is taken."""
BUSY_SECONDS: Final = 0.2
BUSY_TIMEOUTS: Final = 10
"""So many times the timeout a slow attempt may go on while another one waits for its name."""
PROVEN: Final[set[tuple[str, str]]] = set()
"""Where this process has seen that deduplication is on: address and partition."""


class Run(NamedTuple):
    """Rows with one outcome."""

    start: int
    stop: int
    outcome: Any

    @property
    def ok(self) -> bool:
        return bool(self.outcome.ok)


class Stored(NamedTuple):
    """The outcome of rows that an earlier attempt sent."""

    ok: bool = True


class Numbered:
    """A producer of one topic or partition for one task, as `PulsarTask` uses it; a context manager."""

    def __init__(
        self,
        client: Any,
        partition: str,
        options: WriteOptions,
        place: Place,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._partition = partition
        self._options = options
        self._name = f"{options.producer_name or 'spark'}-{place.query}-{place.partition}"
        self._clock = clock
        self._sleep = sleep
        self._next = int(place.batch) << ROWS_BITS
        self._last = -1
        self._producer: Any = None

    def __enter__(self) -> Numbered:
        self._producer = self._open()
        self._last = self._producer.last_sequence_id
        if self._last >= 0:
            PROVEN.add((self._options.access.address, self._partition))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._producer.close()

    def send_arrow(self, batch: Any, *, columns: dict[str, str]) -> list[Run]:
        """Rows get the next sequence ids; those that are there already are left out."""
        first, there = self._number(len(batch))
        runs = [Run(0, there - 1, Stored())] if there > 1 else []
        if there:
            runs += self._send_rows(batch, there - 1, there, first, columns)
        if there < len(batch):
            runs += self._send_rows(batch, there, len(batch), first, columns)
            self._prove(first + len(batch) - 1)
        return runs

    def send_many(self, messages: list[dict[str, Any]]) -> list[Any]:
        first, there = self._number(len(messages))
        outcomes: list[Any] = [Stored()] * max(0, there - 1)
        numbered = [{**message, "sequence_id": first + row} for row, message in enumerate(messages)]
        # Alone: in an entry with rows that are new it would have these thrown away, too.
        for part in (numbered[len(outcomes) : there], numbered[there:]):
            if part:
                outcomes += self._producer.send_many(part, timeout=self._options.timeout)
        if there < len(messages):
            self._prove(first + len(messages) - 1)
        return outcomes

    def _number(self, rows: int) -> tuple[int, int]:
        """The sequence id of the first of so many rows, and how many of them an earlier attempt sent."""
        first = self._next
        self._next += rows
        return first, max(0, min(rows, self._last + 1 - first))

    def _send_rows(self, batch: Any, start: int, stop: int, first: int, columns: dict[str, str]) -> list[Run]:
        part, timeout = batch[start:stop], self._options.timeout
        sent = self._producer.send_arrow(part, columns=columns, sequence_id=first + start, timeout=timeout)
        return [Run(start + run.start, start + run.stop, run.outcome) for run in sent]

    def _prove(self, sent: int) -> None:
        """Without deduplication a broker remembers no sequence id: better told after some rows than never."""
        place = (self._options.access.address, self._partition)
        if place in PROVEN:
            return
        self._producer.close()
        self._producer = self._open()
        if self._producer.last_sequence_id < sent:
            raise ConfigError(
                f"deliveryGuarantee=exactly-once: deduplication is off for {self._partition}. Turn it on "
                "(`pulsar-admin namespaces set-deduplication --enable TENANT/NAMESPACE`), "
                f"or take deliveryGuarantee={AT_LEAST_ONCE}."
            )
        PROVEN.add(place)

    def _open(self) -> Any:
        """An attempt whose process died may hold the name until the broker notices, a slow one until it ends."""
        until = self._clock() + BUSY_TIMEOUTS * self._options.timeout
        while True:
            try:
                timeout = self._options.timeout
                return self._client.producer(self._partition, name=self._name, timeout=timeout, send_timeout=timeout)
            except MQError as error:
                if error.code != BUSY or self._clock() >= until:
                    raise
                self._sleep(BUSY_SECONDS)
