"""Gives each benchmark its `compare`, in full or in the short form of `make test`."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.support import Compare

SHORT_ROUNDS = 15
SHORT_SECONDS = 0.001


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--short", action="store_true", help="a few short rounds of each figure: enough for bounds")
    parser.addoption("--figures", default="", help="measure just these figures: names with commas between")


@pytest.fixture
def compare(benchmark: BenchmarkFixture, pytestconfig: pytest.Config) -> Compare:
    """Measures one figure: `compare(name, per=…, native=…, pure=…, floor=…)`; see `benchmarks.support`."""
    wanted = frozenset(filter(None, pytestconfig.getoption("--figures").split(",")))
    if pytestconfig.getoption("--short"):
        return Compare(benchmark, SHORT_ROUNDS, SHORT_SECONDS, wanted)
    return Compare(benchmark, wanted=wanted)
