"""mqclient: RocketMQ and Pulsar for Python. Owns the version and the name of the implementation in use; nothing heavy.

>>> import mqclient
>>> mqclient.__impl__ in ("native", "pure")
True
"""

from __future__ import annotations

import logging
from typing import Any

# A library says nothing unless its user configures logging (without this, Python prints warnings to stderr).
logging.getLogger("mqclient").addHandler(logging.NullHandler())

__version__ = "0.1.0"
__all__ = ["__impl__", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__impl__":
        from mqclient import _impl

        return _impl.default.name
    raise AttributeError(f"module 'mqclient' has no attribute {name!r}")
