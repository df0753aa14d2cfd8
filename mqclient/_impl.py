"""The one door to the native modules or their pure twins: `default`, chosen once, and `select(name)`.

Engines and the embedded broker are given a namespace of the six modules; they never import it. So a native client
can talk to a pure broker in one process, and a misreading that both twins shared would still show up.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType
from typing import Final, Literal, NamedTuple

Name = Literal["native", "pure"]
MODULES: Final = ("allocation", "digest", "handover", "permits", "pulsar", "remoting")


class Impl(NamedTuple):
    """The six modules of one implementation; both have the surface of `mqclient/_native/*.pyi`."""

    name: Name
    allocation: ModuleType
    digest: ModuleType
    handover: ModuleType
    permits: ModuleType
    pulsar: ModuleType
    remoting: ModuleType


_loaded: dict[str, Impl] = {}


def select(name: str) -> Impl:
    """The namespace called "native" or "pure"; an ImportError that names the cure if it is not there.

    >>> select("pure").name
    'pure'
    """
    if name in _loaded:
        return _loaded[name]
    if name not in ("native", "pure"):
        raise ImportError(f"MQCLIENT_IMPL={name!r} is not known: use 'native' or 'pure'")
    try:
        modules = [import_module(f"mqclient._{name}.{module}") for module in MODULES]
    except ImportError as error:
        raise ImportError(
            f"mqclient's {name} modules cannot be imported ({error}). Cure: install a wheel or a C compiler and run "
            "`pip install --force-reinstall --no-cache-dir mqclient`; or ask for the slower pure-Python ones with "
            "MQCLIENT_IMPL=pure."
        ) from error
    impl = _loaded[name] = Impl(name, *modules)  # type: ignore[arg-type]
    return impl


def _default() -> Impl:
    """What MQCLIENT_IMPL asks for; unasked: native, or pure where the package was built with MQCLIENT_PURE=1."""
    asked = os.environ.get("MQCLIENT_IMPL")
    if asked:
        return select(asked)
    built_pure = os.path.exists(os.path.join(os.path.dirname(__file__), "_native", "PURE"))
    return select("pure" if built_pure else "native")


def usable() -> Impl:
    """`default`, or the pure one where that is not there: who asks for a native client is told then."""
    try:
        return __getattr__("default")
    except ImportError:
        return select("pure")


default: Impl


def __getattr__(name: str) -> Impl:
    """`default` is chosen when first asked for, so that `select("pure")` works where nothing native was built."""
    global default
    if name != "default":
        raise AttributeError(f"module 'mqclient._impl' has no attribute {name!r}")
    default = _default()
    return default
