"""A pytest plugin for .ci/check_module_coverage.py: what is reached counts for the test module at work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from coverage import Coverage


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """One context for a module: pytest-cov's own, one for a test, make a report that takes minutes to write."""
    measured = Coverage.current()
    if measured is not None:
        measured.switch_context(item.location[0])
    return (yield)
