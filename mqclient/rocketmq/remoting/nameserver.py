"""Owns the list of name servers: which one is asked, and which is asked next when it fails."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address
from random import Random

from mqclient.errors import ConfigError

DEFAULT_PORT = 9876


class NameServers:
    """The good one is remembered; a failure moves on to the next.

    >>> servers = NameServers("a:1;b:2", Random(1))
    >>> first = servers.current
    >>> servers.failed(first)
    >>> servers.current != first
    True
    """

    def __init__(self, addresses: str | Iterable[str], random: Random, *, wanted: bool = True) -> None:
        texts = re.split("[;,]", addresses) if isinstance(addresses, str) else list(addresses)
        self._random = random
        self.addresses: list[str] = []
        self._index = 0
        self.replace([parse_address(text) for text in texts if text.strip()])
        if wanted and not self.addresses:
            raise ConfigError(
                "no name server: give one, as in Client('127.0.0.1:9876'), set NAMESRV_ADDR ('a:9876;b:9876'), or name "
                "the page that lists them with address_server="
            )

    def replace(self, addresses: list[str]) -> bool:
        """The list is this now; the one in use stays in use if it is still there. Whether anything changed."""
        if set(addresses) == set(self.addresses):
            return False
        current = self.addresses[self._index] if self.addresses else None
        self.addresses = list(addresses)
        self._random.shuffle(self.addresses)  # a thousand clients shall not all ask the first
        self._index = self.addresses.index(current) if current in self.addresses else 0
        return True

    @property
    def current(self) -> str:
        if not self.addresses:
            raise ConfigError("no name server is known yet: the address server has not told one")
        return self.addresses[self._index]

    def failed(self, address: str) -> None:
        """Ask another one from now on, if this one is still the one that is asked."""
        if self.current == address:
            self._index = (self._index + 1) % len(self.addresses)

    def __len__(self) -> int:
        return len(self.addresses)

    def __str__(self) -> str:
        return ";".join(self.addresses)


def parse_address(text: str) -> str:
    """`host:port` in its one form; the port of name servers if none is given."""
    text = text.strip().rpartition("//")[2]  # clouds give theirs as http://…, though it is no HTTP
    host, port = split_address(text)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_address(text: str) -> tuple[str, int]:
    """Host and port; an IPv6 host stands in brackets."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    else:
        host, _, port = text.partition(":")
    port = port or str(DEFAULT_PORT)
    if not host or " " in host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise ConfigError(f"{text!r} is no address: host:port is, or [ipv6]:port; several are separated by ;")
    return host, int(port)


def vip(address: str) -> str:
    """The broker's second port, which serves sends only: two below the first."""
    head, _, port = address.rpartition(":")
    return f"{head}:{int(port) - 2}"


def private(address: str) -> bool:
    """Whether this is an address that only machines nearby can reach: of a container, or of this host itself."""
    try:
        host = ip_address(split_address(address)[0])
    except ValueError:  # a name
        return False
    return host.is_private
