"""Owns the one text that says where the name servers are and how a client is made: `rocketmq://…`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from mqclient.config import TLS
from mqclient.errors import ConfigError
from mqclient.rocketmq.signing import acl

PLAIN: Final = "rocketmq"
ENCRYPTED: Final = "rocketmq+ssl"
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_NUMBERS: Final = (
    "connect_timeout",
    "request_timeout",
    "route_interval",
    "heartbeat_interval",
    "rebalance_interval",
    "persist_interval",
)
_FLAGS: Final = ("allow_relayed_reset", "vip_channel")
_TEXTS: Final = ("client_id", "offset_dir", "instance", "address_server", "unit_name", "namespace_v2")
_TRUTH: Final = {"true": True, "1": True, "false": False, "0": False}


def from_url(text: str) -> tuple[str, dict[str, Any]]:
    """The name servers and options of a text: a URL, or, as Java's clients have it, just addresses.

    >>> from_url("rocketmq://a:9876,b:9876/shop?vip_channel=true")
    ('a:9876;b:9876', {'namespace': 'shop', 'vip_channel': True})
    >>> from_url("a:9876;b:9876")
    ('a:9876;b:9876', {})
    """
    match = _SCHEME.match(text.strip())
    if match is None or match[1].lower() in ("http", "https"):  # clouds give theirs so, though it is no HTTP
        return text, {}
    scheme = match[1].lower()
    if scheme not in (PLAIN, ENCRYPTED):
        cure = ": mqclient.pulsar.Client takes it" if scheme.startswith("pulsar") else f": {PLAIN}:// is"
        raise ConfigError(f"{_shown(text)!r} is no address of RocketMQ{cure}")
    parts = urlsplit(text.strip())
    credentials, _, servers = parts.netloc.rpartition("@")
    options: dict[str, Any] = {}
    if credentials:
        access, colon, secret = credentials.partition(":")
        if not colon:
            raise ConfigError(f"{_shown(text)!r}: before the @ stand access key, colon and secret key")
        options["auth"] = acl(unquote(access), unquote(secret))
    if scheme == ENCRYPTED:
        options["tls"] = TLS()
    if namespace := unquote(parts.path.strip("/")):
        options["namespace"] = namespace
    options.update(_option(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True))
    return servers.replace(",", ";"), options


def merged(servers: Any, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Name servers and options out of what a client was made with; what is given by name counts more than the URL."""
    if not isinstance(servers, str):
        return servers, dict(options)
    found, of_url = from_url(servers)
    return found, {**of_url, **options}


def _option(name: str, value: str) -> tuple[str, Any]:
    if name in _NUMBERS:
        try:
            return name, float(value)
        except ValueError:
            raise ConfigError(f"{name}={value!r} of the URL is no number") from None
    if name in _FLAGS:
        if value.lower() not in _TRUTH:
            raise ConfigError(f"{name}={value!r} of the URL: true or false")
        return name, _TRUTH[value.lower()]
    if name in _TEXTS:
        return name, value
    known = sorted([*_NUMBERS, *_FLAGS, *_TEXTS])
    near = get_close_matches(name, known, 1)
    cure = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}; others go by name"
    raise ConfigError(f"option {name!r} of the URL is not known: {cure}")


def _shown(text: str) -> str:
    """Without the credentials."""
    return re.sub(r"//[^/@]*@", "//…@", text)
