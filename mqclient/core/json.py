"""The one door to JSON: orjson where it is installed, else the standard library; same values, same errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

Text = bytes | bytearray | memoryview | str


def _choose() -> tuple[str, Callable[[Text], Any], Callable[[Any], bytes]]:
    try:
        import orjson
    except ImportError:
        return "json", _standard_loads, _standard_dumps
    return "orjson", orjson.loads, orjson.dumps


def _standard_loads(text: Text) -> Any:
    from json import loads

    return loads(text if isinstance(text, str) else bytes(text), parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")  # as orjson says


def _standard_dumps(value: Any) -> bytes:
    from json import dumps

    return dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


_chosen = _choose()
library: Final[str] = _chosen[0]
"""Which of the two does the work: for `diagnose()`."""
loads: Final = _chosen[1]
"""The value of a JSON text; a ValueError if it is none."""
dumps: Final = _chosen[2]
"""Compact UTF-8 bytes of a value made of dicts with str keys, lists, strings, numbers, bools and None."""
