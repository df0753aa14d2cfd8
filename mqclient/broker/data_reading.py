"""Owns reading frames of a data folder back: logs grow, tables get their last values."""

from __future__ import annotations

from array import array
from types import ModuleType
from typing import Any

from mqclient.broker.store import Log
from mqclient.core import json
from mqclient.errors import ConfigError


class Reading:
    """What the frames told so far. How they are written is in `data.py`, how they are cut apart in the codecs."""

    def __init__(self, digest: ModuleType) -> None:
        self._digest = digest
        self._logs: dict[int, Log] = {}
        self._gaps: dict[int, tuple[int, int]] = {}
        """Log to the records that are in no file, the last of which is not counted; nobody may want those before it."""
        self.tables: dict[tuple[str, str], dict[Any, Any]] = {}
        """Owner and name of a table to what is in it."""

    def take(self, payloads: list[bytes], held: dict[int, int]) -> None:
        """The next frames, and the highest record of each log in their file."""
        try:
            changes, runs = self._digest.take_records(payloads)
        except ValueError as error:
            raise ConfigError(f"a frame of the data folder is of another version of mqclient: {error}") from error
        for number, first, *columns in runs:
            log = self._at(number, first)
            log.extend(columns[0], array("I", columns[1]), array("i", columns[2]), array("q", columns[3]))
            held[number] = log.next - 1
        for content in changes:
            for owner, name, key, value in json.loads(content):
                _change(self.tables.setdefault((owner, name), {}), tupled(key), value)

    def table(self, owner: str, name: str) -> dict[Any, Any]:
        """Taken out of `tables`."""
        return self.tables.pop((owner, name), {})

    def highest(self) -> int:
        """The highest number of a log that has a record somewhere."""
        return max(self._logs, default=0)

    def log(self, number: int, first: int) -> Log:
        """A log whose records are wanted from there on."""
        if number in self._gaps and first < self._gaps[number][1]:
            expected, following = self._gaps[number]
            raise ConfigError(
                f"the data folder misses the records {expected} to {following - 1} of log {number}: put back its files"
            )
        if number not in self._logs:
            self._at(number, first)
        self._logs[number].trim(first)
        return self._logs[number]

    def _at(self, number: int, first: int) -> Log:
        """A log that goes on with this record. Those before a gap may have been forgotten before they were written, or
        belong to a log that is no more: what is in the tables in the end tells."""
        log = self._logs.get(number)
        if log is None:
            log = self._logs[number] = Log()
            log.begin(first)
        elif log.next != first:
            self._gaps[number] = log.next, first
            log.trim(log.next)
            log.begin(first)
        return log


def _change(table: dict[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def tupled(key: Any) -> Any:
    """A key as it was before it was JSON."""
    return tuple(key) if isinstance(key, list) else key
