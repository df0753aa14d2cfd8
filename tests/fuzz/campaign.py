"""Runs one decoder many times; `python -m tests.fuzz.campaign --help` does so from the command line."""

from __future__ import annotations

import argparse
import mmap
import os
import tempfile
import time
from pathlib import Path
from random import Random

from mqclient._impl import Impl, select
from tests.fuzz.mutator import Mutator
from tests.fuzz.targets import TARGETS

ROOM = 1 << 17


class Finding(AssertionError):
    """A decoder raised what it must not: says how to see it again."""


class Black:
    """The input at work, kept in a mapped file: it survives the death of the process, at the price of a copy."""

    def __init__(self, path: str) -> None:
        Path(path).write_bytes(bytes(ROOM))
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), ROOM)

    def note(self, data: bytes) -> None:
        size = min(len(data), ROOM - 4)
        self._map[: 4 + size] = size.to_bytes(4, "big") + data[:size]


def campaign(impl: Impl, name: str, runs: int, seed: int, black: Black | None = None) -> None:
    """`runs` inputs for the decoder called `name`; a Finding holds the input in hex."""
    target = TARGETS[name]
    mutator = Mutator(target.seeds(), seed, target.repair)
    for number in range(runs):
        data = mutator.next()
        if black is not None:
            black.note(data)
        try:
            target.run(impl, data, Random(number))
        except Exception as error:
            raise Finding(f"{impl.name} {name}, seed {seed}, run {number}: {error!r}\ninput {data.hex()}") from error


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("targets", nargs="*", metavar="TARGET", help=f"some of {', '.join(TARGETS)}")
    options.add_argument("--impl", default="native")
    options.add_argument("--runs", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=0)
    asked = options.parse_args()
    last = f"{tempfile.gettempdir()}/mqclient-fuzz-{os.getpid()}"
    print(f"the input at work is kept in {last}: its length in four bytes, then the bytes")
    for name in asked.targets or TARGETS:
        began = time.monotonic()
        campaign(select(asked.impl), name, asked.runs, asked.seed, Black(last))
        print(f"{asked.impl} {name}: {asked.runs} runs, no finding, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
