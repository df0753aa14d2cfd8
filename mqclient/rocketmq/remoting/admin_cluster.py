"""Owns what operators ask about brokers and topics: who there is, where a topic lives, how brokers are set."""

from __future__ import annotations

from typing import Any, NamedTuple

from mqclient.core.steps import Steps
from mqclient.errors import ConfigError
from mqclient.rocketmq.codes import BrokerError, Request, Response
from mqclient.rocketmq.remoting.bodies import read_body


class BrokerInfo(NamedTuple):
    """One broker of the cluster; `addresses` by number, 0 is the master; no version: it could not tell it yet."""

    name: str
    cluster: str
    addresses: dict[int, str]
    version: str


def brokers_steps(client: Any) -> Steps[dict[str, tuple[str, dict[int, str]]]]:
    """Every broker that the name server knows: name to cluster and addresses."""
    body = read_body((yield from client.ask_name_server_steps(Request.GET_BROKER_CLUSTER_INFO, {})))
    found: dict[str, tuple[str, dict[int, str]]] = {}
    for name, data in (body.get("brokerAddrTable") or {}).items():
        addresses = {int(number): str(address) for number, address in (data.get("brokerAddrs") or {}).items()}
        found[str(name)] = (str(data.get("cluster") or ""), addresses)
    return found


def masters_steps(client: Any) -> Steps[dict[str, str]]:
    """Broker name to the address of its master; ConfigError if there is none at all."""
    brokers = yield from brokers_steps(client)
    masters = {name: addresses[0] for name, (_, addresses) in sorted(brokers.items()) if 0 in addresses}
    if not masters:
        raise ConfigError("the name server knows no broker")
    return masters


class ClusterAdmin:
    """The cluster, its brokers and its topics."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def cluster_steps(self) -> Steps[list[BrokerInfo]]:
        found = []
        for name, (cluster, addresses) in sorted((yield from brokers_steps(self._client)).items()):
            version = ""
            if 0 in addresses:
                version = yield from self._version_steps(addresses[0])
            found.append(BrokerInfo(name, cluster, addresses, version))
        return found

    def _version_steps(self, address: str) -> Steps[str]:
        """5.5.0 answers SYSTEM_ERROR in its first second (no sample of its rates yet): it is there nevertheless."""
        try:
            body = yield from self._client.ask_body_steps(address, Request.GET_BROKER_RUNTIME_INFO, {})
        except BrokerError as error:
            if error.code == Response.SYSTEM_ERROR:
                return ""
            raise
        return str((body.get("table") or {}).get("brokerVersionDesc", ""))

    def delete_topic_steps(self, topic: str) -> Steps[None]:
        """On every broker, replicas too, and at every name server."""
        for _, addresses in (yield from brokers_steps(self._client)).values():
            for address in addresses.values():
                yield from self._client.ask_steps(address, Request.DELETE_TOPIC_IN_BROKER, {"topic": topic})
        for address in list(self._client.name_servers.addresses):
            yield from self._client.ask_steps(address, Request.DELETE_TOPIC_IN_NAMESRV, {"topic": topic})

    def config_steps(self, broker: str) -> Steps[dict[str, str]]:
        """A broker's options."""
        frame = yield from self._client.ask_steps(
            (yield from self._address_steps(broker)), Request.GET_BROKER_CONFIG, {}
        )
        lines = [
            line for line in frame.body.decode("utf-8", "replace").splitlines() if line and not line.startswith("#")
        ]
        return dict(sorted((name, value) for name, _, value in (line.partition("=") for line in lines)))

    def _address_steps(self, broker: str) -> Steps[str]:
        """By name, or by address."""
        masters = yield from masters_steps(self._client)
        if broker in masters:
            return masters[broker]
        if broker in masters.values():
            return broker
        raise ConfigError(f"there is no broker {broker!r}: {', '.join(masters)}")


def each_master_steps(client: Any, ask: Any, passed_over: tuple[int, ...] = ()) -> Steps[list[Any]]:
    """What `ask(name, address)` gives for every master; a broker that has nothing, by these codes, is passed over.

    If all were passed over, the last one's error is raised: then nobody knows what was asked for.
    """
    answers: list[Any] = []
    last: BrokerError | None = None
    for name, address in (yield from masters_steps(client)).items():
        try:
            answers.append((yield from ask(name, address)))
        except BrokerError as error:
            if error.code not in passed_over:
                raise
            last = error
    if last is not None and not answers:
        raise last
    return answers


NOTHING_HERE = (
    int(Response.CONSUMER_NOT_ONLINE),
    int(Response.SUBSCRIPTION_GROUP_NOT_EXIST),
    int(Response.TOPIC_NOT_EXIST),
)
"""Answers of a broker that has nothing of a group, while others may."""
