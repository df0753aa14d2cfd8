"""A Pulsar that tests run on: the embedded broker, or a real one."""

from __future__ import annotations

from typing import Any

from mqclient.broker import EmbeddedBroker


class PulsarCluster:
    """Its address, and what tests do to a cluster from outside."""

    def __init__(self, url: str, embedded: EmbeddedBroker | None = None, real: Any = None) -> None:
        self.url = url
        self._embedded = embedded
        self._real = real

    def unload(self, topic: str) -> None:
        """Everybody on the topic is told to come again."""
        if self._embedded is not None:
            door: Any = self._embedded._doors[0]
            self._embedded.control.call(door.unload, topic)
        else:
            self._real.request("PUT", f"/persistent/public/default/{topic}/unload", b"")
