"""A Pulsar that tests run on: the embedded broker, or a real one."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from mqclient.broker import EmbeddedBroker


class PulsarCluster:
    """Its address, and what tests do to a cluster from outside."""

    def __init__(self, url: str, embedded: EmbeddedBroker | None = None, real: Any = None) -> None:
        self.url = url
        self._embedded = embedded
        self._real = real
        self._partitioned: set[str] = set()

    @property
    def real(self) -> bool:
        return self._real is not None

    @property
    def quiet(self) -> float:
        """Seconds without a message after which none is on its way."""
        return 2.0 if self.real else 0.3

    @property
    def goes_back_after(self) -> float:
        """Seconds after which a failover subscription goes back to what its last active consumer left behind.

        Race: a real broker's read for the old active consumer is under way when that one leaves; what it brings goes to
        the new one at once, and only after `activeConsumerFailoverDelayTimeMillis` the cursor goes back (4.2.4: half
        of all leavings under load, the new one up to a window ahead). The embedded broker goes back at once.
        """
        return 10.0 if self.real else 0.0  # 1.0, and what a machine with much to do adds (3.0 was seen to be too short)

    @property
    def web(self) -> str:
        """Its address over HTTP."""
        return str(self._embedded.pulsar_rest if self._embedded is not None else self._real.rest)

    def unload(self, topic: str) -> None:
        """Everybody on the topic is told to come again."""
        self.rest("PUT", f"persistent/public/default/{topic}/unload")

    def rest(self, method: str, path: str, body: Any = None) -> Any:
        """A call of the administration under /admin/v2, body and answer as JSON; HTTPError says what is wrong."""
        data = b"" if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.web}/admin/v2/{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as reply:
            content: bytes = reply.read()
        return json.loads(content) if content.startswith((b"{", b"[", b'"')) or content.isalnum() else None

    def partition(self, topic: str, number: int) -> None:
        """Make a topic with partitions, or let it grow to this number."""
        method = "POST" if topic in self._partitioned else "PUT"
        self.rest(method, f"persistent/public/default/{topic}/partitions", number)
        self._partitioned.add(topic)
