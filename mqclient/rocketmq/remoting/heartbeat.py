"""Owns heartbeats: who we are and what we subscribe to, told to each broker, and what each acknowledged of it."""

from __future__ import annotations

import logging
from typing import Any

from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, gather, run_steps
from mqclient.errors import DeadlineError, MQError
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting.bodies import write_body

LOG = logging.getLogger("mqclient.remoting")


class Heartbeats:
    """One beat at a time towards each broker; who asks during one gets the next, which holds what is new by then."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._running: dict[str, Slot[bool]] = {}
        self._next: dict[str, Slot[bool]] = {}

    def beat(self, address: str) -> Slot[bool]:
        """Tell one broker what holds now; the value says whether it acknowledged."""
        if address not in self._running:
            return self._start(address)
        following = self._next.get(address)
        if following is None:
            following = self._next[address] = Slot()
        return following

    def beat_all(self) -> Slot[list[Slot[Any]]]:
        """Tell every broker of every route; done when all have answered or failed."""
        return gather(list(self.beat_each().values()))

    def beat_each(self) -> dict[str, Slot[bool]]:
        """Tell every broker; the slot of each address."""
        return {address: self.beat(address) for address in self._client.routes.masters().values()}

    def on_lost(self, address: str) -> None:
        """What a broker acknowledged over a lost connection may be gone with it: it might have been restarted."""
        for consumer in self._client.consumers.values():
            consumer.subscriptions.forget(address)

    def _start(self, address: str) -> Slot[bool]:
        slot = self._running[address] = run_steps(self._beat_steps(address))
        slot.then(lambda _: self._ended(address))
        return slot

    def _ended(self, address: str) -> None:
        self._running.pop(address, None)
        waiting = self._next.pop(address, None)
        if waiting is not None:
            self._start(address).then(lambda slot: waiting.complete(slot.error is None and slot.result()))

    def _beat_steps(self, address: str) -> Steps[bool]:
        """Sequence: note the versions that this beat carries, send, and only then call them acknowledged."""
        client = self._client
        if client.closed:
            return False
        consumers = {group: consumer for group, consumer in client.consumers.items() if not consumer.closed}
        carried = {group: consumer.subscriptions.versions() for group, consumer in consumers.items()}
        link = client.link(address)
        try:
            epoch, asked = link.epoch, client.driver.now.mono
            yield from client.ask_steps(address, Request.HEART_BEAT, {}, self._body(consumers))
        except MQError as error:
            if isinstance(error, DeadlineError) and link.epoch == epoch and link.last_read < asked:
                # Nothing at all came since: a black hole. A new connection may find a way, or fail at once.
                link.abort(error)
            if not client.closed:
                LOG.info("heartbeat to %s failed: %s", address, error)
            return False
        if link.epoch != epoch:
            return False
        for group, versions in carried.items():
            consumers[group].subscriptions.acknowledged(address, versions)
        return True

    def _body(self, consumers: dict[str, Any]) -> bytes:
        producers = [{"groupName": group} for group in self._client.producers]
        return write_body(
            {
                "clientID": self._client.client_id,
                "consumerDataSet": [consumer.heartbeat_entry() for consumer in consumers.values()],
                "heartbeatFingerprint": 0,
                "producerDataSet": producers,
                "withoutSub": False,
            }
        )
