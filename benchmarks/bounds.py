"""Runs the micro benchmarks and holds their figures against bounds.json: ratios between contenders, nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.support import HERE

ROOT = HERE.parent
BOUNDS = HERE / "bounds.json"
SPARK = HERE / "bounds_spark.json"
"""Of the figures that need a JVM and minutes: the scaled tier looks at them."""

REFERENCE = (3, 11)
"""The CPython on which the issues' bounds hold as they stand."""
ELSEWHERE = 1.3
"""Other interpreters get so much more room. A 3.13 with a shared library asks the thread's own storage at each
allocation: reading a message takes 120 ns there, 95 on 3.11, and the C floor is the same 23."""


@dataclass(frozen=True)
class Bound:
    """`best(over) / best(under)` of one figure must not exceed `limit`, or (`at_least`) not fall below."""

    figure: str
    over: str
    under: str
    limit: float
    at_least: bool
    why: str

    def ratio(self, figure: dict[str, Any]) -> float:
        contenders = figure["contenders"]
        return float(contenders[self.over]["best"] / contenders[self.under]["best"])

    def holds(self, figure: dict[str, Any]) -> bool:
        ratio = self.ratio(figure)
        return ratio >= self.limit if self.at_least else ratio <= self.limit

    def __str__(self) -> str:
        return f"{self.over} ÷ {self.under} {'≥' if self.at_least else '≤'} {self.limit:g}"


@dataclass(frozen=True)
class Measured:
    """Figures by name, and why benchmarks (by their pytest id) were left out."""

    figures: dict[str, dict[str, Any]]
    left_out: dict[str, str]

    def reason(self, figure: str) -> str | None:
        """Why a figure is not there: its module's benchmarks say so."""
        module = figure.split(".", 1)[0]
        reasons = {why for name, why in self.left_out.items() if f"bench_{module}.py" in name}
        return "; ".join(sorted(reasons)) or None


def load(path: Path | None = None) -> list[Bound]:
    """What bounds.json asks, ValueError if it cannot be understood."""
    return [_bound(name, value) for name, value in json.loads((path or BOUNDS).read_text(encoding="utf-8")).items()]


def _bound(name: str, value: dict[str, Any]) -> Bound:
    figure, _, ratio = name.rpartition(" ")
    over, _, under = ratio.partition("/")
    kinds = value.keys() & {"max", "min"}
    if not (figure and over and under and value.get("why") and len(kinds) == 1 and len(value) == 2):
        raise ValueError(f'bounds.json: {name!r} is not \'"<figure> <over>/<under>": {{"max"|"min": n, "why": "…"}}\'')
    (kind,) = kinds
    room = 1.0 if sys.version_info[:2] == REFERENCE else ELSEWHERE
    limit = value["min"] / room if kind == "min" else value["max"] * room
    return Bound(figure, over, under, float(limit), kind == "min", value["why"])


def measure(*arguments: str, figures: Collection[str] = (), short: bool = False, quiet: bool = True) -> Measured:
    """Run the micro and path benchmarks in a process of their own; RuntimeError with their output if one fails."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "figures.json"
        command = [
            *(sys.executable, "-m", "pytest", str(HERE / "micro"), str(HERE / "path")),
            *("-p", "no:cacheprovider", "-p", "no:xdist"),
            *("-o", "python_files=bench_*.py", "-o", "python_functions=bench_*", "-o", "timeout=0"),
            *("--benchmark-timer=time.process_time", "--benchmark-columns=min,median,rounds"),
            *(f"--figures-json={found}", f"--figures={','.join(figures)}"),
            *(("--short",) if short else ()),
            *arguments,
        ]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=quiet, text=True, check=False)
        if done.returncode not in (0, 5):  # 5: none was selected
            raise RuntimeError(f"the benchmarks failed:\n{done.stdout}{done.stderr}")
        raw = json.loads(found.read_text(encoding="utf-8"))
    return Measured({figure["name"]: figure for figure in raw["figures"]}, raw["left_out"])
