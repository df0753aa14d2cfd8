"""How large a file or a function may be, and who is excused for which reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.support.tree import files, is_generated, nothing, syntax, text

pytestmark = pytest.mark.xdist_group("syntax")  # every file is parsed, and once is enough

MODULE, FUNCTION, UMBRELLA, PART, DRIVER, FACE_METHOD = 600, 60, 60, 400, 400, 5
PYTHON = ("mqclient", "tests", "benchmarks", "wheels", "examples", ".ci")

EXCUSED: dict[str, str] = {
    "mqclient/_pure/pulsar/encode.py:encode_metadata": "one parameter and one write for each field of the message",
    "_native/pulsar/encode.pxi:encode_metadata": "one parameter and one write for each field of the message",
}
"""File, or file:function -> why it is longer."""


def python_files() -> list[str]:
    return [path for folder in PYTHON for path in files("*.py", under=folder)] + ["setup.py"]


def limit(path: str) -> int:
    if path.endswith(".pyx"):
        return UMBRELLA
    if path.endswith((".pxi", ".pxd", ".h")):
        return PART
    return DRIVER if path in ("mqclient/io/aio.py", "mqclient/io/threads.py") else MODULE


def too_long(paths: list[str]) -> Iterator[str]:
    for path in paths:
        lines = text(path).count("\n")
        if lines > limit(path):
            yield path


def functions(path: str, tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{path}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def cython_functions(path: str, source: str) -> Iterator[tuple[str, int]]:
    """By indentation: from a `def`, `cdef` or `cpdef` that opens a block to the last line that is deeper."""
    lines = source.splitlines()
    opening = re.compile(r"^( *)(?:def|cdef|cpdef)\b[^#]*?(\w+)\s*\(")
    for number, line in enumerate(lines):
        match = opening.match(line)
        if match and " class " not in line:
            depth, last = len(match.group(1)), number
            for later in range(number + 1, len(lines)):
                body = lines[later]
                if (
                    body.strip()
                    and len(body) - len(body.lstrip()) <= depth
                    and not body.lstrip().startswith((")", "#"))
                ):
                    break
                last = later if body.strip() else last
            yield f"{path}:{match.group(2)}", last - number + 1


def all_functions() -> Iterator[tuple[str, int]]:
    for path in python_files():
        yield from functions(path, syntax(path))
    for path in files("*.pyx", "*.pxi", "*.pxd", "*.h", under="_native"):
        yield from cython_functions(path, text(path))


def test_files_fit_on_a_few_screens() -> None:
    paths = [path for path in python_files() if not is_generated(path)]
    found = set(too_long(paths + files("*.pyx", "*.pxi", "*.pxd", "*.h", under="_native")))
    nothing(sorted(found - set(EXCUSED)))


def test_functions_fit_on_one_screen() -> None:
    nothing((name, size) for name, size in all_functions() if size > FUNCTION and name not in EXCUSED)


def test_every_excuse_is_still_needed() -> None:
    long = {name for name, size in all_functions() if size > FUNCTION}
    long |= set(too_long(python_files() + files("*.pyx", "*.pxi", "*.pxd", "*.h", under="_native")))
    assert set(EXCUSED) <= long


def statements(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a body, its docstring aside."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_faces_hold_no_logic() -> None:
    long = [
        f"{path}:{node.name}"
        for path in files("aio*.py", under="mqclient")
        if not path.startswith("mqclient/io/")
        for owner in ast.walk(syntax(path))
        if isinstance(owner, ast.ClassDef)
        for node in owner.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name != "__init__"
        if statements(node) > FACE_METHOD
    ]
    nothing(name for name in long if name not in EXCUSED)


def test_the_measures_measure() -> None:
    source = "cdef class A:\n    cdef int f(self, int x) except -1:\n        a\n\n        b\n\n    def g(self): pass\n"
    assert list(cython_functions("p", source)) == [("p:f", 4), ("p:g", 1)]
    assert list(functions("p", ast.parse("def f():\n    a\n    b\n"))) == [("p:f", 3)]
    node = ast.parse('def f():\n    """D."""\n    a\n    b\n').body[0]
    assert isinstance(node, ast.FunctionDef)
    assert statements(node) == 2
