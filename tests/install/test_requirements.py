"""What pip brings along: nothing that would need another compiler than ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tree import ROOT

METADATA = """
import runpy, sys, sysconfig
sysconfig.get_config_vars()["Py_GIL_DISABLED"] = int(sys.argv[2])
sys.argv = ["setup.py", "-q", "egg_info", "--egg-base", sys.argv[1]]
runpy.run_path("setup.py")
"""


def required(folder: Path, free_threaded: bool) -> list[str]:
    subprocess.run(
        [sys.executable, "-c", METADATA, folder, str(int(free_threaded))],
        cwd=ROOT,
        env={**os.environ, "MQCLIENT_PURE": "1"},
        check=True,
    )
    return (folder / "mqclient.egg-info/PKG-INFO").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("free_threaded", [False, True])
def test_orjson_is_asked_for_where_it_has_wheels(tmp_path: Path, free_threaded: bool) -> None:
    """Else pip would build it, and want Rust; without it the standard library does the work."""
    found = [
        line for line in required(tmp_path, free_threaded) if line.startswith("Requires-Dist") and "extra" not in line
    ]
    orjson = ['Requires-Dist: orjson>=3.10; python_version < "3.15"']
    assert found == ["Requires-Dist: protobuf>=4.25", *([] if free_threaded else orjson)]
