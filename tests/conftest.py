"""What every test gets: both implementations as `codec`, the tier as `scale`, and a header that says what is tested."""

from __future__ import annotations

import os
import platform
from importlib import import_module
from types import ModuleType

import pytest

from mqclient._impl import MODULES

SCALES = ("test", "ci", "soak")


class Partial:
    """An implementation of which a module is imported when first used: while the six are being written."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, module: str) -> ModuleType:
        if module not in MODULES:
            raise AttributeError(module)
        return import_module(f"mqclient._{self.name}.{module}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--scale", choices=SCALES, default="test", help="counts and durations: seconds, minutes, or full")


def pytest_report_header(config: pytest.Config) -> str:
    asked = os.environ.get("MQCLIENT_IMPL") or "unset"
    return f"mqclient: MQCLIENT_IMPL={asked}, {platform.python_implementation()} {platform.python_version()}"


@pytest.fixture(scope="session")
def scale(request: pytest.FixtureRequest) -> str:
    """The tier asked for: "test", "ci" or "soak"."""
    value: str = request.config.getoption("--scale")
    return value


@pytest.fixture(scope="session", params=["native", "pure"])
def codec(request: pytest.FixtureRequest) -> Partial:
    """Each implementation in turn: a namespace of the six modules."""
    return Partial(request.param)
