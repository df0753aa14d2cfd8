"""Runs one decoder under libFuzzer, which sees the branches of its C: atheris drives, a sanitized build is needed.

usage: python tests/fuzz/guided.py TARGET [libFuzzer's options and corpus folders]      see .ci/guided
"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path
from random import Random
from types import ModuleType

from mqclient._impl import Impl, select
from tests.fuzz.targets import TARGETS

REPAIRED = 3
"""Two mutants of this many get right lengths and checksums: else most would end at the door."""


def plant_seeds(name: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for index, seed in enumerate(TARGETS[name].seeds()):
        (folder / f"seed-{index}").write_bytes(seed)


def fuzz(name: str, options: list[str], atheris: ModuleType, codec: Impl) -> None:
    """Never returns: libFuzzer ends the process, with 0 after its `-runs` without a finding."""
    target, random = TARGETS[name], Random()

    def run(data: bytes) -> None:
        random.seed(zlib.crc32(data))  # a crash file alone brings the same calls again
        target.run(codec, data, random)

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        mutant = bytearray(atheris.Mutate(data, max_size))
        if target.repair is not None and seed % REPAIRED:
            target.repair(mutant)
        return bytes(mutant[:max_size])

    corpus = Path(options[-1])
    plant_seeds(name, corpus)
    atheris.Setup([sys.argv[0], *options], run, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    import atheris

    fuzz(sys.argv[1], sys.argv[2:], atheris, select("native"))
