"""The asyncio face of RocketMQ administration over the remoting protocol."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from mqclient.core.driver import AsyncDriver
from mqclient.core.steps import run_steps
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.admin import AdminEngine, When
from mqclient.rocketmq.remoting.admin_reset import ResetReport

if TYPE_CHECKING:
    pass

__all__ = ["Admin"]


class Admin:
    """Made by `Client.admin`."""

    def __init__(self, driver: AsyncDriver, engine: AdminEngine) -> None:
        self._driver = driver
        self._engine = engine

    async def create_topic(self, topic: str, queues: int = 8, *, perm: int = 6, timeout: float | None = 10.0) -> None:
        """On every broker; returns when a name server shows it."""
        with self._driver.enter():
            slot = run_steps(self._engine.create_topic_steps(topic, queues, perm))
        await self._driver.wait(slot, self._driver.deadline(timeout))

    async def topics(self, timeout: float | None = 5.0) -> list[str]:
        with self._driver.enter():
            slot = run_steps(self._engine.topics_steps())
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    async def reset_offset(
        self,
        group: str,
        topic: str,
        when: When,
        *,
        model: str = "clustering",
        force: bool = True,
        dry_run: bool = False,
        switch_form: bool = False,
        timeout: float | None = 30.0,
    ) -> ResetReport:
        """Move a group: "earliest", "latest", a datetime or milliseconds. Without `force` no queue moves forward.

        `model="broadcasting"` reaches every member on any broker, and the report says of each what became of it.
        Members that are no mqclient stay where they are on today's brokers, unless `switch_form=True` lets us put those
        into the old form of resets for a moment: that needs an operator's rights and rewrites their configuration file.
        """
        with self._driver.enter():
            steps = self._engine.reset_offset_steps(group, topic, when, model, force, dry_run, switch_form)
            slot = run_steps(steps)
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    async def offsets(
        self, topic: str, group: str | None = None, timeout: float | None = 10.0
    ) -> dict[MessageQueue, dict[str, int | None]]:
        """Of each queue: min, max, and what the group has committed."""
        with self._driver.enter():
            slot = run_steps(self._engine.offsets_steps(topic, group))
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    async def close(self) -> None:
        """Nothing to give back: it works over the client's connections."""

    async def __aenter__(self) -> Admin:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
