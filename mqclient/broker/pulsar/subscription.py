"""Owns subscriptions and their dispatchers: who gets which entry next, paid for by permits."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from mqclient.broker.pulsar.cursor import Cursor, words_of
from mqclient.broker.pulsar.delays import Delays
from mqclient.pulsar.codes import SubType

if TYPE_CHECKING:
    from mqclient.broker.pulsar.session import Session
    from mqclient.broker.pulsar.topics import Topic

ROUND_ROBIN = 20
"""Entries that one consumer of a shared subscription gets before it is the next one's turn."""


class Consumer:
    """One consumer's half of the account of permits.

    A permit is the right to push one message. An entry is sent whole, so the account may dip below zero; messages of
    it that are acknowledged already are not charged. FLOW while blocked on unacknowledged messages is set aside.
    """

    __slots__ = (
        "aside",
        "at_end",
        "blocked",
        "consumer_id",
        "delivered",
        "epoch",
        "flows",
        "limit",
        "name",
        "pending",
        "permits",
        "priority",
        "redelivered",
        "session",
        "subscription",
        "unacked",
    )

    def __init__(
        self, session: Session, subscription: Subscription, consumer_id: int, name: str, priority: int, limit: int
    ) -> None:
        self.session = session
        self.subscription = subscription
        self.consumer_id = consumer_id
        self.name = name
        self.priority = priority
        self.limit = limit
        self.epoch: int | None = None
        self.permits = 0
        self.aside = 0
        self.blocked = False
        self.unacked = 0
        self.pending: dict[int, int] = {}
        """Shared types: entry -> messages of it that were charged and are not acknowledged."""
        self.flows: list[int] = []
        """Every grant as it came: for tests, which add them up."""
        self.delivered = 0
        self.redelivered = 0
        self.at_end = False

    def flow(self, permits: int) -> None:
        self.flows.append(permits)
        if self.subscription.shared and self.limit and self.unacked >= self.limit:
            self.blocked = True
        if self.blocked:
            self.aside += permits
        else:
            self.permits += permits
            self.subscription.poke()

    def charge(self, entry: int, messages: int) -> None:
        self.permits -= messages
        self.delivered += messages
        if self.subscription.shared:
            self.pending[entry] = messages
            self.unacked += messages
            self.blocked = self.blocked or bool(self.limit and self.unacked >= self.limit)

    def settle(self, entry: int, messages: int) -> None:
        """That many messages of an entry are acknowledged."""
        left = self.pending.get(entry, 0) - messages
        self.unacked -= min(messages, self.pending.get(entry, 0))
        if left > 0:
            self.pending[entry] = left
        else:
            self.pending.pop(entry, None)
        if self.blocked and self.unacked <= self.limit // 2:
            self.unblock()

    def unblock(self) -> None:
        self.blocked = False
        self.permits += self.aside
        self.aside = 0
        self.subscription.poke()

    def reach_end(self) -> None:
        """Nothing is left of a terminated topic, and nothing will come: told once, after the first FLOW."""
        if self.flows and not self.at_end:
            self.at_end = True
            self.session.send(27, "CommandReachedEndOfTopic", consumer_id=self.consumer_id)

    @property
    def ready(self) -> bool:
        return self.permits > 0 and not self.blocked and self.session.writable


class Replay:
    """Entries that come again, lowest first."""

    __slots__ = ("_entries", "_heap")

    def __init__(self) -> None:
        self._entries: set[int] = set()
        self._heap: list[int] = []

    def add(self, entries: Iterable[int]) -> None:
        for entry in entries:
            if entry not in self._entries:
                self._entries.add(entry)
                heappush(self._heap, entry)

    def discard(self, entry: int) -> None:
        self._entries.discard(entry)

    def pop(self) -> int | None:
        while self._heap:
            entry = heappop(self._heap)
            if entry in self._entries:
                self._entries.discard(entry)
                return entry
        return None

    def clear(self) -> None:
        self._entries.clear()
        self._heap.clear()


