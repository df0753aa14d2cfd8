"""Owns the file in which a broadcasting group's offsets live: Java's format, replaced atomically, one process each."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from mqclient.errors import ProtocolError
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.bodies import offset_table, queue_of, read_body, write_body

LOG = logging.getLogger("mqclient.remoting")

SLOTS = 1024


Witness = tuple[int, int]
"""A message that was consumed: its offset, and when it was stored."""
Stored = tuple[dict[MessageQueue, int], dict[MessageQueue, Witness]]
TIMES = "mqclientStoreTimes"
"""Beside Java's table, which Java reads and this it does not: by queue, offset and store time of a witness."""


class OffsetFile:
    """`<base>/<host>/<group>/<slot>/offsets.json`; the slot is the lowest that this process can lock, or a given one.

    A random client id must not lose its offsets, and two processes must not share a file. Everything here blocks.
    """

    def __init__(self, base: str | None, host: str, group: str, instance: str | None = None) -> None:
        self._root = Path(base) if base else Path.home() / ".rocketmq_offsets"
        self._folder = self._root / host / group
        self._group = group
        self._instance = instance
        self._lock: int | None = None
        self.path: Path | None = None

    def load(self) -> Stored:
        """Lock a slot and read its offsets: the file, else the last good one, else what Java's client left."""
        slots = [str(slot) for slot in range(SLOTS)] if self._instance is None else [self._instance]
        for slot in slots:
            folder = self._folder / slot
            folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lock)
                continue
            self._lock = lock
            self.path = folder / "offsets.json"
            return self._read()
        raise OSError(f"the slots {slots[0]} to {slots[-1]} of {self._folder} are locked by other processes")

    def save(self, offsets: dict[MessageQueue, int], witnesses: Mapping[MessageQueue, Witness] | None = None) -> None:
        """Written beside, synced, put in place; the one before stays as the last good one."""
        assert self.path is not None
        new = self.path.with_suffix(".new")
        with new.open("wb") as file:
            file.write(write_body({"offsetTable": offsets, TIMES: witnesses or None}))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            os.replace(self.path, self._backup)
        os.replace(new, self.path)

    def close(self) -> None:
        """Give the slot back."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def _backup(self) -> Path:
        assert self.path is not None
        return self.path.with_name("offsets.json.bak")

    def _read(self) -> Stored:
        broken: Exception | None = None
        for path in (self.path, self._backup):
            assert path is not None
            try:
                return _parse(path)
            except FileNotFoundError:
                continue
            except (OSError, ProtocolError) as error:
                broken = error
        if broken is not None:
            raise ProtocolError(f"{self.path} cannot be read, nor the one before: {broken}") from broken
        return self._java()

    def _java(self) -> Stored:
        """What the Java client left under `<base>/<client id>/<group>/`, the newest; asked while ours is absent."""
        files = sorted(self._root.glob(f"*@*/{self._group}/offsets.json"), key=lambda path: path.stat().st_mtime)
        for path in reversed(files):
            try:
                return _parse(path)
            except (OSError, ProtocolError) as error:
                LOG.warning("%s cannot be read, and is passed over: %s", path, error)
        return {}, {}


def _parse(path: Path) -> Stored:
    body = read_body(path.read_bytes())
    times = body.get(TIMES) if isinstance(body, dict) else None
    try:
        witnesses = {queue_of(queue): (int(at), int(when)) for queue, (at, when) in (times or {}).items()}
    except (TypeError, ValueError, AttributeError) as error:
        raise ProtocolError(f"no {TIMES} in {path}") from error
    return offset_table(body), witnesses
