"""The Pulsar client: the sync face under its public names; `mqclient.pulsar.aio` is the asyncio one.

from mqclient import pulsar

with pulsar.Client("pulsar://127.0.0.1:6650") as client, client.producer("orders") as producer:
    producer.send(b"...", key="42")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mqclient._native.pulsar import EARLIEST, LATEST, Message, MessageId
    from mqclient.pulsar.auth import token
    from mqclient.pulsar.consumer_options import DeadLetter, Delays
    from mqclient.pulsar.sync import Client, Consumer, Producer, Reader

__all__ = ["EARLIEST", "LATEST", "Client", "Consumer", "DeadLetter", "Delays", "Message", "MessageId", "Producer",
           "Reader", "token"]  # fmt: skip

_FACE = ("Client", "Consumer", "Producer", "Reader")
_OPTIONS = ("DeadLetter", "Delays")
_CODEC = ("EARLIEST", "LATEST", "Message", "MessageId")


def __getattr__(name: str) -> Any:
    """Imported when asked for: the engine does not load a face, and the broker not the client."""
    if name in _FACE:
        from mqclient.pulsar import sync

        return getattr(sync, name)
    if name in _CODEC:
        from mqclient import _impl

        return getattr(_impl.default.pulsar, name)
    if name in _OPTIONS:
        from mqclient.pulsar import consumer_options

        return getattr(consumer_options, name)
    if name == "token":
        from mqclient.pulsar import auth

        return auth.token
    raise AttributeError(f"module 'mqclient.pulsar' has no attribute {name!r}")