class Subscription:
    """A cursor, the consumers who share it, and the rule by which entries are divided."""

    def __init__(self, topic: Topic, name: str, kind: int, durable: bool, mark: int) -> None:
        self.topic = topic
        self.name = name
        self.kind = kind
        self.durable = durable
        self.cursor = Cursor(mark)
        self.consumers: list[Consumer] = []
        self.active: Consumer | None = None
        self._read = mark + 1
        self._replay = Replay()
        self._delays = Delays(self._due)
        self._hashes: dict[int, int] = {}
        self._redeliveries: dict[int, int] = {}
        self._turn = 0
        self._poked = False
        self.messages_out = 0

    @property
    def shared(self) -> bool:
        return self.kind in (SubType.Shared, SubType.Key_Shared)

    @property
    def backlog(self) -> int:
        """Entries that are not acknowledged."""
        first = self.cursor.mark + 1
        return self.topic.end - first - self.cursor.acked_between(first, self.topic.end)

    def poke(self) -> None:
        """There may be something to send: once, when what is being done now is done."""
        if not self._poked and self.consumers:
            self._poked = True
            self.consumers[0].session.soon(self._dispatch)

    # ---- who is here

    def add(self, consumer: Consumer) -> None:
        if not self.consumers:
            self._read = self.cursor.mark + 1
        self.consumers.append(consumer)
        self._choose(joined=consumer)

    def remove(self, consumer: Consumer, *, resets: bool = False) -> None:
        """What it had and did not acknowledge is for others; how often it was delivered does not count up.

        A subscription that is not durable goes with its last consumer, unless that only makes room for a reset.
        """
        self.consumers.remove(consumer)
        self._replay.add(consumer.pending)
        consumer.pending.clear()
        if self.active is consumer:
            self.active = None
        if not self.consumers:
            self._replay.clear()
            self._delays.clear()
            self._read = self.cursor.mark + 1
            if not self.durable and not resets:
                self.topic.subscriptions.pop(self.name, None)
        self._choose()
        self.poke()

    def _choose(self, joined: Consumer | None = None) -> None:
        """Exclusive and failover: one is active, by priority and name; it begins at the first unacknowledged entry."""
        if self.shared or not self.consumers:
            return
        ordered = sorted(self.consumers, key=lambda consumer: (consumer.priority, consumer.name))
        best = [consumer for consumer in ordered if consumer.priority == ordered[0].priority]
        chosen = best[self.topic.partition % len(best) if self.topic.partition >= 0 else 0]
        changed = chosen is not self.active
        if changed:
            self.active = chosen
            self._read = self.cursor.mark + 1
            self.poke()
        if self.kind == SubType.Failover:
            for consumer in self.consumers if changed else [joined] if joined else []:
                consumer.session.active_consumer_change(consumer.consumer_id, consumer is chosen)

    # ---- acknowledging and asking back

    def ack(self, entry: int, remaining: int | None) -> None:
        """All of an entry, or all but the bits in `remaining`. Whoever had it is relieved, whoever says it."""
        count = self.topic.messages(entry)
        before = self.cursor.remaining(entry, count).bit_count()
        if remaining is None:
            acked = before if self.cursor.ack(entry) else 0
        else:
            acked = self.cursor.ack_part(entry, count, remaining)
        if self.cursor.acked(entry):
            self._replay.discard(entry)
            self._redeliveries.pop(entry, None)
            self._hashes.pop(entry, None)
        owner = next((consumer for consumer in self.consumers if entry in consumer.pending), None)
        if owner is not None and acked:
            owner.settle(entry, acked)
        if self.kind == SubType.Key_Shared or self.topic.terminated:
            self.poke()  # others of its key may have waited for it; or it was the very last

    def ack_up_to(self, entry: int, remaining: int | None) -> None:
        if remaining is None:
            self.cursor.ack_up_to(entry)
        else:
            self.cursor.ack_up_to(entry - 1)
            self.cursor.ack_part(entry, self.topic.messages(entry), remaining)
        if self.topic.terminated:
            self.poke()

    def redeliver(self, consumer: Consumer, entries: list[int] | None, epoch: int | None) -> None:
        """Entries of this consumer, or all that it has: again, and counted. One active consumer: from the mark on."""
        if not self.shared:
            if consumer is self.active:
                self._read = self.cursor.mark + 1
                consumer.epoch = epoch if consumer.epoch is None else max(consumer.epoch, epoch or 0)
                self.poke()
            return
        wanted = list(consumer.pending) if entries is None else [e for e in entries if e in consumer.pending]
        for entry in wanted:
            consumer.unacked -= consumer.pending.pop(entry)
            self._redeliveries[entry] = self._redeliveries.get(entry, 0) + 1
            consumer.redelivered += 1
        self._replay.add(wanted)
        consumer.unblock()

    def reset(self, mark: int) -> None:
        """The seek: as if everything after `mark` were new."""
        self.cursor.reset(mark)
        self._read = mark + 1
        self._replay.clear()
        self._delays.clear()
        self._redeliveries.clear()

    # ---- dispatching

    def _dispatch(self) -> None:
        self._poked = False
        if self.kind == SubType.Key_Shared:
            self._dispatch_by_key()
        elif self.shared:
            self._dispatch_in_turn()
        elif self.active is not None:
            for entry in self._unread(self.active):
                self._send(self.active, entry)
        if self.topic.terminated and not self.backlog:
            for consumer in self.consumers:
                consumer.reach_end()

    def _unread(self, consumer: Consumer) -> Iterator[int]:
        """Entries in order, as long as this consumer can take them."""
        while consumer.ready and self._read < self.topic.end:
            entry = self._read
            self._read += 1
            if not self.cursor.acked(entry):
                yield entry

    def _next(self) -> int | None:
        """Shared: what comes again first, then what is new."""
        while (entry := self._replay.pop()) is not None:
            if not self.cursor.acked(entry):
                return entry
        while self._read < self.topic.end:
            self._read += 1
            if not self.cursor.acked(self._read - 1) and not self._is_early(self._read - 1):
                return self._read - 1
        return None

    def _is_early(self, entry: int) -> bool:
        """Whether its time is to come; it is then put aside until it has."""
        when = self.topic.delays.get(entry)
        clock = self.consumers[0].session.house.clock
        if when is None or when <= clock.wall_ms():
            return False
        self._delays.add(entry, when, clock)
        return True

    def _due(self) -> None:
        """The alarm lives only while somebody is here."""
        self._replay.add(self._delays.take(self.consumers[0].session.house.clock))
        self.poke()

    def _dispatch_in_turn(self) -> None:
        while True:
            ready = [consumer for consumer in self.consumers if consumer.ready]
            if not ready:
                return
            level = min(consumer.priority for consumer in ready)
            ready = [consumer for consumer in ready if consumer.priority == level]
            self._turn += 1
            consumer = ready[self._turn % len(ready)]
            for _ in range(ROUND_ROBIN):
                if not consumer.ready:
                    break
                entry = self._next()
                if entry is None:
                    return
                self._send(consumer, entry)

    def _dispatch_by_key(self) -> None:
        """A key belongs to one consumer; while another still has entries of it, or it has no permits, it waits."""
        ordered = sorted(self.consumers, key=lambda consumer: consumer.name)
        holders = {self._key_hash(entry): consumer for consumer in self.consumers for entry in sorted(consumer.pending)}
        waiting: set[int] = set()
        held: list[int] = []
        while any(consumer.ready for consumer in ordered):
            entry = self._next()
            if entry is None:
                break
            key = self._key_hash(entry)
            consumer = ordered[key % len(ordered)]
            if key in waiting or not consumer.ready or holders.get(key, consumer) is not consumer:
                waiting.add(key)
                held.append(entry)
            else:
                self._send(consumer, entry)
                holders[key] = consumer
        self._replay.add(held)

    def _key_hash(self, entry: int) -> int:
        """Of the entry's ordering key, else its key, else of the message itself."""
        known = self._hashes.get(entry)
        if known is not None:
            return known
        impl = self.consumers[0].session.impl
        stored = impl.pulsar.Entry.from_stored(self.topic.log.record(entry))
        text = stored.partition_key or ""
        key = stored.ordering_key or (b64decode(text) if stored.key_b64 else text.encode())
        key = key or f"{stored.producer_name}-{stored.sequence_id}".encode()
        self._hashes[entry] = hashed = int(impl.digest.murmur3_32(key) % 65536) or 1
        return hashed

    def _send(self, consumer: Consumer, entry: int) -> None:
        """The stored bytes as they are; charged by the messages that are not acknowledged."""
        topic, cursor = self.topic, self.cursor
        count = topic.messages(entry)
        bits = cursor.remaining(entry, count)
        consumer.charge(entry, bits.bit_count())
        self.messages_out += bits.bit_count()
        frame: bytes = consumer.session.impl.pulsar.encode_message(
            consumer.consumer_id,
            topic.ledger,
            entry,
            topic.log.record(entry),
            partition=topic.partition,
            redelivery_count=self._redeliveries.get(entry, 0),
            ack_set=words_of(bits) if cursor.partly(entry) else None,
            consumer_epoch=consumer.epoch,
        )
        consumer.session.write(frame)


def stats(consumer: Consumer) -> dict[str, Any]:
    """What CONSUMER_STATS_RESPONSE tells."""
    return {
        "consumerName": consumer.name,
        "availablePermits": max(0, consumer.permits),
        "unackedMessages": consumer.unacked,
        "blockedConsumerOnUnackedMsgs": consumer.blocked,
        "address": consumer.session.peer,
        "type": SubType(consumer.subscription.kind).name,
        "msgBacklog": consumer.subscription.backlog,
    }
