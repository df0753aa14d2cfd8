"""Gives each benchmark its `compare`, in full or in the short form of `make test`, and writes down what came out."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.support import NOT_ASKED, Compare, Figure

# Short rounds have a chance to run undisturbed; of many the best one had it.
FULL: dict[str, Any] = {"rounds": 120, "seconds": 0.001, "budget": 1.0}
SHORT: dict[str, Any] = {"rounds": 20, "seconds": 0.0005, "budget": 0.05}

done = pytest.StashKey[list[Figure]]()
left_out = pytest.StashKey[dict[str, str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--short", action="store_true", help="a few short rounds of each figure: enough for bounds")
    parser.addoption("--figures", default="", help="measure just these figures: names with commas between")
    parser.addoption("--figures-json", default="", help="where to write the figures")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[done] = []
    config.stash[left_out] = {}


@pytest.fixture
def compare(benchmark: BenchmarkFixture, pytestconfig: pytest.Config) -> Compare:
    """Measures one figure: `compare(name, per=…, native=…, pure=…, floor=…)`; see `benchmarks.support`."""
    wanted = frozenset(filter(None, pytestconfig.getoption("--figures").split(",")))
    form = SHORT if pytestconfig.getoption("--short") else FULL
    return Compare(benchmark, **form, wanted=wanted, done=pytestconfig.stash[done])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    if report.skipped and NOT_ASKED not in report.longrepr[2]:
        item.config.stash[left_out][item.nodeid] = report.longrepr[2]
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    if path := session.config.getoption("--figures-json"):
        figures = [figure.to_json() for figure in session.config.stash[done]]
        found = {"figures": figures, "left_out": session.config.stash[left_out]}
        Path(path).write_text(json.dumps(found, indent=1, sort_keys=True), encoding="utf-8")
