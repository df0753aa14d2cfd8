"""Owns subscriptions and their dispatchers: who gets which entry next, paid for by permits."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mqclient.broker.pulsar.consumer import Consumer
from mqclient.broker.pulsar.cursor import Cursor, words_of
from mqclient.broker.pulsar.delays import Delays
from mqclient.broker.pulsar.migration import send_consumer
from mqclient.broker.pulsar.pending_acks import PendingAcks
from mqclient.broker.pulsar.replay import Replay
from mqclient.broker.pulsar.selectors import Ring, Selector, chosen_by_ring
from mqclient.pulsar.codes import SubType

if TYPE_CHECKING:
    from mqclient.broker.control import Alarm
    from mqclient.broker.pulsar.topics import Topic
    from mqclient.broker.pulsar.txn_buffer import Txn

APART = 1 << 14
"""An entry of so many bytes is not copied behind its frame's head, but written from where it lies."""
ROUND_ROBIN = 20
"""Entries that one consumer of a shared subscription gets before it is the next one's turn."""


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
        self.selector: Selector | None = None
        """Key-shared: who has which keys; set by the first consumer."""
        self.out_of_order = False
        """Key-shared: a key goes on at its new owner while the former still has some of it."""
        self.limit = 0
        """Messages that all consumers together may have unacknowledged; 0: any number."""
        self.unacked = 0
        self.blocked = False
        self._chunks: dict[str, Consumer] = {}
        self.pending_acks = PendingAcks()
        self._switching: Alarm | None = None
        """Failover: nothing is delivered until then."""

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
        if self.kind == SubType.Key_Shared:
            if self.selector is None:
                self.selector = Ring(consumer.session.impl.digest)
            self.selector.add(consumer)
        self._choose(joined=consumer)

    def remove(self, consumer: Consumer, *, resets: bool = False) -> None:
        """What it had and did not acknowledge is for others; how often it was delivered does not count up.

        A subscription that is not durable goes with its last consumer, unless that only makes room for a reset.
        """
        self.consumers.remove(consumer)
        self._replay.add(consumer.pending)
        consumer.pending.clear()
        self.relieve(consumer, consumer.unacked)
        if self.selector is not None:
            self.selector.remove(consumer)
        if self.active is consumer:
            self.active = None
        if not self.consumers:
            self._replay.clear()
            self._delays.clear()
            self._hashes.clear()
            self.selector = None
            if self._switching is not None:
                self._switching.cancel()
                self._switching = None
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
        if self.topic.partition >= 0:
            chosen = best[self.topic.partition % len(best)]
        else:
            chosen = chosen_by_ring(best[0].session.impl.digest, self.topic.text, best)
        changed = chosen is not self.active
        self.active = chosen
        if self.kind != SubType.Failover:
            self._read = self.cursor.mark + 1 if changed else self._read
            self.poke()
        elif changed:
            self._switch()
        elif joined is not None:
            joined.session.active_consumer_change(joined.consumer_id, joined is chosen)

    def _switch(self) -> None:
        """Another is active: after a delay, so that what was read for the former one is not read twice."""
        session = self.consumers[0].session
        delay = session.topics.policies.setting("activeConsumerFailoverDelayTimeMillis", 0)
        if not delay:
            self._begin()
        elif self._switching is None:
            self._switching = session.house.clock.after(delay / 1000, self._begin)

    def _begin(self) -> None:
        """Everybody is told, and the active one goes on from the mark."""
        self._switching = None
        self._read = self.cursor.mark + 1
        for consumer in self.consumers:
            consumer.session.active_consumer_change(consumer.consumer_id, consumer is self.active)
        self.poke()

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
        if self.kind == SubType.Key_Shared or self.topic.ends:
            self.poke()  # others of its key may have waited for it; or it was the very last

    def ack_up_to(self, entry: int, remaining: int | None) -> None:
        if remaining is None:
            self.cursor.ack_up_to(entry)
        else:
            self.cursor.ack_up_to(entry - 1)
            self.cursor.ack_part(entry, self.topic.messages(entry), remaining)
        if self.topic.ends:
            self.poke()

    def redeliver(self, consumer: Consumer, entries: list[int] | None, epoch: int | None) -> None:
        """Entries of this consumer, or all that it has: again, and counted. One active consumer: from the mark on."""
        if not self.shared:
            if consumer is self.active:
                self._read = self.cursor.mark + 1
                consumer.epoch = epoch if consumer.epoch is None else max(consumer.epoch, epoch or 0)
                self.poke()
            return
        named = consumer.pending if entries is None else dict.fromkeys(entries)  # a client may name one twice
        wanted = [entry for entry in named if entry in consumer.pending]
        for entry in wanted:
            if not self._bits(entry):
                continue  # a transaction has acknowledged it: if it is aborted, the entry comes again
            self.relieve(consumer, consumer.pending.pop(entry))
            self._redeliveries[entry] = self._redeliveries.get(entry, 0) + 1
            consumer.redelivered += 1
        self._replay.add(wanted)
        consumer.unblock()

    def end_txn(self, txn: Txn, commit: bool) -> None:
        """What it acknowledged is so now; or it comes again."""
        pending = self.pending_acks.end(txn)
        if commit:
            for entry, bits in pending.bits.items():
                self.ack(entry, self.cursor.remaining(entry, self.topic.messages(entry)) & ~bits or None)
            if pending.up_to is not None:
                self.ack_up_to(*pending.up_to)
        elif self.shared:
            for consumer in list(self.consumers):
                self.redeliver(consumer, list(pending.bits), None)
            read = [entry for entry in pending.bits if entry < self._read]  # what was not read comes anyhow
            self._replay.add(entry for entry in read if not any(entry in one.pending for one in self.consumers))
            self.poke()
        elif self.active is not None:
            self._read = self.cursor.mark + 1
            self.poke()

    def relieve(self, consumer: Consumer, messages: int) -> None:
        """So many are not unacknowledged any more; at half the limit everybody goes on."""
        consumer.unacked -= messages
        self.unacked -= messages
        if self.blocked and self.unacked < self.limit / 2:
            self.blocked = False
            self.poke()

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
        elif self.active is not None and self._switching is None:
            for entry in self._unread(self.active):
                self._send(self.active, entry)
        if self.topic.ends and not self.backlog:
            self._end()

    def _end(self) -> None:
        """Everything is acknowledged, and nothing will come."""
        for consumer in list(self.consumers):
            if self.topic.migrated is not None:
                send_consumer(consumer)
            else:
                consumer.reach_end()

    def _unread(self, consumer: Consumer) -> Iterator[int]:
        """Entries in order, as long as this consumer can take them."""
        view = self.topic.compacted if consumer.read_compacted else None
        while consumer.ready and self._read < self.topic.readable:
            entry = self._read
            self._read += 1
            left_out = view is not None and view.leaves_out(entry)
            if not left_out and not self._is_done(entry):
                yield entry

    def _is_done(self, entry: int) -> bool:
        """Acknowledged, or nobody's to see; what nobody sees is done with."""
        if entry in self.topic.hidden:
            self.cursor.ack(entry)
        return self.cursor.acked(entry) or (bool(self.pending_acks) and not self._bits(entry))

    def _bits(self, entry: int) -> int:
        """The messages of an entry that are neither acknowledged nor about to be by a transaction."""
        bits = self.cursor.remaining(entry, self.topic.messages(entry))
        return bits & ~self.pending_acks.held(entry) if self.pending_acks else bits

    def _next(self) -> int | None:
        """Shared: what comes again first, then what is new."""
        while (entry := self._replay.pop()) is not None:
            if not self._is_done(entry):
                return entry
        while self._read < self.topic.readable:
            self._read += 1
            if not self._is_done(self._read - 1) and not self._is_early(self._read - 1):
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
        held: list[int] = []
        while not self.blocked:
            consumer = self.next_ready()
            if consumer is None or not self._give_turn(consumer, held):
                break
        self._replay.add(held)

    def next_ready(self) -> Consumer | None:
        """Shared: whose turn it is, of the highest priority that can take something."""
        ready = [consumer for consumer in self.consumers if consumer.ready]
        if not ready:
            return None
        level = min(consumer.priority for consumer in ready)
        ready = [consumer for consumer in ready if consumer.priority == level]
        self._turn += 1
        return ready[self._turn % len(ready)]

    def _give_turn(self, consumer: Consumer, held: list[int]) -> bool:
        """One consumer's share; False: there is nothing more."""
        for _ in range(ROUND_ROBIN):
            if not consumer.ready or self.blocked:
                break
            entry = self._next()
            if entry is None:
                return False
            chosen = self._of_chunks(entry, consumer)
            if chosen.ready:
                self._send(chosen, entry)
            else:
                held.append(entry)
        return True

    def _of_chunks(self, entry: int, consumer: Consumer) -> Consumer:
        """All parts of a chunked message go to one consumer, as long as it is here."""
        chunk = self.topic.chunks.get(entry)
        if chunk is None:
            return consumer
        uuid, is_last = chunk
        owner = self._chunks.get(uuid)
        if owner is None or owner not in self.consumers:
            owner = self._chunks[uuid] = consumer
        if is_last and owner.ready:
            del self._chunks[uuid]
        return owner

    def _dispatch_by_key(self) -> None:
        """A key belongs to one consumer; while another still has entries of it, or it has no permits, it waits."""
        assert self.selector is not None or not self.consumers
        holders: dict[int, Consumer] = {}
        if not self.out_of_order:
            holders = {self._key_hash(entry): owner for owner in self.consumers for entry in sorted(owner.pending)}
        waiting: set[int] = set()
        held: list[int] = []
        while not self.blocked and any(consumer.ready for consumer in self.consumers):
            entry = self._next()
            if entry is None:
                break
            key = self._key_hash(entry)
            owner = self.selector.owner(key) if self.selector is not None else None
            if key in waiting or owner is None or not owner.ready or holders.get(key, owner) is not owner:
                waiting.add(key)
                held.append(entry)
            else:
                self._send(owner, entry)
                if not self.out_of_order:
                    holders[key] = owner
        self._replay.add(held)

    def _key_hash(self, entry: int) -> int:
        """Of the entry's ordering key, else its key, else of the message itself."""
        known = self._hashes.get(entry)
        if known is None:
            impl = self.consumers[0].session.impl
            known = self._hashes[entry] = self.slot_of(
                impl.pulsar.Entry.from_stored(self.topic.log.record(entry)), impl
            )
        return known

    def slot_of(self, stored: Any, impl: Any) -> int:
        """The key's slot, as the selector counts."""
        assert self.selector is not None
        key = stored.ordering_key or _key(stored.partition_key or "", stored.key_b64)
        return self.selector.slot(
            impl.digest.murmur3_32(key or f"{stored.producer_name}-{stored.sequence_id}".encode())
        )

    def _send(self, consumer: Consumer, entry: int) -> None:
        """The stored bytes as they are; charged by the messages that are not acknowledged."""
        topic, cursor = self.topic, self.cursor
        bits = self._bits(entry)
        consumer.charge(entry, bits.bit_count())
        self.messages_out += bits.bit_count()
        if self.shared:
            self.unacked += bits.bit_count()
            self.blocked = self.blocked or bool(self.limit and self.unacked >= self.limit)
        view = topic.compacted if consumer.read_compacted else None
        stored = topic.log.record(entry) if view is None else view.record(entry, topic.log)
        alone = len(stored) >= APART
        frame: bytes = consumer.session.impl.pulsar.encode_message(
            consumer.consumer_id,
            topic.ledger,
            entry,
            stored,
            partition=topic.partition,
            redelivery_count=self._redeliveries.get(entry, 0),
            ack_set=words_of(bits) if cursor.partly(entry) or self.pending_acks.held(entry) else None,
            consumer_epoch=None if self.shared else consumer.epoch,
            head_only=alone,
        )
        consumer.session.write(frame)
        if alone:
            consumer.session.write(stored)


def _key(text: str, as_base64: bool) -> bytes:
    """A key's bytes; one that says to be base64 and is not counts as it stands."""
    try:
        return b64decode(text, validate=True) if as_base64 else text.encode()
    except ValueError:
        return text.encode()
