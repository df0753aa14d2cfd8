"""Which lines of the native decoders the fuzz campaign, the vectors and, for what concerns threads, the tests of the
lanes reach, measured by gcov on a copy of the tree.

usage: python .ci/decoder_coverage.py [--runs N] [--at-least PERCENT]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "build" / "coverage"
COPIED = ("_native", "mqclient", "tests", "proto", "setup.py", "pyproject.toml", "README.md", "LICENSE")
EXTENSIONS = ("remoting", "pulsar")
ENCODERS = ("arguments", "arrow", "batch", "encode", "ids", "outgoing", "requests", "rows")
"""Parts with these names make bytes; they are not fed any."""
LANES = (
    *(f"tests/unit/test_{name}.py" for name in ("pulsar_lane", "pulsar_lane_company", "remoting_lane")),
    "tests/api/test_pulsar_lane_company.py",
    "tests/unit/rocketmq/remoting/test_express.py",
    "tests/api/test_rocketmq_lane.py",
)
"""They decode answers, too, but most of them is about who waits, forks and signals: no bytes bring that about."""
UNREACHABLE = re.compile(r"^\s*(raise (MemoryError|TypeError|ConfigError)\b|\"\"\"|def |cdef )")
"""Lines that no bytes can reach: out of memory, a class that Python code may not make; gcov counts headings, too."""


def run(*command: str, allowed: tuple[int, ...] = (0,), **environment: str) -> None:
    done = subprocess.run(command, cwd=COPY, env={**os.environ, **environment}, check=False)
    if done.returncode not in allowed:
        raise subprocess.CalledProcessError(done.returncode, command)


def build() -> None:
    """A copy, since the C files are others with line numbers in them."""
    shutil.rmtree(COPY, ignore_errors=True)
    COPY.mkdir(parents=True)
    left_out = shutil.ignore_patterns("*.so", "*.c", "__pycache__")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, COPY / name, ignore=left_out)
        else:
            shutil.copy2(ROOT / name, COPY)
    run(
        *(sys.executable, "setup.py", "-q", "build_ext", "--inplace", "--build-temp", "objects"),
        MQCLIENT_LINES="1",
        MQCLIENT_CFLAGS="--coverage -O0 -Wno-cpp",
        MQCLIENT_LDFLAGS="--coverage",
    )


def counts() -> dict[str, dict[int, int]]:
    """File of ours -> line -> how often it ran."""
    found: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for data in COPY.glob("objects/**/*.gcda"):
        command = ["gcov", "--json-format", "--stdout", str(data)]
        report = subprocess.run(command, cwd=COPY, check=True, capture_output=True, text=True).stdout
        for document in report.splitlines():
            for file in json.loads(document)["files"]:
                name = file["file"].removeprefix(f"{COPY}/")
                for line in file["lines"]:
                    found[name][line["line_number"]] += line["count"]
    return found


def is_decoder(name: str) -> bool:
    stem = Path(name).stem
    return name.startswith(tuple(f"_native/{one}/" for one in EXTENSIONS)) and not any(
        word in stem for word in ENCODERS
    )


def ranges(numbers: list[int]) -> str:
    """1-3, 7, 9-12"""
    out: list[list[int]] = []
    for number in numbers:
        if out and out[-1][1] == number - 1:
            out[-1][1] = number
        else:
            out.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in out)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", default="20000")
    options.add_argument("--at-least", type=float, default=95.0, metavar="PERCENT")
    asked = options.parse_args()
    build()
    run(sys.executable, "tests/fuzz/campaign.py", "--runs", asked.runs, PYTHONPATH=str(COPY))
    suite = ("-q", "-p", "no:cacheprovider", "-k", "not pure", "tests/vectors", *LANES)
    # Whether they pass is another row's matter; a test that was too late in this slow build has reached its lines.
    run(sys.executable, "-m", "pytest", *suite, allowed=(0, 1))
    totals = {name: [0, 0] for name in EXTENSIONS}
    for name, lines in sorted(counts().items()):
        if is_decoder(name):
            source = (COPY / name).read_text(encoding="utf-8").splitlines()
            known = {at: count for at, count in lines.items() if at <= len(source)}
            reachable = {at: count for at, count in known.items() if not UNREACHABLE.match(source[at - 1])}
            missed = sorted(at for at, count in reachable.items() if not count)
            total = totals[name.split("/")[1]]
            total[0] += len(reachable) - len(missed)
            total[1] += len(reachable)
            percent = 100 * (1 - len(missed) / len(reachable))
            print(f"{percent:5.1f} %  {name}" + (f"  not reached: {ranges(missed)}" if missed else ""))
    shares = {name: 100 * reached / lines for name, (reached, lines) in totals.items()}
    print("".join(f"{share:5.1f} %  {name}, all decoding parts together\n" for name, share in shares.items()), end="")
    return 1 if min(shares.values()) < asked.at_least else 0


if __name__ == "__main__":
    sys.exit(main())
