"""What was measured as one table and one plot."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks.bounds import Bound

HEAD = (
    "figure", "messages", "native ns", "pure ns", "floor ns", "native µs a batch", "pure ÷ native", "native ÷ floor",
    "asked", "bound", "verdict",
)  # fmt: skip
FAMOUS = ("native", "pure", "floor")


def machine() -> str:
    """The processor, its cores and the Python, in one line."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text(encoding="utf-8").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    system = f"{platform.system()} {platform.machine()}"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{model}, {os.cpu_count()} cores, {system}, {python}"


def best(figure: dict[str, Any], contender: str) -> float | None:
    found = figure["contenders"].get(contender)
    return None if found is None else float(found["best"])


def number(value: float | None, unit: str = "") -> str:
    if value is None:
        return ""
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f}{unit}"


def row(figure: dict[str, Any], bounds: Iterable[Bound]) -> tuple[str, ...]:
    native, pure, floor = (best(figure, name) for name in FAMOUS)
    assert native is not None
    mine = [bound for bound in bounds if bound.figure == figure["name"]]
    verdicts = [f"{number(bound.ratio(figure))} {'holds' if bound.holds(figure) else 'BROKEN'}" for bound in mine]
    others = [f"{name} {number(best(figure, name))}" for name in figure["contenders"] if name not in FAMOUS]
    return (
        figure["name"],
        str(figure["per"]),
        number(native),
        number(pure),
        ", ".join(filter(None, [number(floor), *others])),
        number(native * figure["per"] / 1000),
        number(pure / native if pure else None, " x"),
        number(native / floor if floor else None, " x"),
        figure["asked"],
        ", ".join(map(str, mine)),
        ", ".join(verdicts),
    )


def rows(figures: dict[str, dict[str, Any]], bounds: list[Bound]) -> list[tuple[str, ...]]:
    return [row(figures[name], bounds) for name in sorted(figures)]


def plain(table: list[tuple[str, ...]]) -> str:
    """Columns under each other, for a terminal."""
    widths = [max(len(line[column]) for line in [HEAD, *table]) for column in range(len(HEAD))]
    lines = [
        "  ".join(cell.ljust(width) if place in (0, 8, 9, 10) else cell.rjust(width) for place, (cell, width) in cells)
        for cells in ([*enumerate(zip(line, widths, strict=True))] for line in [HEAD, *table])
    ]
    return "\n".join(line.rstrip() for line in lines)


def markdown(table: list[tuple[str, ...]], left_out: dict[str, str]) -> str:
    """The table as a page: where it was measured, and what was left out."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    lines = [
        "# What mqclient's hot paths cost",
        "",
        f"Measured {now} on: {machine()}. Processor time per message in",
        "nanoseconds, the best of many interleaved rounds. `make bench` measures anew.",
        "",
        *("| " + " | ".join(line) + " |" for line in [HEAD, ("---",) * len(HEAD), *table]),
    ]
    if left_out:
        lines += ["", "Left out:", "", *(f"- {name}: {why}" for name, why in sorted(left_out.items()))]
    return "\n".join(lines) + "\n"


def plot(figures: dict[str, dict[str, Any]], path: Path) -> None:
    """Bars on a logarithmic scale, figure by figure."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "mqclient"
    from matplotlib import pyplot

    names = sorted(figures, reverse=True)
    chart, axes = pyplot.subplots(figsize=(9, 1.5 + 0.45 * len(names)))
    colours = {"native": "#1b6ca8", "pure": "#c9a227", "floor": "#7a7a7a"}
    for place, contender in enumerate(("floor", "pure", "native")):
        there = [(line, best(figures[name], contender)) for line, name in enumerate(names)]
        bars = [(line + (place - 1) * 0.27, value) for line, value in there if value is not None]
        axes.barh([at for at, _ in bars], [value for _, value in bars], 0.25, label=contender, color=colours[contender])
    axes.set_yticks(range(len(names)), names)
    axes.set_xscale("log")
    axes.set_xlim(left=1)
    axes.set_xlabel("nanoseconds per message (logarithmic)")
    axes.set_title(machine(), fontsize=9)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], loc="best")
    axes.margins(y=0.01)
    chart.tight_layout()
    chart.savefig(path, metadata={"Date": None})
    pyplot.close(chart)
