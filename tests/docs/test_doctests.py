"""Every example in a docstring gives what it says it gives."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

from tests.support.tree import files, text

WITH_EXAMPLES = [path for path in files("*.py", under="mqclient") if ">>> " in text(path)]


@pytest.mark.parametrize("path", WITH_EXAMPLES)
def test_docstrings_tell_the_truth(path: str) -> None:
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    result = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0
    assert result.failed == 0
