"""The hot paths stay hot: the short form of the benchmarks keeps the ratios of bounds.json."""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from benchmarks import bounds, report
from benchmarks.bounds import Bound, Measured, measure
from benchmarks.support import HERE, compiled

FIGURE: dict[str, Any] = {
    "name": "permits.x",
    "per": 1000,
    "asked": "<= 80 ns",
    "contenders": {
        "native": {"best": 50.0, "median": 60.0, "rounds": 9},
        "pure": {"best": 500.0, "median": 600.0, "rounds": 9},
        "floor": {"best": 25.0, "median": 30.0, "rounds": 9},
        "zlib": {"best": 100.0, "median": 110.0, "rounds": 9},
    },
}
AT_MOST = Bound("permits.x", "native", "floor", 2.5, False, "the issue")
AT_LEAST = Bound("permits.x", "pure", "native", 20, True, "the issue")


def broken(asked: list[Bound], measured: Measured) -> dict[Bound, float]:
    figures = measured.figures
    return {bound: bound.ratio(figures[bound.figure]) for bound in asked if not bound.holds(figures[bound.figure])}


@pytest.mark.timeout(300)
def test_no_figure_breaks_its_bound() -> None:
    """A broken bound is measured again, in full: noise goes away, a slower path does not."""
    if os.environ.get("MQCLIENT_IMPL") == "pure":
        pytest.skip("bounds hold native against pure")
    asked = bounds.load()
    measured = measure(figures={bound.figure for bound in asked}, short=True)
    absent = {bound.figure for bound in asked} - measured.figures.keys()
    reasons = {name: measured.reason(name) for name in sorted(absent)}
    assert None not in reasons.values(), f"nobody measures what is bounded: {reasons}"
    suspects = broken([bound for bound in asked if bound.figure not in absent], measured)
    for _ in range(2):
        if suspects:
            suspects = broken(list(suspects), measure(figures={bound.figure for bound in suspects}))
    assert not suspects, "\n".join(
        f"{bound.figure}: {bound} ({bound.why}): {got:.3g}" for bound, got in suspects.items()
    )
    if absent == {bound.figure for bound in asked}:
        pytest.skip(f"no bound could be checked: {reasons}")
    if absent:
        warnings.warn(f"bounds that could not be checked: {reasons}", stacklevel=1)


def test_every_floor_compiles() -> None:
    programs = sorted(path.stem for path in (HERE / "floor").glob("*.c"))
    assert programs
    for program in programs:
        assert compiled(program).exists()


def test_a_bound_is_a_ratio_of_the_best_rounds() -> None:
    assert (AT_MOST.ratio(FIGURE), AT_MOST.holds(FIGURE)) == (2, True)
    assert (AT_LEAST.ratio(FIGURE), AT_LEAST.holds(FIGURE)) == (10, False)
    assert str(AT_MOST) == "native ÷ floor ≤ 2.5"
    measured = Measured({"permits.x": FIGURE}, {})
    assert broken([AT_MOST, AT_LEAST], measured) == {AT_LEAST: 10}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("permits.x", {"max": 1, "why": "w"}),
        ("permits.x native", {"max": 1, "why": "w"}),
        ("permits.x native/floor", {"max": 1}),
        ("permits.x native/floor", {"max": 1, "min": 1, "why": "w"}),
        ("permits.x native/floor", {"most": 1, "why": "w"}),
    ],
)
def test_bounds_that_cannot_be_understood(
    name: str, value: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "BOUNDS", tmp_path / "bounds.json")
    bounds.BOUNDS.write_text(json.dumps({"a.b pure/native": {"min": 25, "why": "w"}}), encoding="utf-8")
    monkeypatch.setattr(bounds, "REFERENCE", sys.version_info[:2])
    assert bounds.load() == [Bound("a.b", "pure", "native", 25, True, "w")]
    monkeypatch.setattr(bounds, "REFERENCE", (2, 7))
    assert bounds.load()[0].limit == 25 / bounds.ELSEWHERE
    bounds.BOUNDS.write_text(json.dumps({name: value}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"bounds\.json: 'permits\.x"):
        bounds.load()


def test_what_was_left_out_has_its_reason() -> None:
    measured = Measured({}, {"benchmarks/micro/bench_remoting.py::bench_walk": "Skipped: no C compiler"})
    assert measured.reason("remoting.walk.32") == "Skipped: no C compiler"
    assert measured.reason("permits.x") is None


def test_the_table_tells_everything(tmp_path: Path) -> None:
    table = report.rows({"permits.x": FIGURE}, [AT_MOST, AT_LEAST])
    assert table == [
        (
            *("permits.x", "1000", "50.0", "500", "25.0, zlib 100", "50.0", "10.0 x", "2.00 x", "<= 80 ns"),
            *("native ÷ floor ≤ 2.5, pure ÷ native ≥ 20", "2.00 holds, 10.0 BROKEN"),
        )
    ]
    text = report.markdown(table, {"bench_y": "no compiler"})
    assert report.machine() in text
    assert "- bench_y: no compiler" in text
    first, second = report.plain(table).splitlines()
    assert first.index("native ns") + len("native ns") == second.index("50.0") + len("50.0")
    pytest.importorskip("matplotlib")
    report.plot({"permits.x": FIGURE}, tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_text(encoding="utf-8").startswith("<?xml")
