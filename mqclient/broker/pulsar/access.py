"""Owns who may produce to a topic: together with others, alone, or alone by putting the others out."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from mqclient.broker.pulsar.refused import Refused
from mqclient.pulsar.codes import ProducerAccessMode, ServerError

if TYPE_CHECKING:
    from mqclient.broker.pulsar.producers import Producer


class Access:
    """A topic's door for producers. Its epoch counts how often somebody began to have it alone."""

    __slots__ = ("epoch", "exclusive", "producers", "waiting")

    def __init__(self) -> None:
        self.epoch: int | None = None
        self.exclusive: Producer | None = None
        self.producers: dict[str, Producer] = {}
        """Who is in, by name."""
        self.waiting: deque[Producer] = deque()

    def enter(self, producer: Producer) -> bool:
        """True: it is in; False: it waits. Refused says why not. Whoever is to be put out first was put out before."""
        mode = producer.mode
        if mode == ProducerAccessMode.Shared:
            if self.exclusive is not None or self.waiting:
                raise Refused(ServerError.ProducerBusy, self._taken())
            self.producers[producer.name] = producer
            return True
        if self.exclusive is not None or self.producers or self.waiting:
            if mode == ProducerAccessMode.WaitForExclusive:
                self.waiting.append(producer)
                return False
            raise Refused(ServerError.ProducerFenced, self._taken())
        self.check_epoch(producer)
        self._alone(producer)
        return True

    def check_epoch(self, producer: Producer) -> None:
        """One who was out while another had the topic alone does not come back."""
        if producer.topic_epoch is not None and producer.topic_epoch < (-1 if self.epoch is None else self.epoch):
            text = f"Topic epoch has already moved. Current epoch: {self.epoch}, Producer epoch: {producer.topic_epoch}"
            raise Refused(ServerError.ProducerFenced, text)

    def leave(self, producer: Producer) -> Producer | None:
        """It is out; who waited longest and now has the topic alone, if the place became free."""
        if producer in self.waiting:
            self.waiting.remove(producer)
        if self.producers.get(producer.name) is not producer:
            return None
        del self.producers[producer.name]
        if self.exclusive is producer:
            self.exclusive = None
        if self.producers or not self.waiting:
            return None
        following = self.waiting.popleft()
        self._alone(following)
        return following

    def _alone(self, producer: Producer) -> None:
        self.exclusive = producer
        self.producers[producer.name] = producer
        if producer.topic_epoch is None:
            producer.topic_epoch = 0 if self.epoch is None else self.epoch + 1
        self.epoch = producer.topic_epoch

    def _taken(self) -> str:
        if self.exclusive is not None:
            return f"Topic has an existing exclusive producer: {self.exclusive.name}"
        return "Topic has existing shared producers" if self.producers else "Topic has producers that wait to be alone"
