"""The package itself: a version, the name of the implementation, and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import mqclient
from mqclient import _impl


def test_the_version_is_one() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.?(dev|a|b|rc)\d+)?", mqclient.__version__)


def test_the_implementation_has_a_name() -> None:
    assert mqclient.__impl__ == _impl.default.name


def test_nothing_is_invented() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        vars(mqclient)["__getattr__"]("nothing")


@pytest.mark.parametrize("system", ["rocketmq", "pulsar"])
def test_the_asyncio_twin_is_there_by_its_name(system: str) -> None:
    """As the README says, without an import of its own."""
    program = f"from mqclient import {system}; print({system}.aio.Client.__module__)"
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert ".aio" in found.stdout
