"""What `make wheels` checks: a wheel that lacks something, carries too much or links more than libc is a fault."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import ASKED
from tests.support.tree import ROOT

Make = Callable[..., Path]


@pytest.fixture(name="wheels")
def wheels_fixture(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("wheels_build", ROOT / "wheels" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "wheels_build", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "BUILD", tmp_path / "build")
    return module


@pytest.fixture(name="make")
def make_fixture(tmp_path: Path) -> Make:
    """A wheel of what was built here: without some files, or with others."""
    extensions = sorted((ROOT / "mqclient/_native").glob(f"*.{sys.implementation.cache_tag}-*.so"))
    if ASKED == "pure" or len(extensions) != 6 or shutil.which("readelf") is None:
        pytest.skip("no extensions were built here, or there is no readelf")

    def make(*, without: str = "", **more: Path) -> Path:
        wheel = tmp_path / "mqclient-0-cp311-cp311-linux_x86_64.whl"
        stubs = (ROOT / "mqclient/_native").glob("*.pyi")
        with zipfile.ZipFile(wheel, "w") as archive:
            for path in (*extensions, *stubs, ROOT / "mqclient/py.typed"):
                if not without or not path.name.startswith(without):
                    archive.write(path, path.relative_to(ROOT))
            for name, path in more.items():
                archive.write(path, name.replace("__", "/").replace("_dot_", "."))
        return wheel

    return make


def test_what_is_built_here_is_right(wheels: ModuleType, make: Make) -> None:
    assert wheels.check(make()) > 100_000


@pytest.mark.parametrize(
    ("without", "said"),
    [("digest.c", "holds 5 extensions"), ("pulsar.pyi", "lacks pulsar.pyi"), ("py.typed", "lacks py.typed")],
)
def test_what_is_missing_is_a_fault(wheels: ModuleType, make: Make, without: str, said: str) -> None:
    with pytest.raises(wheels.Fault, match=said):
        wheels.check(make(without=without))


def test_sources_do_not_belong_there(wheels: ModuleType, make: Make) -> None:
    with pytest.raises(wheels.Fault, match=r"carries _native/digest\.pyx"):
        wheels.check(make(_native__digest_dot_pyx=ROOT / "_native" / "digest.pyx"))


def test_nothing_but_libc_is_linked(wheels: ModuleType, make: Make, tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    source, library = tmp_path / "odd.c", tmp_path / "odd.so"
    source.write_text("int odd(void) { return 1; }\n")
    subprocess.run([compiler, "-shared", "-Wl,--no-as-needed", "-o", library, source, "-lm"], check=True)
    with pytest.raises(wheels.Fault, match=r"odd\.so links libm\.so"):
        wheels.check(make(without="digest.c", mqclient__odd_dot_so=library))


def test_pythons_are_found_by_what_they_say(wheels: ModuleType) -> None:
    version = "{}.{}".format(*sys.version_info[:2])
    (found,) = wheels.interpreters([sys.executable, "/nowhere/python3.12"])
    assert (found.version.rstrip("t"), found.path) == (version, Path(sys.executable))
