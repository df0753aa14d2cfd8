"""Owns the two things that users write as text: service URLs and topic names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Final, NamedTuple, TypeVar

from mqclient.core.driver import Address
from mqclient.errors import ConfigError

T = TypeVar("T")

ENVIRONMENT: Final = "PULSAR_SERVICE_URL"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_PORTS = {"pulsar": 6650, "pulsar+ssl": 6651, "http": 80, "https": 443}
_HOST = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.%]+)\]|(?P<host>[^:\[\]/,\s]+))(?::(?P<port>\d{1,5}))?")
_PARTITION = re.compile(r"-partition-(\d+)$")


@dataclass(frozen=True)
class ServiceUrl:
    """Where the cluster is: one scheme, one or more hosts, tried in turn.

    >>> ServiceUrl.parse("pulsar://a,b:7000").hosts
    (('a', 6650), ('b', 7000))
    """

    text: str
    scheme: str
    hosts: tuple[tuple[str, int], ...]

    @classmethod
    def parse(cls, text: str) -> ServiceUrl:
        scheme, separator, rest = text.partition("://")
        if not separator or scheme not in _PORTS:
            raise ConfigError(
                f"service URL {text!r}: it begins with pulsar:// or pulsar+ssl://, or for lookups over HTTP with "
                "http:// or https://, then host:port"
            )
        hosts = tuple(_host(text, part, _PORTS[scheme]) for part in rest.split("/")[0].split(","))
        return cls(text, scheme, hosts)

    @property
    def encrypted(self) -> bool:
        return self.scheme in ("pulsar+ssl", "https")

    @property
    def web(self) -> bool:
        """Brokers are looked up over HTTP."""
        return self.scheme in ("http", "https")

    def base(self, attempt: int) -> str:
        """Of the web service."""
        host, port = self.hosts[attempt % len(self.hosts)]
        return f"{self.scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    def address(self, attempt: int, tls: object | None) -> Address:
        host, port = self.hosts[attempt % len(self.hosts)]
        return Address(host, port, f"from {self.text}", tls)


def _host(url: str, part: str, port: int) -> tuple[str, int]:
    match = _HOST.fullmatch(part)
    if match is None:
        raise ConfigError(f"service URL {url!r}: {part!r} is not host:port (an IPv6 host stands in brackets)")
    given = int(match["port"] or port)
    if not 0 < given < 65536:
        raise ConfigError(f"service URL {url!r}: port {given} is not between 1 and 65535")
    return match["v6"] or match["host"], given


def service_url(given: T | None) -> T | str:
    """As given, or what the environment says."""
    found = os.environ.get(ENVIRONMENT, "") if given is None else given
    if not found:
        raise ConfigError(f"no service URL: give one, as pulsar://host:6650, or set {ENVIRONMENT}")
    return found


class TopicName(NamedTuple):
    """A topic in full: `persistent://tenant/namespace/local`.

    >>> str(TopicName.parse("orders"))
    'persistent://public/default/orders'
    >>> TopicName.parse("non-persistent://t/n/x-partition-3").partition
    3
    """

    domain: str
    tenant: str
    namespace: str
    local: str

    @classmethod
    def parse(cls, text: str) -> TopicName:
        domain, separator, rest = text.partition("://")
        if not separator:
            domain, rest = "persistent", text
        parts = rest.split("/")
        if len(parts) == 1 and not separator:
            parts = ["public", "default", parts[0]]
        if domain not in ("persistent", "non-persistent") or len(parts) != 3 or not all(parts):
            raise ConfigError(
                f"topic {text!r}: a name is 'orders', 'tenant/namespace/orders' or "
                "'persistent://tenant/namespace/orders' (or non-persistent://…)"
            )
        return cls(domain, *parts)

    def __str__(self) -> str:
        return f"{self.domain}://{self.tenant}/{self.namespace}/{self.local}"

    @property
    def partition(self) -> int:
        """The number behind `-partition-`, or -1."""
        match = _PARTITION.search(self.local)
        return int(match[1]) if match else -1

    @property
    def persistent(self) -> bool:
        return self.domain == "persistent"

    def partitioned(self, index: int) -> TopicName:
        return self._replace(local=f"{self.local}-partition-{index}")


def without_partition(topic: TopicName) -> TopicName:
    """The topic that a partition is a part of; others are themselves.

    >>> str(without_partition(TopicName.parse("orders-partition-3")))
    'persistent://public/default/orders'
    """
    return topic._replace(local=_PARTITION.sub("", topic.local))


def position(to: Any, topics: Sequence[str] = ()) -> Any:
    """Where to seek: a time in any form becomes ms since the epoch, a message id stays. By topic: of a mapping, or of a
    function that is asked for each topic, the positions that are not None.

    >>> position(datetime(1970, 1, 2, tzinfo=timezone.utc))
    86400000
    >>> position({"orders-partition-1": 5})
    {'persistent://public/default/orders-partition-1': 5}
    """
    if isinstance(to, Mapping):
        return {str(TopicName.parse(topic)): position(at) for topic, at in to.items()}
    if callable(to):
        asked = {topic: to(topic) for topic in topics}
        return {topic: position(at) for topic, at in asked.items() if at is not None}
    if isinstance(to, datetime):
        if to.tzinfo is None:
            raise ConfigError("a datetime to seek to has a time zone: datetime(…, tzinfo=timezone.utc)")
        return (to - _EPOCH) // timedelta(milliseconds=1)
    if to in ("earliest", "latest"):
        return to
    if isinstance(to, bool) or not (isinstance(to, int) or hasattr(to, "ledger")):
        given = repr(to) if isinstance(to, str) else f"a {type(to).__name__}"
        raise ConfigError(
            f"seek to a message id, a datetime, ms since the epoch, 'earliest' or 'latest', not to {given}"
        )
    return to
