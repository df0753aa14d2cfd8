"""Who may import whom: the table of docs/ARCHITECTURE.md, and the words that mechanism must not know."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

import pytest

from tests.support.tree import ROOT, files, nothing, syntax, text

pytestmark = pytest.mark.xdist_group("syntax")  # every file is parsed, and once is enough

GROUND = ("mqclient", "mqclient.errors", "mqclient.config", "mqclient.abc", "mqclient.hooks")
SHARED_ROCKETMQ = ("mqclient.rocketmq.model", "mqclient.rocketmq.codes", "mqclient.rocketmq.signing")
FACES = ("mqclient.rocketmq", "mqclient.pulsar", "mqclient.rocketmq.grpc")
FACE_MODULES = ("aio", "sync")
WAITING = ("asyncio", "threading", "socket", "select", "selectors", "ssl", "time", "grpc", "concurrent", "queue")


class Layer(NamedTuple):
    """Which modules of ours a layer may import (trailing dot: all below it too), and which of the world it may not."""

    files: tuple[str, ...]
    ours: tuple[str, ...]
    forbidden: tuple[str, ...] = ()
    typing_only: tuple[str, ...] = ()


LAYERS = {
    "ground": Layer(
        ("__init__.py", "errors.py", "config.py", "abc.py", "hooks.py"), (*GROUND, "mqclient._impl"), WAITING
    ),
    "codecs": Layer(
        ("_native/", "_pure/", "_impl.py", "_schema/"),
        (*GROUND, "mqclient._pure.", "mqclient._schema."),
        typing_only=("mqclient._native.",),
    ),
    "core": Layer(("core/",), (*GROUND, "mqclient.core."), WAITING),
    "remoting engine": Layer(
        ("rocketmq/remoting/", "rocketmq/model.py", "rocketmq/codes.py", "rocketmq/signing.py"),
        (*GROUND, "mqclient.core.", "mqclient.rocketmq.remoting.", *SHARED_ROCKETMQ),
        WAITING,
        ("mqclient._impl", "mqclient._native."),
    ),
    "grpc engine": Layer(
        ("rocketmq/grpc/",),
        (*GROUND, "mqclient.core.", "mqclient._schema.", "mqclient.rocketmq.grpc.", *SHARED_ROCKETMQ),
        WAITING,
        ("mqclient._impl", "mqclient._native."),
    ),
    "pulsar engine": Layer(
        ("pulsar/",),
        (*GROUND, "mqclient.core.", "mqclient._schema.", "mqclient.pulsar."),
        WAITING,
        ("mqclient._impl", "mqclient._native."),
    ),
    "drivers": Layer(
        ("io/",), (*GROUND, "mqclient.core.driver", "mqclient.core.slot", "mqclient.core.link", "mqclient.io.")
    ),
    "rocketmq faces": Layer(
        (
            *("rocketmq/__init__.py", "rocketmq/aio.py", "rocketmq/sync.py"),
            *("rocketmq/remoting/aio*.py", "rocketmq/remoting/sync*.py"),
        ),
        (
            *GROUND,
            "mqclient._impl",
            "mqclient.core.driver",
            "mqclient.core.hooking",
            "mqclient.core.steps",
            "mqclient.io.",
            "mqclient.rocketmq.",
        ),
        typing_only=("mqclient._native.",),
    ),
    "pulsar faces": Layer(
        ("pulsar/__init__.py", "pulsar/aio*.py", "pulsar/sync*.py"),
        (
            *GROUND,
            "mqclient._impl",
            "mqclient.core.driver",
            "mqclient.core.hooking",
            "mqclient.core.steps",
            "mqclient.io.",
            "mqclient.pulsar.",
        ),
        typing_only=("mqclient._native.",),
    ),
    "broker": Layer(
        ("broker/",),
        (
            *(*GROUND, "mqclient._impl", "mqclient._schema.", "mqclient.core.", "mqclient.broker."),
            *(*SHARED_ROCKETMQ, "mqclient.rocketmq.remoting.bodies", "mqclient.pulsar.codes", "mqclient.pulsar.names"),
        ),
        typing_only=("mqclient._native.",),
    ),
    "around": Layer(
        ("spark/", "dropin/", "cli/", "testing.py"), (*GROUND, *FACES, "mqclient.broker.", "mqclient.testing")
    ),
}
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("mqclient/rocketmq/model.py", "mqclient._impl"): "users make messages before any client chose its modules",
}
"""(file, module) -> why this import is right although the table forbids it."""

LAZY = {
    "pyspark": ("mqclient/spark/",),
    "grpc": ("mqclient/io/grpc_calls.py",),
    "lz4": ("mqclient/core/compress.py",),
    "zstandard": ("mqclient/core/compress.py",),
    "snappy": ("mqclient/core/compress.py",),
    "cramjam": ("mqclient/core/compress.py",),
    "orjson": ("mqclient/core/json.py",),
    "cryptography": ("mqclient/pulsar/crypto.py",),
}
"""Packages that one place alone knows."""

CORE_WORDS = re.compile(
    r"(?i)(?<![a-z])(topics?|queue[ _]?ids?|offsets?|permits?|credits?|groups?|subscriptions?)(?![a-z])"
)


ARROW = "mqclient/core/columns.py"
"""Arrow says offset, too: where an array's rows begin in its buffers."""


