"""Owns the file in which a broadcasting group's offsets live: Java's format, replaced atomically, one process each."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from mqclient.errors import ProtocolError
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.bodies import offset_table, read_body, write_body

SLOTS = 1024


class OffsetFile:
    """`<base>/<host>/<group>/<slot>/offsets.json`; the slot is the lowest that this process can lock.

    A random client id must not lose its offsets, and two processes must not share a file. Everything here blocks.
    """

    def __init__(self, base: str | None, host: str, group: str) -> None:
        root = Path(base) if base else Path.home() / ".rocketmq_offsets"
        self._folder = root / host / group
        self._lock: int | None = None
        self.path: Path | None = None

    def load(self) -> dict[MessageQueue, int]:
        """Lock a slot and read its offsets: the file, else the last good one, else none."""
        for slot in range(SLOTS):
            folder = self._folder / str(slot)
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
        raise OSError(f"all {SLOTS} slots of {self._folder} are locked by other processes")

    def save(self, offsets: dict[MessageQueue, int]) -> None:
        """Written beside, synced, put in place; the one before stays as the last good one."""
        assert self.path is not None
        new = self.path.with_suffix(".new")
        with new.open("wb") as file:
            file.write(write_body({"offsetTable": offsets}))
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

    def _read(self) -> dict[MessageQueue, int]:
        broken: Exception | None = None
        for path in (self.path, self._backup):
            assert path is not None
            try:
                return offset_table(read_body(path.read_bytes()))
            except FileNotFoundError:
                continue
            except (OSError, ProtocolError) as error:
                broken = error
        if broken is not None:
            raise ProtocolError(f"{self.path} cannot be read, nor the one before: {broken}") from broken
        return {}
