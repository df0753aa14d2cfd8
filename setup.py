"""Builds the six extensions; fails if it cannot, unless MQCLIENT_PURE=1 asks for the pure-Python package.

MQCLIENT_ONLY=remoting,digest builds just these; MQCLIENT_CFLAGS and MQCLIENT_LDFLAGS are added to the compiler's line;
MQCLIENT_LINES=1 makes the C tell debuggers and gcov which Cython line it came from.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CompileError, LinkError

HERE = Path(__file__).resolve().parent
NAMES = ("allocation", "digest", "handover", "permits", "pulsar", "remoting")
CYTHON, CYTHON_SERIES = "Cython>=3.3,<3.4", "3.3."
FLAGS = ["-O3", "-g0", "-fno-math-errno", "-fvisibility=hidden", "-Wno-unreachable-code"]
PURE = os.environ.get("MQCLIENT_PURE") == "1"
FROM_SDIST = (
    HERE / "PKG-INFO"
).exists()  # there the C files are the ones that were released; a checkout's may be stale


class BuildExtensions(build_ext):
    """Says the cure when the compiler cannot be run: a package that is quietly slow would be worse than no package."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except (CompileError, LinkError) as error:
            raise type(error)(
                f"{error}\n\nmqclient: {ext.name} could not be built. Cure: install a C compiler and Python's headers "
                "(Debian: apt-get install gcc python3-dev), or set MQCLIENT_PURE=1 for the slower pure-Python package."
            ) from error


class BuildPackage(build_py):
    """Marks a package that was built pure on purpose, so that `mqclient._impl` need not guess."""

    def run(self) -> None:
        super().run()
        marker = Path(self.build_lib, "mqclient", "_native", "PURE")
        marker.unlink(missing_ok=True)
        if PURE and not self.editable_mode:
            marker.write_text("built with MQCLIENT_PURE=1\n", encoding="ascii")


def requirements() -> list[str]:
    """orjson where it has wheels: none for free-threaded interpreters, for 3.15 only with glibc >= 2.39. Elsewhere pip
    would need Rust; core/json.py does with the standard library, and takes orjson if somebody installs it."""
    orjson = [] if sysconfig.get_config_var("Py_GIL_DISABLED") else ["orjson>=3.10; python_version < '3.15'"]
    return ["protobuf>=4.25", *orjson]


def has_cython() -> bool:
    try:
        from Cython import __version__
    except ImportError:
        return False
    return __version__.startswith(CYTHON_SERIES)


def chosen() -> list[str]:
    only = os.environ.get("MQCLIENT_ONLY")
    return only.split(",") if only else list(NAMES)


def depends(name: str) -> list[str]:
    """A change in a part or a shared header rebuilds the extension that includes it."""
    parts = (*HERE.glob(f"_native/{name}/*"), *HERE.glob("_native/common/*"))
    return sorted(str(path.relative_to(HERE)) for path in parts)


def extensions() -> list[Extension]:
    flags = [] if sys.platform == "win32" else [*FLAGS, *os.environ.get("MQCLIENT_CFLAGS", "").split()]
    modules = [
        Extension(
            f"mqclient._native.{name}",
            [f"_native/{name}.{'c' if FROM_SDIST else 'pyx'}"],
            include_dirs=["_native/common"],
            depends=depends(name),
            extra_compile_args=flags,
            extra_link_args=os.environ.get("MQCLIENT_LDFLAGS", "").split(),
        )
        for name in chosen()
    ]
    if FROM_SDIST:
        return modules
    if not has_cython():
        return modules  # only asked for its metadata: setup_requires below brings Cython before anything is built
    from Cython.Build import cythonize

    return cythonize(  # type: ignore[no-any-return]
        modules,
        include_path=["_native"],
        emit_linenums=os.environ.get("MQCLIENT_LINES") == "1",
        compiler_directives={"language_level": "3", "embedsignature": False, "auto_pickle": False},
    )


setup(
    install_requires=requirements(),
    ext_modules=[] if PURE else extensions(),
    cmdclass={"build_ext": BuildExtensions, "build_py": BuildPackage},
    setup_requires=[] if PURE or FROM_SDIST or has_cython() else [CYTHON],
)
