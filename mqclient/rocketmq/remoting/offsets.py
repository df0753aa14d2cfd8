"""Owns how far each queue is consumed: kept in memory, told to brokers (clustering) or to a file (broadcasting).

Which one is read when a queue starts is the heart of story 3. Clustering: the store, because another member may have
gone on. Broadcasting: memory first, then the store, because nobody else writes and the file follows memory late.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from mqclient.core.slot import Slot, completed
from mqclient.core.steps import Steps, gather, run_steps
from mqclient.errors import MQError
from mqclient.rocketmq.codes import BrokerError, Request, Response
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting import requests
from mqclient.rocketmq.remoting.offset_file import OffsetFile, Witness
from mqclient.rocketmq.remoting.witness import anew_steps

LOG = logging.getLogger("mqclient.remoting")

QUERY_TIMEOUT: Final = 5.0


class RemoteOffsets:
    """A clustering group's: the brokers keep them.

    Race: a broker makes a group's table of a topic at the first offset that it is told. It works on several requests
    at once, and two that both find no table make one each: the later one stays, what the other was told is gone (seen
    on 5.5.0, one close in sixty). So the first word about a topic is alone, and others wait for its answer.
    """

    def __init__(self, client: Any, group: str, *, strict: bool = False) -> None:
        """`strict`: ask brokers not to answer 0 for a young queue of which they have no offset, as they like to do."""
        self._client = client
        self._group = group
        self._strict = strict
        self.memory: dict[MessageQueue, int] = {}
        self._dirty: set[MessageQueue] = set()
        self._telling: set[Slot[Any]] = set()
        """What brokers have not answered yet."""
        self._first: dict[tuple[str, str], Slot[Any]] = {}
        """By topic and broker: the answer to the first word."""

    def load_steps(self) -> Steps[None]:
        yield from ()  # nothing to wait for: brokers are asked queue by queue

    def read_steps(self, queue: MessageQueue) -> Steps[int | None]:
        """What the broker has, None if it has nothing; what memory remembers of an earlier time is forgotten."""
        self.forget(queue)
        address = self._client.broker_address(queue.broker_name)
        fields = requests.query_offset(self._group, queue, strict=self._strict)
        try:
            frame = yield from self._client.ask_steps(
                address, Request.QUERY_CONSUMER_OFFSET, fields, timeout=QUERY_TIMEOUT
            )
        except BrokerError as error:
            if error.code == Response.QUERY_NOT_FOUND:
                return None
            raise
        return int(frame.field("offset", "0"))

    def mark(self, queue: MessageQueue, offset: int) -> None:
        """Consumed up to here; never backwards."""
        if offset > self.memory.get(queue, -1):
            self.put(queue, offset)

    def put(self, queue: MessageQueue, offset: int) -> None:
        """Consumed up to here, whatever was said before."""
        self.memory[queue] = offset
        self._dirty.add(queue)

    def forget(self, queue: MessageQueue) -> None:
        self.memory.pop(queue, None)
        self._dirty.discard(queue)

    def told_by_pull(self, queue: MessageQueue) -> int:
        """What a pull may tell along; 0 is nothing."""
        first = self._first.get((queue.topic, queue.broker_name))
        return self.memory.get(queue, 0) if first is not None and first.done else 0

    def persist(self, queue: MessageQueue) -> None:
        """Tell the broker now, without waiting."""
        if queue in self._dirty:
            self._tell(queue)

    def _tell(self, queue: MessageQueue) -> Slot[Any] | None:
        """The answer to come; None without a route, and the next flush tries again."""
        address = self._client.routes.address(queue.broker_name)
        if address is None:
            return None
        self._dirty.discard(queue)
        fields = requests.update_offset(self._group, queue, self.memory[queue])
        place = queue.topic, queue.broker_name
        first = self._first.get(place)
        if first is None or first.done:
            slot: Slot[Any] = self._client.ask(address, Request.UPDATE_CONSUMER_OFFSET, fields)
        else:
            slot = run_steps(self._tell_after_steps(first, address, fields))
        if first is None:
            self._first[place] = slot
        self._telling.add(slot)
        slot.then(lambda answer: self._told(queue, answer))
        return slot

    def _tell_after_steps(self, first: Slot[Any], address: str, fields: dict[str, str]) -> Steps[Any]:
        yield first  # its error is ours, too: a broker that is away does not keep us twice
        return (yield self._client.ask(address, Request.UPDATE_CONSUMER_OFFSET, fields))

    def _told(self, queue: MessageQueue, answer: Slot[Any]) -> None:
        self._telling.discard(answer)
        if answer.error is None:
            return
        if self._first.get((queue.topic, queue.broker_name)) is answer:
            del self._first[queue.topic, queue.broker_name]
        if queue in self.memory:
            self._dirty.add(queue)

    def flush(self) -> None:
        for queue in list(self._dirty):
            self.persist(queue)

    def abandon(self) -> None:
        """In a forked child: the parent tells them."""
        self.memory.clear()
        self._dirty.clear()
        self._first.clear()

    def close_steps(self) -> Steps[None]:
        yield from self.flush_steps()

    def flush_steps(self) -> Steps[None]:
        """Tell the brokers what they do not know yet, and wait until they know.

        Race: a broker works on several requests at once, and the later one of two may be done first. So what was told
        without waiting is answered before the last word is said.
        """
        yield gather(list(self._telling))
        asked = [self._tell(queue) for queue in list(self._dirty)]
        for slot in (yield gather([slot for slot in asked if slot is not None])):
            if slot.error is not None:
                LOG.warning("consumer:%s could not tell an offset: %s", self._group, slot.error)


class LocalOffsets:
    """A broadcasting member's: a file keeps them. Memory is the truth; a broken file or disk costs one warning."""

    def __init__(self, client: Any, group: str, file: OffsetFile) -> None:
        self._client = client
        self._group = group
        self._file = file
        self._stored: dict[MessageQueue, int] = {}
        """What the file held at the start; what changed since is in memory."""
        self._witnesses: dict[MessageQueue, Witness] = {}
        self.memory: dict[MessageQueue, int] = {}
        self._writing: Slot[None] = completed(None)
        self._dirty = False
        self._broken = False

    def load_steps(self) -> Steps[None]:
        try:
            self._stored, self._witnesses = yield self._client.outside(self._file.load)
        except Exception as error:
            self._warn("cannot read its offsets, and goes on without", error)

    def read_steps(self, queue: MessageQueue) -> Steps[int | None]:
        """Memory first, then what the file held at the start, if the topic is still the one that it speaks of."""
        if queue in self.memory:
            return self.memory[queue]
        stored, witness = self._stored.get(queue), self._witnesses.get(queue)
        if stored is None or witness is None:
            return stored
        try:
            offset = yield from anew_steps(self._client, self._group, queue, witness)
        except MQError as error:
            LOG.info("consumer:%s cannot see whether %s is what it was: %s", self._group, queue, error)
            return stored
        if offset is None:
            return stored
        LOG.warning("consumer:%s %s was made anew since: goes on at %d, not %d", self._group, queue, offset, stored)
        self._witnesses.pop(queue, None)
        self.put(queue, offset)
        return offset

    def mark(self, queue: MessageQueue, offset: int) -> None:
        if offset > self.memory.get(queue, -1):
            self.put(queue, offset)

    def put(self, queue: MessageQueue, offset: int) -> None:
        self.memory[queue] = offset
        self._dirty = True

    def witness(self, queue: MessageQueue, offset: int, stored_at: int) -> None:
        """This message was consumed, and then it was stored: it tells later whether the topic is still the same."""
        self._witnesses[queue] = (offset, stored_at)

    def forget(self, queue: MessageQueue) -> None:
        """Nobody else consumes for us: what memory knows stays true."""

    def told_by_pull(self, queue: MessageQueue) -> int:
        return 0

    def persist(self, queue: MessageQueue) -> None:
        self.flush()

    def flush(self) -> None:
        """Write the file if something changed; one write at a time, the last state wins."""
        if self._dirty and self._writing.done and self._file.path is not None:
            self._dirty = False
            self._writing = run_steps(self._write_steps())

    def abandon(self) -> None:
        """In a forked child: the file and its lock are the parent's; our copy of the descriptor goes."""
        self.memory.clear()
        self._dirty = False
        self._file.close()

    def close_steps(self) -> Steps[None]:
        yield from self.flush_steps()
        self._file.close()

    def flush_steps(self) -> Steps[None]:
        yield self._writing
        self.flush()
        yield self._writing

    def _write_steps(self) -> Steps[None]:
        # Queues that we do not have at the moment keep their entries.
        table, witnesses = {**self._stored, **self.memory}, dict(self._witnesses)
        try:
            yield self._client.outside(lambda: self._file.save(table, witnesses))
        except Exception as error:
            self._warn("cannot write its offsets, and goes on in memory", error)

    def _warn(self, what: str, error: Exception) -> None:
        if not self._broken:
            self._broken = True
            LOG.warning("consumer:%s %s: %s", self._group, what, error)
