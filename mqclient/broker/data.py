"""Owns what a broker keeps in a folder: logs and tables, written before anybody is told, read at the next start.

Whoever keeps something hands in its tables (a `Watched` dict each) and lists its logs; what changed in a turn of the
loop is written as one frame before the turn's answers leave: all of it or nothing is there afterwards. Each file begins
with everything that the tables hold, so that files may go in which no log has a record any more.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from types import ModuleType
from typing import Any, Final

from mqclient.broker.data_files import Buffer, File, Files
from mqclient.broker.data_lock import Lock
from mqclient.broker.data_reading import Reading, tupled
from mqclient.broker.store import Log
from mqclient.broker.watched import Watched
from mqclient.core import json
from mqclient.errors import ConfigError

LOG = logging.getLogger("mqclient.broker")

FILE_SIZE: Final = 64 << 20
CHANGES: Final = 1
RECORDS: Final = 2
ENTRY: Final = Struct("<BxxxI")
"""Kind and size of what follows."""
BLOCK: Final = Struct("<IIQ")
"""Number of the log, number of records, number of the first. Then times, marks, ends, and the records."""
LOGS: Final = "logs"
"""Our own table: number of a log to whose it is, its key, and the number of its oldest record."""


@dataclass(slots=True)
class Table:
    """One table: where it lives, its values as JSON and back."""

    live: Mapping[Any, Any]
    dump: Callable[[Any], Any]
    load: Callable[[Any, Any], None]
    """Called with key and JSON of each entry at the start."""


@dataclass(slots=True)
class Shelf:
    """What one owner keeps: its tables, and what to do with logs that were read."""

    adopt: Callable[[Any, Log], None] | None
    tables: dict[str, Table] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Kept:
    """A log that is kept."""

    number: int
    owner: str
    key: Any
    log: Log
    first: int = 0


class Data:
    """A folder, open from `open` to `close`; `fsync`: what is told to have been kept outlives the machine, too."""

    def __init__(self, folder: str | Path, digest: ModuleType, *, fsync: bool = False) -> None:
        self.folder = Path(folder)
        self._digest = digest
        self.fsync = fsync
        self.file_size = FILE_SIZE
        self._shelves: dict[str, Shelf] = {}
        self._files = Files(self.folder, digest)
        self._lock: Lock | None = None
        self._soon: Callable[[Callable[[], None]], object] | None = None
        self._told: dict[tuple[str, str, Any], None] = {}
        self._unsaved: list[Log] = []
        self._logs: dict[int, Kept] = {}
        self._by_log: dict[int, Kept] = {}
        self._next = 1
        self._ready = False
        self._left: tuple[int, int] | None = None
        """The last file and its size when the folder was closed: it may be opened again if nobody had it meanwhile."""
        self._holds: dict[int, dict[int, int]] = {}
        """File to log to the highest record of it in there."""

    # ---- who keeps what

    def shelf(self, owner: str, adopt: Callable[[Any, Log], None] | None = None) -> None:
        """A place for this owner; `adopt(key, log)` gets each of its logs at the start, before its tables come."""
        self._shelves[owner] = Shelf(adopt)

    def keep(
        self,
        owner: str,
        name: str,
        live: Mapping[Any, Any],
        dump: Callable[[Any], Any] = lambda value: value,
        load: Callable[[Any, Any], None] | None = None,
    ) -> None:
        """Keep a table from now on; keys are text, numbers, or tuples of them. One that is not watched is told of by
        `tell`, and needs a `load`."""
        if isinstance(live, Watched):
            load = load or live.__setitem__
            live.tell = lambda key: self.tell(owner, name, key)
        assert load is not None
        self._shelves[owner].tables[name] = Table(live, dump, load)

    def track(self, owner: str, key: Any, log: Log) -> None:
        """Keep a log from now on, if it is not kept yet."""
        if id(log) not in self._by_log:
            self._track(Kept(self._next, owner, key, log, log.first))

    def trimmed(self, log: Log) -> None:
        """Its oldest records may be forgotten."""
        kept = self._by_log.get(id(log))
        if kept is not None:
            self.tell("", LOGS, kept.number)

    def drop(self, log: Log) -> None:
        """Its records are wanted no longer."""
        kept = self._by_log.pop(id(log), None)
        if kept is not None:
            log.unsaved = None
            del self._logs[kept.number]
            self._unsaved = [one for one in self._unsaved if one is not log]
            self.tell("", LOGS, kept.number)

    # ---- open and close

    def open(self) -> None:
        """Lock the folder, give back to everybody what it holds, be ready to keep more."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(self.folder)
        try:
            if self._left is None:
                with _uncollected():
                    self._give_back(self._read())
                self._told.clear()
            else:
                self._files.resume(*self._left)
            if self._files.last is None or self._files.last.number not in self._holds:
                self._grow()
            self._ready = True
            self.commit()
        except BaseException:
            self.close()
            raise

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on what nobody waits for is written at the end of the loop's turn, too."""
        self._soon = loop.call_soon
        if self.dirty:
            loop.call_soon(self._commit_unasked)

    def close(self) -> None:
        """Write what is left; others may have the folder then. May be called twice."""
        self._soon = None
        if self._lock is None:
            return
        try:
            if self._files.last is not None and self._ready:
                self.commit()
                self._left = self._files.last.number, self._files.last.size
        finally:
            self._ready = False
            self._files.close()
            self._lock.release()
            self._lock = None

    # ---- writing

    @property
    def dirty(self) -> bool:
        """Whether there is something that must be written before anybody is told of it."""
        return bool(self._unsaved or self._told)

    def commit(self) -> None:
        """Write what is new as one frame. OSError: nothing was kept, nothing may be told; it may be tried again."""
        if not (self._unsaved or self._told):
            return
        file = self._files.last
        assert file is not None, "the folder is not open"
        if file.size >= self.file_size:
            file = self._grow()
        changes = [[*place, self._dumped(*place)] for place in self._told]
        saved: list[tuple[Log, int]] = []
        parts: list[Buffer] = []
        for log in self._unsaved:
            parts += self._records(log, self._by_log[id(log)].number, file.number)
            saved.append((log, log.next))
        if changes:
            text = json.dumps(changes)
            parts = [ENTRY.pack(CHANGES, len(text)), text, *parts]
        file.append(parts)
        if self.fsync:
            file.sync()
        for log, following in saved:
            log.saved = following
        self._unsaved.clear()
        self._told.clear()

    def _commit_unasked(self) -> None:
        try:
            if self._lock is not None:
                self.commit()
        except OSError as error:
            LOG.error("%s: not written: %s", self.folder, error)

    def _records(self, log: Log, number: int, file: int) -> list[Buffer]:
        block = log.block(log.saved)
        size = BLOCK.size + 16 * len(block.times) + block.size
        held = self._holds.setdefault(file, {})
        held[number] = log.next - 1
        columns: list[Buffer] = [column.tobytes() for column in (block.times, block.marks, block.ends)]
        first = log.next - len(block.times)
        return [ENTRY.pack(RECORDS, size), BLOCK.pack(number, len(block.times), first), *columns, *block.views]

    def _dumped(self, owner: str, name: str, key: Any) -> Any:
        if not owner:
            kept = self._logs.get(key)
            return None if kept is None else [kept.owner, kept.key, kept.log.first]
        table = self._shelves[owner].tables[name]
        value = table.live.get(key)
        return None if value is None else table.dump(value)

    def _grow(self) -> File:
        """A new file, which begins with all that the tables hold; then files go that nobody needs."""
        file = self._files.grow()
        every = [["", LOGS, number, self._dumped("", LOGS, number)] for number in self._logs]
        for owner, shelf in self._shelves.items():
            for name, table in shelf.tables.items():
                every += [[owner, name, key, table.dump(value)] for key, value in table.live.items()]
        text = json.dumps(every)
        file.append([ENTRY.pack(CHANGES, len(text)), text])
        if self.fsync:
            file.sync()
            self._files.sync_folder()
        self._holds[file.number] = {}
        for number in sorted(self._holds):
            if number == file.number or any(self._wanted(*held) for held in self._holds[number].items()):
                break
            self._files.remove(number)
            del self._holds[number]
        return file

    def _wanted(self, number: int, highest: int) -> bool:
        kept = self._logs.get(number)
        return kept is not None and kept.log.first <= highest

    # ---- being told

    def tell(self, owner: str, name: str, key: Any) -> None:
        """This entry of a table is not what it was."""
        if not self.dirty and self._soon is not None:
            self._soon(self._commit_unasked)
        self._told[owner, name, key] = None

    def _on_unsaved(self, log: Log) -> None:
        if not self.dirty and self._soon is not None:
            self._soon(self._commit_unasked)
        self._unsaved.append(log)

    def _track(self, kept: Kept) -> None:
        self._logs[kept.number] = self._by_log[id(kept.log)] = kept
        self._next = max(self._next, kept.number + 1)
        kept.log.unsaved = self._on_unsaved
        self.tell("", LOGS, kept.number)
        if kept.log.saved < kept.log.next:
            self._on_unsaved(kept.log)

    # ---- reading

    def _read(self) -> Mapping[tuple[str, str], dict[Any, Any]]:
        """All frames: logs grow, tables get their last values."""
        reading = Reading(self._digest)
        for file, payloads in self._files.read():
            reading.take(payloads, self._holds.setdefault(file, {}))
        self._next = reading.highest() + 1  # a number is never given twice, while files may know whose it was
        for number, (owner, key, first) in reading.table("", LOGS).items():
            log = reading.log(number, first)
            log.saved = log.next
            self._track(Kept(number, owner, tupled(key), log, first))
        return reading.tables

    def _give_back(self, tables: Mapping[tuple[str, str], dict[Any, Any]]) -> None:
        strange = {owner for owner, _ in tables} | {kept.owner for kept in self._logs.values()}
        strange -= self._shelves.keys()
        if strange:
            text = f"the data folder {str(self.folder)!r} also holds {', '.join(sorted(strange))}: "
            raise ConfigError(text + "start it with the doors and the number of brokers that it was made with")
        for kept in self._logs.values():
            adopt = self._shelves[kept.owner].adopt
            assert adopt is not None, f"{kept.owner} has no logs"
            adopt(kept.key, kept.log)
        for owner, shelf in self._shelves.items():
            for name, table in shelf.tables.items():
                for key, value in tables.get((owner, name), {}).items():
                    table.load(key, value)


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage collection meanwhile: millions of small things are made here, and none of them is a cycle."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
