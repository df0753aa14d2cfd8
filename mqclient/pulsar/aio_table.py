"""The asyncio face of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Generic

from mqclient.core.driver import AsyncDriver
from mqclient.core.steps import run_steps
from mqclient.io.pickled import Lazily
from mqclient.pulsar.table import Table, value_of
from mqclient.pulsar.typed import T

__all__ = ["TableView"]


class TableView(Lazily, Generic[T]):
    """Made by `Client.table_view`: of each key what was said last, kept up to date. Reading waits for nothing."""

    def __init__(self, driver: AsyncDriver, table: Table) -> None:
        self._driver = driver
        self._table = table
        self._rows = table.rows

    @property
    def topic(self) -> str:
        return str(self._table.engine.topic)

    def get(self, key: str, default: Any = None) -> T | Any:
        """The value of a key: bytes, or what the schema makes of them."""
        message = self._rows.get(key)
        return default if message is None else value_of(message)

    def __getitem__(self, key: str) -> T:
        value: T = value_of(self._rows[key])
        return value

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._rows))

    def keys(self) -> list[str]:
        return list(self._rows)

    def items(self) -> list[tuple[str, T]]:
        """As of now: the list does not change any more."""
        return [(key, value_of(message)) for key, message in list(self._rows.items())]

    def message(self, key: str) -> Any:
        """The whole message that a key's value came in, or None."""
        return self._rows.get(key)

    def listen(self, told: Callable[[str, T | None], object], *, existing: bool = False) -> None:
        """Call `told(key, value)` with each change, `value` None where the key is taken away; with `existing` first
        with everything that is here. It may be called on another thread."""
        self._table.listen(told, existing)

    async def refresh(self, timeout: float | None = None) -> None:
        """Until everything that is in the topic now is here."""
        deadline = self._driver.deadline(timeout)
        with self._driver.enter():
            slot = run_steps(self._table.refresh_steps(deadline))
        await self._driver.wait(slot)

    async def close(self) -> None:
        with self._driver.enter():
            slot = run_steps(self._table.close_steps())
        await self._driver.wait(slot)

    def diagnose(self) -> dict[str, Any]:
        """How many keys there are, and the reader behind it."""
        with self._driver.enter():
            return {"keys": len(self._rows), **self._table.engine.diagnose()}

    async def __aenter__(self) -> TableView[T]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
