"""mqclient: RocketMQ and Pulsar for Python. Owns the version and the name of the implementation in use; nothing heavy.

>>> import mqclient
>>> mqclient.__impl__ in ("native", "pure")
True
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"
__all__ = ["__impl__", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__impl__":
        from mqclient import _impl

        return _impl.default.name
    raise AttributeError(f"module 'mqclient' has no attribute {name!r}")
