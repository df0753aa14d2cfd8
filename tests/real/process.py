"""Owns one JVM process: started with its log in a file, awaited until ready, stopped by its id."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from random import SystemRandom

BOOT_SECONDS = 180.0  # seen: 9 s alone, 61 s on a loaded machine
CHANCE = SystemRandom()
STOP_SECONDS = 30.0  # seen: a RocketMQ broker takes 14 s for its shutdown steps


class Jvm:
    """A Java process with its working folder and log."""

    def __init__(self, name: str, command: list[str], folder: Path) -> None:
        self.name = name
        self.command = command
        self.folder = folder
        self.log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def await_ready(self, ready: Callable[[], bool]) -> None:
        """Ask until ready; a process that ended meanwhile is reported with the end of its log."""
        end = time.monotonic() + BOOT_SECONDS
        while not ready():
            if self._process is None or self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.name} did not come up; the end of {self.log}:\n{self.tail()}")
            time.sleep(0.1)

    def says(self, text: str) -> bool:
        """Whether the log holds this text by now."""
        return self.log.exists() and text in self.log.read_text(errors="replace")

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else "(no log)"

    def kill(self) -> None:
        """SIGKILL, as a crash would; nothing where nobody runs."""
        if self._process is not None and self._process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self._process.wait()

    def stop(self) -> None:
        """SIGTERM, and SIGKILL where that is not enough."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def free_port(*offsets: int) -> int:
    """A port that is free now, and so are those at these distances from it (a broker opens several).

    It lies below those that outgoing connections get: a JVM takes seconds until it binds, and one of these was there.
    """
    while True:
        port = random.SystemRandom().randrange(12_000, 32_000)
        if all(_free(port + offset) for offset in (0, *offsets)):
            return port


def _free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def accepts(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
