"""Owns how a worker process keeps memory: what one batch needed is there for the next."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Final

TRIM_THRESHOLD: Final = -1
MMAP_THRESHOLD: Final = -3
"""As <malloc.h> numbers them."""
KEEP: Final = 128 << 20


@cache
def keep() -> bool:
    """Once a process: glibc gives large blocks back to the kernel when they are free, and gets each of their pages
    again with a fault. With rows of a kilobyte that was half of what a task cost. Whether it was done."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # another C library, another system
        return False
    return bool(mallopt(TRIM_THRESHOLD, KEEP)) and bool(mallopt(MMAP_THRESHOLD, 32 << 20))
