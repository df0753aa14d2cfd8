"""Spark's figures keep the ratios of bounds_spark.json, measured on whatever machine this is."""

from __future__ import annotations

import re

import pytest

from benchmarks import bounds
from benchmarks.bounds import Bound, measure

TRIES = 3
BESIDE_OTHERS = re.compile(r"spark\.batch_\w+\.100")


@pytest.mark.ci
@pytest.mark.timeout(3000)
def test_no_figure_of_spark_breaks_its_bound(scale: str) -> None:
    """A broken bound is measured again: noise goes away, a slower path does not. Beside other tests only the batches of
    small messages, which meet theirs with margin; streams, sinks and large messages in soak: a trigger is a chain of
    answers that wait for each other, and on a busy machine it measures the others."""
    asked = bounds.load(bounds.SPARK)
    suspects, told = [bound for bound in asked if scale == "soak" or BESIDE_OTHERS.fullmatch(bound.figure)], ""
    for _ in range(TRIES):
        measured = measure(figures={bound.figure for bound in suspects})
        absent = {bound.figure for bound in suspects} - measured.figures.keys()
        reasons = {name: why for name, why in measured.left_out.items() if "bench_spark" in name}
        if absent and any("JDK" in why for why in reasons.values()):
            pytest.skip("no JDK found")
        assert not absent, f"nobody measures what is bounded: {absent}, {reasons}"
        suspects = [bound for bound in suspects if not bound.holds(measured.figures[bound.figure])]
        told = "\n".join(said(bound, measured.figures[bound.figure]) for bound in suspects)
        if not suspects:
            return
    pytest.fail(told, pytrace=False)


def said(bound: Bound, figure: dict[str, object]) -> str:
    return f"{bound.figure}: {bound} ({bound.why}): {bound.ratio(figure):.3g}"