class Import(NamedTuple):
    module: str
    line: int
    for_typing: bool


def layer_of(path: str) -> str:
    """The layer with the longest matching entry: a face is more than its engine's folder."""
    inside = path.removeprefix("mqclient/")
    matches = [(len(entry), name) for name, layer in LAYERS.items() for entry in layer.files if covers(entry, inside)]
    assert matches, f"{path} is in no layer of tests/arch/test_layers.py: give it one"
    return max(matches)[1]


def covers(entry: str, path: str) -> bool:
    return path.startswith(entry) if entry.endswith("/") else fnmatchcase(path, entry)


def imports(node: ast.AST, path: str, *, for_typing: bool = False) -> Iterator[Import]:
    """Every import of a file, also inside functions, with relative ones resolved."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, child.lineno, for_typing)
        elif isinstance(child, ast.ImportFrom):
            base = absolute(child, path)
            for alias in child.names:
                module = f"{base}.{alias.name}" if is_module(f"{base}.{alias.name}") else base
                yield Import(module, child.lineno, for_typing)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            yield from imports(ast.Module(child.body, []), path, for_typing=True)
            yield from imports(ast.Module(child.orelse, []), path, for_typing=for_typing)
        else:
            yield from imports(child, path, for_typing=for_typing)


def absolute(node: ast.ImportFrom, path: str) -> str:
    if not node.level:
        return node.module or ""
    package = path.removesuffix(".py").split("/")[: -node.level]
    return ".".join([*package, *([node.module] if node.module else [])])


def is_module(name: str) -> bool:
    place = ROOT / name.replace(".", "/")
    return name.startswith("mqclient.") and (
        place.is_dir() or any(place.with_suffix(end).exists() for end in (".py", ".pyi"))
    )


def allowed(module: str, table: tuple[str, ...]) -> bool:
    return any(module == entry.rstrip(".") or (entry.endswith(".") and module.startswith(entry)) for entry in table)


def faults(path: str, tree: ast.Module) -> Iterator[str]:
    name = layer_of(path)
    layer = LAYERS[name]
    for found in imports(tree, path):
        top = found.module.split(".")[0]
        where = f"{path}:{found.line} imports {found.module}"
        if (path, found.module) in EXCEPTIONS:
            continue
        if top == "mqclient":
            typed = found.for_typing and allowed(found.module, layer.typing_only)
            if not (
                typed or allowed(found.module, layer.ours) or (name == "around" and around_may(found.module, path))
            ):
                yield f"{where}: {name} may not"
        elif top in layer.forbidden:
            yield f"{where}: {name} does not wait, read clocks or touch descriptors"
        elif top in LAZY and not path.startswith(LAZY[top]):
            yield f"{where}: only {', '.join(LAZY[top])} may"


def around_may(module: str, path: str) -> bool:
    """What is built around the faces uses faces, and its own package."""
    own = ".".join(path.split("/")[:2]).removesuffix(".py")
    return module == own or module.startswith(f"{own}.") or module.split(".")[-1] in FACE_MODULES


def test_imports_follow_the_layers() -> None:
    nothing(fault for path in files("*.py", under="mqclient") for fault in faults(path, syntax(path)))


def test_mechanism_has_no_word_of_any_protocol() -> None:
    lines = [(path, line) for path in files("*.py", under="mqclient/core") for line in text(path).splitlines()]
    found = [
        (path, line) for path, line in lines if CORE_WORDS.search(line) and not (path == ARROW and "offset" in line)
    ]
    nothing(f"{path}: {line}" for path, line in found)


def test_nothing_asks_which_protocol_it_is() -> None:
    trees = {path: syntax(path) for path in files("*.py", under="mqclient")}
    nothing(f"{path}:{line}" for path, tree in trees.items() for line in questions(tree))


def questions(tree: ast.Module) -> Iterator[int]:
    """Lines that compare something called `protocol`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
            sides = (node.left, *node.comparators)
            if any(isinstance(side, ast.Name | ast.Attribute) and name_of(side) == "protocol" for side in sides):
                yield node.lineno


