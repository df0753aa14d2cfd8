"""Memory of one batch is there for the next, where the C library can be asked for that."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from mqclient.spark import memory

FAULTS = """
import sys
from mqclient.spark import memory
from resource import RUSAGE_SELF, getrusage
if sys.argv[1] == "keep" and not memory.keep():
    raise SystemExit(77)
def batch():
    return [b"x" * size for size in range(1 << 20, 3 << 20, 100_000)]
for _ in range(3):
    batch()
before = getrusage(RUSAGE_SELF).ru_minflt
for _ in range(10):
    batch()
print(getrusage(RUSAGE_SELF).ru_minflt - before)
"""


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    memory.keep.cache_clear()
    yield
    memory.keep.cache_clear()


def faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode == 77:
        pytest.skip("not the GNU C library")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_memory_is_used_again() -> None:
    assert faults("keep") * 10 < faults("as it is")


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace())
    assert memory.keep() is False
    memory.keep.cache_clear()
    asked: list[tuple[int, ...]] = []

    def mallopt(*given: int) -> int:
        asked.append(given)
        return 1

    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(mallopt=mallopt))
    assert memory.keep() is True
    assert memory.keep() is True
    assert [number for number, _ in asked] == [memory.TRIM_THRESHOLD, memory.MMAP_THRESHOLD]
