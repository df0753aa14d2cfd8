"""Owns RocketMQ's front door: the name server's port and one port per broker, each with its table of requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mqclient.broker.remoting import (
    access,
    assignments,
    consumption,
    groups,
    locks,
    membership,
    offsets,
    overview,
    pop,
    pop_acks,
    popped,
    pull,
    query,
    recall,
    relay,
    replies,
    reset,
    retry,
    routes,
    send,
    stats,
    topics,
    transactions,
)
from mqclient.broker.remoting.address_server import AddressServer
from mqclient.broker.remoting.data import Keeper
from mqclient.broker.remoting.server import Handler, Peer, Server
from mqclient.broker.remoting.state import Broker, Cluster
from mqclient.broker.store import Log

if TYPE_CHECKING:
    from mqclient.broker.broker import House
    from mqclient.broker.log_retention import Trim
    from mqclient.broker.overview import TopicRow

TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
NO_OPTIONS = frozenset(
    {
        "mqcloud_patch",
        "accounts",
        "address_server",
        "pulsar_token",
        "pulsar_basic",
        "pulsar_tls_roles",
        "tokenSecretKey",
    }
)
"""Settings that are no options of a broker; secrets are not shown with them."""
SWITCHES = {"server_side_reset": "useServerSideResetOffset"}
"""Settings with a name of our own, and the broker option that each is."""


class Service:
    """One broker: its state, the families of requests over it, and its port."""

    def __init__(self, house: House, broker: Broker, cluster: Cluster) -> None:
        self.broker = broker
        self.offsets = offsets.Offsets(broker)
        self.members = membership.Members(broker)
        self.locks = locks.Locks(broker)
        self.retries = retry.Retries(broker, self.locks)
        self.pulls = pull.Pulls(broker, self.members, self.offsets)
        self.popped = popped.PoppedQueues(broker, self.offsets)
        self.pops = pop.Pops(broker, self.popped)
        self.assignments = assignments.Assignments(broker, cluster, self.members)
        self.resets = reset.Resets(broker, self.members, self.offsets)
        self.stats = stats.Stats(broker, self.members, self.offsets)
        self.relays = relay.Relays(broker, self.members)
        self.transactions = transactions.Transactions(broker, self.members)
        self.sends = send.Sends(broker, self.retries, self.transactions)
        self.server = Server(house, self._table(), self._lost, access.guard(house.settings), name=broker.name)

    def _table(self) -> Mapping[int, Handler]:
        return {
            **topics.table(self.broker),
            **groups.table(groups.Groups(self.broker, self.members, self.offsets)),
            **stats.table(self.stats),
            **send.table(self.sends),
            **replies.table(replies.Replies(self.broker, self.members, self.sends)),
            **recall.table(self.broker, self.retries),
            **pull.table(self.pulls),
            **pop.table(self.pops),
            **pop_acks.table(pop_acks.PopAcks(self.broker, self.popped)),
            **assignments.table(self.assignments),
            **query.table(self.broker),
            **offsets.table(self.offsets),
            **membership.table(self.members),
            **locks.table(self.locks),
            **consumption.table(consumption.Consumption(self.broker, self.offsets)),
            **retry.table(self.retries),
            **reset.table(self.resets),
            **relay.table(self.relays),
            **transactions.table(self.transactions),
        }

    def _lost(self, peer: Peer) -> None:
        for lost in self.broker.on_lost:
            lost(peer)

    async def start(self, host: str) -> None:
        await self.server.start(host)
        self.broker.host = (self.server.host, self.server.port)
        self.broker.soon = asyncio.get_running_loop().call_soon
        self.begin()

    def begin(self) -> None:
        """What is done by the clock, asked or not."""
        self.members.start()
        self.retries.start()
        self.transactions.start()


class RemotingDoor:
    """The name server and its brokers."""

    def __init__(self, house: House) -> None:
        self.cluster = Cluster(house)
        for broker in self.cluster.brokers:
            broker.config.update(_options(house.settings))
            if broker.setting("traceTopicEnable"):
                broker.make_topic(TRACE_TOPIC, 1)
        self.name_server = Server(house, routes.table(self.cluster), lambda peer: None)
        self.by_http = AddressServer(lambda: self.name_server.address) if house.settings.get("address_server") else None
        self.services = [Service(house, broker, self.cluster) for broker in self.cluster.brokers]
        if house.data is not None:
            for service in self.services:
                Keeper(house.data, service.broker, service.offsets, service.retries, _options(house.settings))

    def addresses(self) -> dict[str, str]:
        if not self.name_server.port:
            return {}
        brokers = {service.broker.name: service.server.address for service in self.services}
        addresses = {"name_server": self.name_server.address, **brokers}
        return addresses | ({"address_server": self.by_http.address} if self.by_http is not None else {})

    def overview(self) -> Iterator[TopicRow]:
        return overview.rows(self.services)

    def logs(self) -> Iterator[tuple[Log, Trim]]:
        for service in self.services:
            for topic in service.broker.topics.values():
                for queue in topic.queues.values():
                    yield queue.log, queue.log.trim

    async def start(self, host: str) -> None:
        for service in self.services:
            await service.start(host)
        await self.name_server.start(host)
        if self.by_http is not None:
            await self.by_http.start(host)

    async def stop(self) -> None:
        await self.name_server.stop()
        if self.by_http is not None:
            await self.by_http.stop()
        for service in self.services:
            await service.server.stop()


def make(house: House) -> RemotingDoor:
    return RemotingDoor(house)


def _options(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings as a broker's options: text, booleans as in properties files. The patched broker resets by pushing."""
    options = {"useServerSideResetOffset": "false"} if settings.get("mqcloud_patch") else {}
    for name, value in settings.items():
        if name not in NO_OPTIONS:
            options[SWITCHES.get(name, name)] = str(value).lower() if isinstance(value, bool) else str(value)
    return options
