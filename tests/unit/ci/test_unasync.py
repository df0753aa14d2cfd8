"""The generator of the sync faces: what it changes, and that it changes nothing else."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def unasync() -> ModuleType:
    spec = importlib.util.spec_from_file_location("unasync", ROOT / ".ci/unasync.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("async def f(): return await g()\n", "def f(): return g()\n"),
        ("async with a as b, c as d:\n    pass\n", "with a as b, c as d:\n    pass\n"),
        ("async for x in y: z = [await w(i)  for i in x]\n", "for x in y: z = [w(i)  for i in x]\n"),
        ("def f() -> Awaitable[dict[str, int]]: ...\n", "def f() -> dict[str, int]: ...\n"),
        ("x: list[Awaitable[list[int]]] = a[0]\n", "x: list[list[int]] = a[0]\n"),
        ("def f(self) -> Opening[C]: return Opening(self.g())\n", "def f(self) -> C: return (self.g())\n"),
        ("s = 'await async __aenter__'  # await __aenter__\n", "s = 'await async __aenter__'  # await __aenter__\n"),
        ("def __aenter__(self): raise StopAsyncIteration\n", "def __enter__(self): raise StopIteration\n"),
        ("from a.io.aio import AsyncioDriver\n", "from a.io.threads import ThreadsDriver\n"),
        ("import asyncio  # unasync: drop\nx = 1\n", "x = 1\n"),
        ("awaited = 1\nasync_ = 2\n", "awaited = 1\nasync_ = 2\n"),
        ("x = f(\n    await g(),\n    # why\n)\n", "x = f(\n    g(),\n    # why\n)\n"),
        ("s = f'{{await}} {x} {y!r:>{w}}'\n", "s = f'{{await}} {x} {y!r:>{w}}'\n"),
        ('"""Use `await send()`."""\n', '"""Use `send()`."""\n'),
    ],
)
def test_conversion(unasync: ModuleType, source: str, wanted: str) -> None:
    names = {"__aenter__": "__enter__", "StopAsyncIteration": "StopIteration", "AsyncioDriver": "ThreadsDriver"}
    rules = unasync.Rules(names, {"a.io.aio": "a.io.threads"}, {"await ": ""})
    assert unasync.convert(source, rules) == wanted


def test_code_without_rules_stays_to_the_blank(unasync: ModuleType) -> None:
    source = (
        (ROOT / ".ci/unasync.py").read_text(encoding="utf-8").replace("Awaitable", "Other").replace("Opening", "Other")
    )
    assert unasync.convert(source.replace(unasync.MARK, "#"), unasync.Rules({}, {}, {})) == source.replace(
        unasync.MARK, "#"
    )


def test_rules_that_hit_nothing_are_known(unasync: ModuleType) -> None:
    rules = unasync.Rules({"a": "b", "c": "d"}, {"e": "f"}, {"g": "h"})
    unasync.convert("import e\na = 1\n", rules)
    assert rules.unused == {"c", "g"}


def test_the_result_is_formatted_and_its_imports_sorted(unasync: ModuleType) -> None:
    untidy = "import os\nimport io, re\nx = (os,\n  io)\ndef f(): return (x)\n"
    tidy = "import io\nimport os\n\nx = (os, io)\n\n\ndef f():\n    return x\n"
    assert unasync.tidy(untidy, "sync.py") == tidy


def test_it_stays_small() -> None:
    assert len((ROOT / ".ci/unasync.py").read_text(encoding="utf-8").splitlines()) <= 150
