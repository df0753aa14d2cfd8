"""The Pulsar client: the sync face under its public names; `mqclient.pulsar.aio` is the asyncio one.

from mqclient import pulsar

with pulsar.Client("pulsar://127.0.0.1:6650") as client, client.producer("orders") as producer:
    producer.send(b"...", key="42")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mqclient.errors import ConfigError

if TYPE_CHECKING:
    from mqclient._native.pulsar import EARLIEST, LATEST, Message, MessageId
    from mqclient.config import TLS
    from mqclient.core.hooking import TraceContext, traceparent
    from mqclient.pulsar import aio as aio
    from mqclient.pulsar.auth import Authentication, basic, mutual_tls, token
    from mqclient.pulsar.consumer_options import DeadLetter, Delays
    from mqclient.pulsar.encryption import Decryption, Encryption, Key
    from mqclient.pulsar.failover import Cluster, Failover
    from mqclient.pulsar.sync import Client, Consumer, Producer, Reader, TableView, Transaction

__all__ = ["EARLIEST", "LATEST", "Client", "Cluster", "Consumer", "DeadLetter", "Decryption", "Delays", "Encryption",
           "Failover", "Key", "Message", "MessageId", "Producer", "Reader", "TableView", "TraceContext", "Transaction",
           "basic", "mutual_tls", "oauth2", "token", "traceparent"]  # fmt: skip

_FACE = ("Client", "Consumer", "Producer", "Reader", "TableView", "Transaction")
_OPTIONS = ("DeadLetter", "Delays")
_ENCRYPTION = ("Decryption", "Encryption", "Key")
_AUTH = ("basic", "mutual_tls", "token")
_CLUSTERS = ("Cluster", "Failover")
_TRACE = ("TraceContext", "traceparent")
_CODEC = ("EARLIEST", "LATEST", "Message", "MessageId")


def __getattr__(name: str) -> Any:
    """Imported when asked for: the engine does not load a face, and the broker not the client."""
    if name == "aio":
        return import_module("mqclient.pulsar.aio")
    if name in _FACE:
        from mqclient.pulsar import sync

        return getattr(sync, name)
    if name in _CODEC:
        from mqclient import _impl

        return getattr(_impl.default.pulsar, name)
    if name in _OPTIONS:
        from mqclient.pulsar import consumer_options

        return getattr(consumer_options, name)
    if name in _ENCRYPTION:
        from mqclient.pulsar import encryption

        return getattr(encryption, name)
    if name in _CLUSTERS:
        from mqclient.pulsar import failover

        return getattr(failover, name)
    if name in _TRACE:
        from mqclient.core import hooking

        return getattr(hooking, name)
    if name in _AUTH:
        from mqclient.pulsar import auth

        return getattr(auth, name)
    raise AttributeError(f"module 'mqclient.pulsar' has no attribute {name!r}")


def oauth2(
    issuer_url: str,
    *,
    private_key: str | None = None,
    client_id: str = "",
    client_secret: str | None = None,
    audience: str | None = None,
    scope: str | None = None,
    tls: TLS | None = None,
) -> Authentication:
    """Authenticate by OAuth 2.0 client credentials: tokens of `issuer_url`, renewed before they end.

    `private_key`: a JSON file (path or file: URL, or a data: URL) that holds client_id and client_secret. `tls`: of
    connections to the issuer.
    """
    from mqclient.io.oauth2 import ClientCredentials, read_private_key
    from mqclient.io.tls import encrypted
    from mqclient.pulsar.auth import token

    given = read_private_key(private_key) if private_key is not None else {}
    name, secret = client_id or given.get("client_id", ""), client_secret or given.get("client_secret")
    if not name:
        raise ConfigError("oauth2 needs client_id and client_secret, or a private_key that holds them")
    context = encrypted(tls).context if tls is not None else None
    return token(ClientCredentials(issuer_url, name, secret, audience=audience, scope=scope, context=context))
