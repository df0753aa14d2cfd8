"""The lock of a data folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mqclient.broker.data_lock import Lock
from mqclient.errors import ConfigError

HOLDER = """
import sys, time
from pathlib import Path
from mqclient.broker.data_lock import Lock
held = Lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_one_at_a_time(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    with pytest.raises(ConfigError, match=rf"in use by process {os.getpid()}: stop that broker"):
        Lock(tmp_path)
    lock.release()
    Lock(tmp_path).release()


def test_it_is_free_when_its_process_was_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ConfigError, match=f"process {holder.pid}"):
            Lock(tmp_path)
        holder.send_signal(signal.SIGKILL)
        holder.wait(30)
    Lock(tmp_path).release()
