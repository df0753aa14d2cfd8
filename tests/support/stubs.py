"""Prepares stubtest: one stub describes the native module and its pure twin, and some differences are none."""

from __future__ import annotations

import ast
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

CYTHON = r"(.*\.)?(__pyx_.*|__test__|__reduce_cython__|__setstate_cython__)"
PRIVATE = r".*\.__all__"


def arrange(package: Path, impl: str, names: list[str]) -> list[str]:
    """In a copy of the package, lay each stub beside the implementation; the lines of the allowlist."""
    lines = [CYTHON, PRIVATE]
    for name in names:
        stub = package / f"_native/{name}.pyi"
        lines += allowed(ast.parse(stub.read_text(encoding="utf-8")), f"mqclient._{impl}.{name}", pure=impl == "pure")
        if impl == "pure":
            folder = package / "_pure" / name
            lines += [rf"mqclient\._pure\.{name}\.{part.stem}(\..*)?" for part in sorted(folder.glob("*.py"))]
            shutil.move(stub, folder / "__init__.pyi" if folder.is_dir() else folder.with_suffix(".pyi"))
    return lines


def allowed(stub: ast.Module, module: str, *, pure: bool) -> Iterator[str]:
    """What only one side can have: names for typing in the stub; in pure, makers that native has no Python name for.

    stubtest asks for `@disjoint_base` on extension classes and for `__slots__` on pure ones; a class has but one stub.
    """
    base = re.escape(module)
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            words = {word.id for word in ast.walk(node) if isinstance(word, ast.Name)}
            members = {member.name for member in node.body if isinstance(member, ast.FunctionDef)}
            if is_for_typing(node):
                yield rf"{base}\.{node.name}(\..*)?"
            if "__init__" not in members:
                yield rf"{base}\.{node.name}\.__init__"
            if pure and "disjoint_base" in words:
                yield rf"{base}\.{node.name}"
        elif name := alias(node):
            yield rf"{base}\.{name}"
        elif isinstance(node, ast.FunctionDef) and not pure and sys.version_info >= (3, 14):
            # There the interpreter shows each native function of one argument as `(self, object, /)`.
            parameters = node.args.posonlyargs + node.args.args
            if len(parameters) == 1 and not node.args.kwonlyargs:
                yield rf"{base}\.{node.name}"


def is_for_typing(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name | ast.Subscript) and "Protocol" in ast.dump(base) for base in node.bases)


def alias(node: ast.stmt) -> str | None:
    """The name of a type alias, or of a constant that is an instance of a class: pure has it in another module."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        kind = ast.unparse(node.annotation)
        if kind == "TypeAlias" or re.fullmatch(r"Final\[[A-Z]\w*\]", kind):
            return node.target.id
    return None
