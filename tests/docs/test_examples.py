"""Every example runs to its end by itself, against a broker of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.tree import ROOT, files

EXAMPLES = [path for path in files("*.py", under="examples") if "/spark_" not in path]
"""Those for Spark need a JDK: see tests/spark."""


@pytest.mark.parametrize("path", EXAMPLES)
def test_the_example_runs(path: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, path]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=90)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout
    assert "Traceback" not in done.stderr
