"""A pytest plugin for .ci/check_module_coverage.py: what is reached counts for the test module at work."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module

import pytest
from coverage import Coverage

import mqclient


def pytest_collection_finish() -> None:
    """What importing runs counts for whoever it may be: it must not depend on which test is the first to need it."""
    for module in pkgutil.walk_packages(mqclient.__path__, "mqclient."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):  # of an extra that is not installed
                import_module(module.name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """One context for a module: pytest-cov's own, one for a test, make a report that takes minutes to write."""
    measured = Coverage.current()
    if measured is not None:
        measured.switch_context(item.location[0])
    return (yield)
