"""The outside tools: formatter and linter, types, stubs against both implementations, generated files."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mqclient._impl import MODULES
from tests.conftest import IMPLS
from tests.support import stubs
from tests.support.tree import ROOT, files, nothing, text


def run(*command: str, cwd: Path = ROOT, **environment: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.fail(done.stdout, pytrace=False)


def test_ruff_has_nothing_to_say() -> None:
    run("ruff", "check", ".")


def test_the_format_is_the_formatters() -> None:
    run("ruff", "format", "--check", ".")


@pytest.mark.timeout(600)
def test_types_are_strict() -> None:
    # Without a JDK `make test` installs no pyspark, and what its classes are is not known.
    unknown = [] if importlib.util.find_spec("pyspark") else ["--allow-subclassing-any", "--no-warn-unused-ignores"]
    run("mypy", *unknown)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("impl", IMPLS)
def test_one_stub_fits_both_implementations(impl: str, tmp_path: Path) -> None:
    """stubtest reads a copy in which the stubs lie where the implementation is."""
    shutil.copytree(ROOT / "mqclient", tmp_path / "mqclient", ignore=shutil.ignore_patterns("__pycache__"))
    names = [name for name in MODULES if (ROOT / f"mqclient/_native/{name}.pyi").exists()]
    allowlist = stubs.arrange(tmp_path / "mqclient", impl, names)
    (tmp_path / "allowed").write_text("\n".join(allowlist), encoding="utf-8")
    modules = [f"mqclient._{impl}.{name}" for name in names]
    run(
        "mypy.stubtest",
        "--concise",
        "--allowlist",
        "allowed",
        "--ignore-unused-allowlist",
        *modules,
        cwd=tmp_path,
        PYTHONPATH=".",
    )


@pytest.mark.parametrize(
    "tool", sorted(path.name for path in (ROOT / ".ci").glob("*.py") if "--check" in path.read_text())
)
def test_generated_files_are_up_to_date(tool: str) -> None:
    done = subprocess.run(
        [sys.executable, f".ci/{tool}", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_versions_of_package_and_metadata_agree() -> None:
    import mqclient

    assert f'\nversion = "{mqclient.__version__}"\n' in text("pyproject.toml")


def test_nothing_committed_names_this_machine() -> None:
    """No absolute path of a build machine, no registry host."""
    names = re.compile(
        r"/(?:work|root|home)/\w|(?:pypi|files\.pythonhosted|repo1?\.maven|registry)\.(?:org|apache)\b|-index-url"
    )
    wanted = (
        "*.py",
        "*.pyi",
        "*.pyx",
        "*.pxi",
        "*.pxd",
        "*.toml",
        "*.md",
        "*.in",
        "*.c",
        "*.json",
        "Makefile",
        "setup",
        "run",
    )
    mine = Path(__file__).relative_to(ROOT).as_posix()
    nothing(
        f"{path}: {line.strip()[:100]}"
        for path in files(*wanted)
        if path != mine and not (path.startswith("_native/") and path.endswith(".c"))
        for line in text(path).splitlines()
        if names.search(line)
    )


@pytest.mark.skipif(importlib.util.find_spec("cython_lint") is None, reason="cython-lint is not installed")
def test_cython_lint_has_nothing_to_say() -> None:
    # it asks pycodestyle, a command beside this interpreter
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    run("cython_lint.cython_lint", "--max-line-length=120", "_native", PATH=beside)
