"""Owns who we are to brokers: client ids that no other process has, the salt of message ids, the clash of equals."""

from __future__ import annotations

import os
import re
from random import SystemRandom
from typing import Any, Final

from mqclient.core.steps import Steps
from mqclient.rocketmq.codes import Request

_CHANCE: Final = SystemRandom()
CONFIRM_SECONDS: Final = 5.0
REMEMBERED_SECONDS: Final = 180.0
"""Brokers look every 10 s for connections that were silent for 120 s."""


class Identity:
    """Host, pid, start time and chance: equal host names and pids, as containers have them, still give two ids.

    An id that is given (`client_id=`) is used as it is. Made anew in a forked child.
    """

    __slots__ = ("client_id", "host", "pid", "salt")

    def __init__(self, wall_ms: int, given: str | None = None, unit: str | None = None) -> None:
        self.host = re.sub(r"[^a-zA-Z0-9._-]", "_", os.uname().nodename) or "localhost"
        self.pid = os.getpid()
        self.salt = _CHANCE.getrandbits(32)
        made = f"{self.host}@{self.pid}#{wall_ms:x}#{self.salt:08x}"
        self.client_id = given or (f"{made}@{unit}" if unit else made)


class ClashWatch:
    """Tells once a group that another client uses our id: both get the same queues, other queues pile up (story 2).

    The list of ids holds one entry a connection, so our own old connection, which the broker has not yet seen end,
    looks like a clash: only an address that was never ours, seen twice five seconds apart, is one. Where something
    between us and the broker rewrites addresses, as proxies do, ours tell nothing: then there must be more connections
    than we opened to it as long ago as brokers remember.
    """

    def __init__(self, client: Any, warn: Any) -> None:
        self._client = client
        self._warn = warn
        self.warned: set[str] = set()
        self._looking: set[str] = set()

    def suspects(self, group: str) -> bool:
        """Whether a list that holds our id twice is worth a look."""
        return group not in self.warned and group not in self._looking

    def look_steps(self, group: str, address: str) -> Steps[None]:
        """Read the group's connections twice; warn if a stranger has our id both times."""
        self._looking.add(group)
        try:
            first = yield from self._strangers_steps(group, address)
            if first:
                yield self._client.timers.sleep(CONFIRM_SECONDS)
                both = first & (yield from self._strangers_steps(group, address))
                if both and group not in self.warned:
                    self.warned.add(group)
                    self._warn(group, self._client.client_id, self._client.local_address(address), sorted(both))
        finally:
            self._looking.discard(group)

    def _strangers_steps(self, group: str, address: str) -> Steps[set[str]]:
        """The addresses other than ours under our id; without the right to ask, one unknown stranger."""
        try:
            body = yield from self._client.ask_body_steps(
                address, Request.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": group}
            )
        except Exception as error:
            if getattr(error, "code", None) is None:
                raise
            return {"unknown"}
        own = self._client.client_id
        found = {
            str(entry.get("clientAddr")) for entry in body.get("connectionSet", ()) if entry.get("clientId") == own
        }
        ours: set[str] = self._client.ever_local
        if self._client.local_address(address) in found:
            return found - ours
        return found if len(found) > self._client.opened_lately(address, REMEMBERED_SECONDS) else set()
