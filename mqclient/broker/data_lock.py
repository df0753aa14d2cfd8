"""Owns the lock of a data folder: one process has it at a time, and it is free again however that process ended."""

from __future__ import annotations

import os
from pathlib import Path

from mqclient.errors import ConfigError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class Lock:
    """Taken on creation; ConfigError names who has it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "lock"
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            _lock(self._file)
        except OSError as error:
            holder = os.pread(self._file, 32, 0).decode("ascii", "replace").strip() if fcntl else ""
            os.close(self._file)
            who = f"process {holder}" if holder else "another process"
            text = (
                f"the data folder {str(folder)!r} is in use by {who}: stop that broker, or give this one its own folder"
            )
            raise ConfigError(text) from error
        if fcntl:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._file)


def _lock(file: int) -> None:
    if fcntl:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    import msvcrt

    msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
