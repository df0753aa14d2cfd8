"""Installations into empty environments: sdist without Cython, pure without a compiler. Minutes: from --scale=ci up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest

from mqclient._impl import MODULES
from tests.support.tree import ROOT

pytestmark = [pytest.mark.ci, pytest.mark.timeout(900), pytest.mark.xdist_group("clean")]
SOURCES = ("_native", "mqclient", "proto", "setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE")
USE = "import mqclient; print(mqclient.__impl__)"
NO_COMPILER = {"CC": "/bin/false", "CXX": "/bin/false"}


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MQCLIENT_", "PYTHON"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**clean, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.fail(done.stdout[-8000:], pytrace=False)
    return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a clone has: no C file, no extension, no stamp."""
    folder = tmp_path_factory.mktemp("checkout")
    left_out = shutil.ignore_patterns("*.so", "*.c", "*.html", "__pycache__", "*.egg-info")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=left_out)
        else:
            shutil.copy2(source, folder)
    return folder


@pytest.fixture(scope="module")
def sdist(checkout: Path) -> Path:
    """Built by the backend that pip asks, in an environment that has Cython."""
    code = "import sys; from setuptools.build_meta import build_sdist; print(build_sdist(sys.argv[1]))"
    run(sys.executable, "-c", code, "dist", cwd=checkout)
    (found,) = (checkout / "dist").glob("*.tar.gz")
    return found


def empty(folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    return folder / "bin/python"


def install(python: Path, what: Path, *options: str, **environment: str) -> str:
    pip = ("-m", "pip", "install", "--disable-pip-version-check", "--no-cache-dir")
    return run(python, *pip, *options, what, cwd=what.parent, **environment)


def test_the_sdist_carries_every_source_and_its_generated_c(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {f"_native/{name}.c" for name in MODULES} <= names
    parts = {
        path.relative_to(ROOT).as_posix()
        for end in ("pyx", "pxi", "pxd", "h")
        for path in ROOT.glob(f"_native/**/*.{end}")
    }
    stubs = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("mqclient/**/*.pyi")}
    assert parts | stubs | {"mqclient/py.typed", "LICENSE"} <= names


def test_the_sdist_builds_without_cython(sdist: Path, tmp_path: Path) -> None:
    python = empty(tmp_path / "venv")
    run(python, "-m", "pip", "install", "setuptools>=77", cwd=tmp_path)
    install(python, sdist, "--no-build-isolation")
    assert "cython" not in run(python, "-m", "pip", "list", cwd=tmp_path).lower()
    assert run(python, "-c", USE, cwd=tmp_path) == "native\n"


def test_a_checkout_installs_by_the_one_command(checkout: Path, tmp_path: Path) -> None:
    python = empty(tmp_path / "venv")
    install(python, checkout)
    assert run(python, "-c", USE, cwd=tmp_path) == "native\n"
    assert run(python, "-c", USE, cwd=tmp_path, MQCLIENT_IMPL="pure") == "pure\n"


def test_pure_installs_without_a_compiler(checkout: Path, tmp_path: Path) -> None:
    python = empty(tmp_path / "venv")
    install(python, checkout, MQCLIENT_PURE="1", **NO_COMPILER)
    assert run(python, "-c", USE, cwd=tmp_path) == "pure\n"


def test_without_a_compiler_the_installation_fails_and_names_the_cure(sdist: Path, tmp_path: Path) -> None:
    python = empty(tmp_path / "venv")
    with pytest.raises(pytest.fail.Exception, match="MQCLIENT_PURE=1"):
        install(python, sdist, **NO_COMPILER)
