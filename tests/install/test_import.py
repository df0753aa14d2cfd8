"""What `import mqclient` does: next to nothing, and the implementation is the one asked for, loudly."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import IMPLS
from tests.support.tree import ROOT

LIMIT_MS = 30
WITNESS = """
import os, sys, threading
events = []
def witness(event, arguments):
    if event.startswith(("socket.", "subprocess.", "os.mkdir", "os.remove", "os.rename")):
        events.append((event, arguments))
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        events.append((event, arguments))
sys.dont_write_bytecode = True
sys.addaudithook(witness)
import mqclient
mqclient.__impl__
assert events == [], events
assert threading.active_count() == 1, threading.enumerate()
"""


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("impl", IMPLS)
def test_importing_starts_opens_writes_and_prints_nothing(impl: str) -> None:
    done = python(WITNESS, MQCLIENT_IMPL=impl)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def cost(code: str) -> float:
    """Milliseconds of processor time that an interpreter takes for this: a busy machine hardly adds to it."""
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return 1000 * (usage.ru_utime + usage.ru_stime)


def test_importing_costs_little_over_a_bare_interpreter() -> None:
    """The least of many, in turns: noise only ever adds."""
    bare, ours = [], []
    for _ in range(15):
        bare.append(cost("pass"))
        ours.append(cost("import mqclient"))
    assert min(ours) - min(bare) <= LIMIT_MS


@pytest.mark.parametrize("impl", IMPLS)
def test_the_implementation_asked_for_is_the_one_that_runs(impl: str) -> None:
    assert python("import mqclient; print(mqclient.__impl__)", MQCLIENT_IMPL=impl).stdout == f"{impl}\n"


def test_an_unknown_implementation_is_an_error_that_names_the_known() -> None:
    done = python("import mqclient; mqclient.__impl__", MQCLIENT_IMPL="fast")
    assert done.returncode == 1
    assert "ImportError: MQCLIENT_IMPL='fast' is not known: use 'native' or 'pure'" in done.stderr


def copy_without_extensions(folder: Path, *, marker: bool) -> str:
    shutil.copytree(
        ROOT / "mqclient", folder / "mqclient", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    )
    if marker:
        (folder / "mqclient/_native/PURE").touch()
    return f"import sys; sys.path[0] = {str(folder)!r}; import mqclient; print(mqclient.__impl__)"


def test_missing_extensions_are_an_error_that_names_the_cure(tmp_path: Path) -> None:
    done = python(copy_without_extensions(tmp_path, marker=False), MQCLIENT_IMPL="")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: mqclient's native modules cannot be imported")
    assert "MQCLIENT_IMPL=pure" in last


def test_a_package_built_pure_on_purpose_is_quiet_about_it(tmp_path: Path) -> None:
    done = python(copy_without_extensions(tmp_path, marker=True), MQCLIENT_IMPL="")
    assert (done.stdout, done.stderr) == ("pure\n", "")


def test_no_attribute_is_invented() -> None:
    done = python("import mqclient; mqclient.nothing")
    assert "AttributeError: module 'mqclient' has no attribute 'nothing'" in done.stderr
