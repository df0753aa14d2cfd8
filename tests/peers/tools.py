"""Owns how programs of other clients are built and run: each once, into the build folder, by its own tools."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / "build" / "peers"
BUILD_SECONDS = 600
RUN_SECONDS = 240


def tool(name: str) -> str:
    """Its path; without it the test is left out, aloud."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"left out: no {name} on the PATH")
    return found


def go_program(name: str) -> Path:
    """A program under `go/`, built where its sources are newer."""
    go, binary = tool("go"), CACHE / "go" / name
    sources = [HERE / "go" / "go.sum", *(HERE / "go" / name).glob("*.go")]
    if not binary.exists() or any(source.stat().st_mtime > binary.stat().st_mtime for source in sources):
        binary.parent.mkdir(parents=True, exist_ok=True)
        _build([go, "build", "-o", str(binary), f"./{name}"], HERE / "go")
    return binary


def node_modules() -> Path:
    """The packages of `js/package.json`, installed once."""
    npm, folder = tool("npm"), CACHE / "js"
    package, done = folder / "package.json", folder / "complete"
    wanted = (HERE / "js" / "package.json").read_text()
    if not done.exists() or package.read_text() != wanted:
        folder.mkdir(parents=True, exist_ok=True)
        package.write_text(wanted)
        _build([npm, "install", "--no-audit", "--no-fund"], folder)
        done.touch()
    return folder / "node_modules"


def _build(command: list[str], folder: Path) -> None:
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=BUILD_SECONDS)
    if result.returncode:
        pytest.skip(f"left out: {' '.join(command[:2])} failed: {result.stderr[-500:]}")


def scenarios(command: list[str], **environment: str) -> dict[str, list[str]]:
    """What the program told, by scenario; a program that fails says why."""
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=RUN_SECONDS, env={**os.environ, **environment}
    )
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith('{"')]
    told = {str(line["scenario"]): [str(item) for item in line["got"]] for line in lines}
    assert run.returncode == 0, f"{told}\n{run.stdout[-1500:]}\n{run.stderr[-3000:]}"
    return told
