"""`make bench`: measures everything, prints one table, leaves it with a plot in benchmarks/results/."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import bounds, report
from benchmarks.support import HERE

RESULTS = HERE / "results"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("-k", metavar="EXPRESSION", default="", help="only benchmarks that match, as in pytest")
    parser.add_argument("--short", action="store_true", help="a few rounds only, as `make test` does it")
    parser.add_argument("--reference", action="store_true", help="write the committed reference run")
    given = parser.parse_args(arguments)
    chosen = ("-k", given.k) if given.k else ()
    measured = bounds.measure("-q", "--benchmark-disable-gc", *chosen, short=given.short, quiet=False)
    if not measured.figures:
        print("nothing was measured", file=sys.stderr)
        return 1
    asked = bounds.load() + bounds.load(bounds.SPARK)
    table = report.rows(measured.figures, asked)
    folder = RESULTS / ("reference" if given.reference else "latest")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(report.markdown(table, measured.left_out), encoding="utf-8")
    numbers = json.dumps(measured.figures, indent=1, sort_keys=True)
    numbers = json.dumps(measured.figures, indent=1, sort_keys=True)
    (folder / "figures.json").write_text(numbers + "\n", encoding="utf-8")
    report.plot(measured.figures, folder / "figures.svg")
    print(f"\n{report.machine()}\n\n{report.plain(table)}\n")
    for name, why in sorted(measured.left_out.items()):
        print(f"left out: {name}: {why}")
    print(f"table, plot and numbers: {os.path.relpath(folder)}")
    figures = measured.figures
    broken = [bound for bound in asked if bound.figure in figures and not bound.holds(figures[bound.figure])]
    for bound in broken:
        print(f"BROKEN: {bound.figure}: {bound} ({bound.why})", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
