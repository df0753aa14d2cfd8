"""The asyncio face of RocketMQ administration over the remoting protocol."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from mqclient.core.driver import AsyncDriver
from mqclient.core.steps import Steps, run_steps
from mqclient.io.pickled import Lazily
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.admin import AdminEngine, When
from mqclient.rocketmq.remoting.admin_cluster import BrokerInfo
from mqclient.rocketmq.remoting.admin_groups import Connection, Progress
from mqclient.rocketmq.remoting.admin_messages import Resent
from mqclient.rocketmq.remoting.admin_reset import ResetReport
from mqclient.rocketmq.remoting.member_options import Start

if TYPE_CHECKING:
    from mqclient._native import remoting

T = TypeVar("T")

__all__ = ["Admin"]


class Admin(Lazily):
    """Made by `Client.admin`."""

    def __init__(self, driver: AsyncDriver, engine: AdminEngine) -> None:
        self._driver = driver
        self._engine = engine

    async def create_topic(self, topic: str, queues: int = 8, *, perm: int = 6, timeout: float | None = 10.0) -> None:
        """On every broker; returns when a name server shows it."""
        await self._do(self._engine.create_topic_steps(topic, queues, perm), timeout)

    async def delete_topic(self, topic: str, timeout: float | None = 10.0) -> None:
        """On every broker and at every name server."""
        await self._do(self._engine.cluster.delete_topic_steps(topic), timeout)

    async def topics(self, timeout: float | None = 5.0) -> list[str]:
        return await self._do(self._engine.topics_steps(), timeout)

    async def cluster(self, timeout: float | None = 10.0) -> list[BrokerInfo]:
        """Every broker: its cluster, addresses and version."""
        return await self._do(self._engine.cluster.cluster_steps(), timeout)

    async def broker_config(self, broker: str, timeout: float | None = 5.0) -> dict[str, str]:
        """The options of a broker, by its name or address."""
        return await self._do(self._engine.cluster.config_steps(broker), timeout)

    async def groups(self, timeout: float | None = 10.0) -> list[str]:
        """The names of all groups that brokers know."""
        return await self._do(self._engine.groups.groups_steps(), timeout)

    async def create_group(self, group: str, timeout: float | None = 10.0, **settings: Any) -> None:
        """Make or change a group on every broker; settings by the broker's names, such as retryMaxTimes."""
        await self._do(self._engine.groups.create_steps(group, settings), timeout)

    async def delete_group(self, group: str, *, forget_offsets: bool = False, timeout: float | None = 10.0) -> None:
        await self._do(self._engine.groups.delete_steps(group, forget_offsets), timeout)

    async def connections(
        self, group: str, *, producers: bool = False, timeout: float | None = 10.0
    ) -> list[Connection]:
        """Who is in a group now."""
        return await self._do(self._engine.groups.connections_steps(group, producers), timeout)

    async def progress(
        self, group: str, topic: str | None = None, timeout: float | None = 10.0
    ) -> dict[MessageQueue, Progress]:
        """How far a group is: of each queue its end, what is consumed, the lag, the last time."""
        return await self._do(self._engine.groups.progress_steps(group, topic), timeout)

    async def clone_offsets(self, source: str, target: str, topic: str, timeout: float | None = 10.0) -> None:
        """The target group goes on where the source group is."""
        await self._do(self._engine.groups.clone_steps(source, target, topic), timeout)

    async def running_info(self, group: str, client_id: str, timeout: float | None = 15.0) -> dict[str, Any]:
        """What a member tells about itself."""
        return await self._do(self._engine.groups.running_info_steps(group, client_id), timeout)

    async def member_offsets(
        self, group: str, topic: str, timeout: float | None = 15.0
    ) -> dict[str, dict[MessageQueue, int]]:
        """By member of a group: the offsets in its memory."""
        return await self._do(self._engine.groups.status_steps(group, topic), timeout)

    async def consume_directly(
        self, group: str, client_id: str, message: remoting.Message, timeout: float | None = 15.0
    ) -> dict[str, Any]:
        """Have a member's handler called with a message that was found here; what came of it."""
        return await self._do(self._engine.groups.consume_directly_steps(group, client_id, message), timeout)

    async def message(self, topic: str, message_id: str, timeout: float | None = 10.0) -> remoting.Message:
        """The message with this id, the producer's or the broker's."""
        return await self._do(self._engine.messages.view_steps(topic, message_id), timeout)

    async def messages_by_key(
        self,
        topic: str,
        key: str,
        *,
        begin: Start = "first",
        end: Start = "last",
        limit: int = 32,
        timeout: float | None = 10.0,
    ) -> list[remoting.Message]:
        """Messages with this key, the oldest first."""
        return await self._do(self._engine.messages.query_steps(topic, key, begin, end, limit), timeout)

    async def messages_by_time(
        self, topic: str, begin: Start, end: Start = "last", *, limit: int = 1000, timeout: float | None = 30.0
    ) -> list[remoting.Message]:
        """Messages stored from `begin` on and before `end`, the oldest first."""
        return await self._do(self._engine.messages.between_steps(topic, begin, end, limit), timeout)

    async def resend_dead_letters(
        self,
        group: str,
        *,
        begin: Start = "first",
        end: Start = "last",
        limit: int = 1000,
        to: str = "group",
        timeout: float | None = 30.0,
    ) -> list[Resent]:
        """Give a group's dead letters another chance: `to` the group alone, or to the topic that they came from.

        Nothing notes what was sent again: name the time, so that the next call does not send it once more. Brokers
        bury at once what is sent to an orderly group: for those, `to="topic"`.
        """
        return await self._do(self._engine.messages.resend_steps(group, begin, end, limit, to), timeout)

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

        `dry_run=True` only looks: the report's `before` and `offsets` say from where each queue would go where.

        `model="broadcasting"` reaches every member on any broker, and the report says of each what became of it.
        Members that are no mqclient stay where they are on today's brokers, unless `switch_form=True` lets us put those
        into the old form of resets for a moment: that needs an operator's rights and rewrites their configuration file.
        """
        steps = self._engine.reset_offset_steps(group, topic, when, model, force, dry_run, switch_form)
        return await self._do(steps, timeout)

    async def offsets(
        self, topic: str, group: str | None = None, timeout: float | None = 10.0
    ) -> dict[MessageQueue, dict[str, int | None]]:
        """Of each queue: min, max, and what the group has committed."""
        return await self._do(self._engine.offsets_steps(topic, group), timeout)

    async def offsets_at(self, topic: str, when: Start, timeout: float | None = 10.0) -> dict[MessageQueue, int]:
        """Of each queue the first offset stored at that time or later: a datetime, milliseconds, "first" or "last"."""
        return await self._do(self._engine.offsets_at_steps(topic, when), timeout)

    async def commit_offsets(
        self, group: str, offsets: Mapping[MessageQueue, int], timeout: float | None = 10.0
    ) -> None:
        """Note that the group has consumed up to these offsets, for a group that keeps its place elsewhere.

        Members of the group that run would not heed it, and write their own: `reset_offset` moves those.
        """
        await self._do(self._engine.commit_steps(group, offsets), timeout)

    async def _do(self, steps: Steps[T], timeout: float | None) -> T:
        with self._driver.enter():
            slot = run_steps(steps)
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    async def close(self) -> None:
        """Nothing to give back: it works over the client's connections."""

    async def __aenter__(self) -> Admin:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
