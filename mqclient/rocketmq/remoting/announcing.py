"""Owns that a broker knows our producer group before it is relied on to find us: for check-backs and for replies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, gather
from mqclient.errors import LinkError


class Announcer:
    """One heartbeat for each connection, not waiting for the next regular one; brokers forget with the connection."""

    __slots__ = ("_client", "_told")

    def __init__(self, client: Any) -> None:
        self._client = client
        self._told: dict[str, tuple[Any, int]] = {}
        """By address: the link and its epoch; a forked child has other links, whose epochs begin anew."""

    def known(self, address: str) -> bool:
        """Whether the broker there acknowledged us over the connection that we have now."""
        link = self._client.links.get(address)
        return link is not None and link.usable and self._told.get(address) == (link, link.epoch)

    def tell_steps(self, addresses: Iterable[str]) -> Steps[None]:
        """Done when at least one of these brokers knows us; a LinkError if none does."""
        wanted = list(addresses)
        asked = {address: self._beat(address) for address in wanted if not self.known(address)}
        yield gather(list(asked.values()))
        for address, slot in asked.items():
            link = self._client.links.get(address)
            if slot.error is None and slot.result() and link is not None:
                self._told[address] = (link, link.epoch)
        if wanted and not any(map(self.known, wanted)):
            raise LinkError(f"no broker of {', '.join(wanted)} acknowledged our heartbeat")

    def _beat(self, address: str) -> Slot[bool]:
        slot: Slot[bool] = self._client.heartbeats.beat(address)
        return slot