def name_of(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def test_native_code_knows_only_our_errors() -> None:
    pattern = re.compile(r"^\s*(?:from|import)\s+(mqclient[.\w]*)", re.MULTILINE)
    sources = files("*.pyx", "*.pxi", "*.pxd", under="_native")
    found = {(path, module) for path in sources for module in pattern.findall(text(path))}
    nothing(entry for entry in found if entry[1] != "mqclient.errors")


def test_every_exception_is_still_needed() -> None:
    python = files("*.py", under="mqclient")
    assert set(EXCEPTIONS) <= {(path, found.module) for path in python for found in imports(syntax(path), path)}


def test_every_package_has_its_opening_sentence() -> None:
    folders = {path.rsplit("/", 1)[0] for path in files("*.py", under="mqclient")}
    nothing(f"{folder} lacks __init__.py" for folder in folders if not (ROOT / folder / "__init__.py").exists())
    nothing(path for path in files("*.py", under="mqclient") if not ast.get_docstring(syntax(path)))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("mqclient/core/x.py", "import threading"),
        ("mqclient/core/x.py", "from mqclient import _impl"),
        ("mqclient/pulsar/x.py", "from time import monotonic"),
        ("mqclient/pulsar/x.py", "from mqclient.rocketmq import model"),
        ("mqclient/pulsar/x.py", "from mqclient._native import pulsar"),
        ("mqclient/rocketmq/remoting/x.py", "from .sync import Client; from .. import grpc"),
        ("mqclient/io/x.py", "from mqclient.pulsar.connection import Connection"),
        ("mqclient/cli/x.py", "from mqclient.core.link import Link"),
        ("mqclient/broker/x.py", "import mqclient.pulsar.sync"),
        ("mqclient/spark/x.py", "import lz4.frame"),
    ],
)
def test_the_check_finds_what_it_is_for(path: str, line: str) -> None:
    assert len(list(faults(path, ast.parse(f"def f():\n    {line}")))) == 1


def test_questions_and_words_are_found() -> None:
    assert list(questions(ast.parse("if self.protocol == 'x': pass"))) == [1]
    assert [bool(CORE_WORDS.search(line)) for line in ("queue_id", "nextOffset", "regroup", "the topic")] == [
        1,
        0,
        0,
        1,
    ]
