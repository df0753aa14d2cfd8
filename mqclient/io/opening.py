"""Owns the moment between a constructor and the first await: what asyncio opens when awaited or entered."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar


class Closable(Protocol):
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


C = TypeVar("C", bound=Closable)


class Opening(Generic[C]):
    """`await client.producer(…)` or `async with client.producer(…) as producer`: either opens it, once.

    In the sync faces the constructor itself waits, and this name is not there: `.ci/unasync.py` takes it away.
    """

    __slots__ = ("_opened", "_steps")

    def __init__(self, steps: Coroutine[Any, Any, C]) -> None:
        self._steps = steps
        self._opened: C | None = None

    def __await__(self) -> Generator[Any, Any, C]:
        return self._steps.__await__()

    async def __aenter__(self) -> C:
        self._opened = await self._steps
        return self._opened

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            await self._opened.__aexit__(kind, error, trace)
