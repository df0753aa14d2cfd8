"""Owns entries on their way to the user: charged first, then opened or left out, and told when they were taken."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from mqclient.core.mailbox import Mailbox
from mqclient.pulsar.adaptive import Adaptive
from mqclient.pulsar.chunks import Whole
from mqclient.pulsar.dead_letter import DeadLetters
from mqclient.pulsar.permits import Permits
from mqclient.pulsar.start import Start
from mqclient.pulsar.unpacking import unpacked

if TYPE_CHECKING:
    from mqclient.pulsar.consumer import ConsumerEngine

log = logging.getLogger("mqclient.pulsar")

FEW = 32
"""Entries taken whole that are told together at most: it is a sum over so many that says whether half a window is."""


class Intake:
    """An entry is charged before anything is decided about it. It leaves to the user (told per half window) or by
    `permits.release` with the reason; both name the epoch in which it came, so what belongs to an old one has no
    effect.

    `source` is the epoch's mark on everything that waits: a new subscription begins with a new one.
    """

    __slots__ = (
        "_adaptive",
        "_awaited",
        "_beyond",
        "_box",
        "_by_batch",
        "_codec",
        "_consumer",
        "_driver",
        "_durable",
        "_make",
        "_plain",
        "_reasons",
        "_repeats",
        "_sealed",
        "_text",
        "_watched",
        "mailbox",
        "permits",
        "source",
        "start",
    )

    def __init__(self, consumer: ConsumerEngine, permits: Permits, mailbox: Mailbox | None) -> None:
        options, impl = consumer.options, consumer.client.impl
        self._consumer = consumer
        self._driver = consumer.client.driver
        self._codec = impl.pulsar
        self._reasons = impl.permits
        self._make = impl.handover.Source
        self._text = str(consumer.topic)
        self._durable = options.durable
        self._by_batch = options.by_batch
        self._watched = consumer.unacked is not None or consumer.letters is not None
        self._sealed = options.by_batch or self._watched
        """Entries are opened on the side that takes."""
        self._repeats = False
        self._awaited = 0
        """The consumer epoch below which entries are old; 0: none are."""
        self._beyond: list[int] = []
        """Of each batch opened and not yet told: how many messages it holds beyond the one that the mailbox counts."""
        self.permits = permits
        self._adaptive = (
            Adaptive(permits, options.receiver_queue, options.queue_memory) if options.queue_memory else None
        )
        self._plain = not (self._sealed or self._adaptive or permits.zero_queue or consumer.values is not None)
        """Nothing here has to look at each entry by itself."""
        self.start = Start(self._codec, options)
        self.mailbox = self._own_mailbox() if mailbox is None else mailbox
        self._box: Any = self.mailbox.box
        self.source = self._make(consumer, 0, 0)

    # ---- told by the connection

    def on_entries(self, entries: list[Any]) -> None:
        """What came in a row: all that needs no decision goes to the mailbox at once, the rest one by one."""
        at = self._skip_old(entries) if self._awaited else 0
        while at < len(entries):
            if self._plain and not self._consumer.seeking.leaves(self.source.epoch) and not self._consumer.unsealer:
                at = self._take_plain(entries, at)
            if at < len(entries):
                self.on_entry(entries[at])
                at += 1

    def _skip_old(self, entries: list[Any]) -> int:
        """Entries that left before the broker heard that everything is to come again do so, too: the place of the
        first that is none."""
        epoch = self.source.epoch
        for at, entry in enumerate(entries):
            if entry.consumer_epoch is None or entry.consumer_epoch >= self._awaited:
                self._awaited = 0
                return at
            if self.permits.arrive(entry.charged, epoch):
                self.permits.release(entry.charged, self._reasons.SKIPPED, epoch)
        self.look_for_receivers()
        return len(entries)

    def _take_plain(self, entries: list[Any], at: int) -> int:
        """The plain entries from `at` on; the place of the first that is not."""
        source = self.source
        hidden = self.start.at
        ledger, until = (-1, -1) if hidden is None else (hidden.ledger, hidden.entry)
        messages, charged, at = self._codec.decode_run(entries, at, self._text, source.epoch, ledger, until)
        if charged and self.permits.arrive(charged, source.epoch):
            if self._repeats:
                covers = self._consumer.acks.covers
                messages = [one for one in messages if not covers(one.entry.ledger, one.entry.entry, one.batch_index)]
                self.permits.release(charged - len(messages), self._reasons.SKIPPED, source.epoch)
            if messages:
                self.mailbox.put_many(messages, source)
        return at

    def on_entry(self, entry: Any) -> None:
        source = self.source
        epoch = source.epoch
        if not self.permits.arrive(entry.charged, epoch):
            return
        if self._adaptive is not None:
            self._adapt(self._adaptive.on_entry(len(entry.payload), entry.charged))
        entry.topic = self._text
        entry.epoch = epoch
        values = self._consumer.values
        if self._consumer.seeking.leaves(epoch):
            self._consumer.seeking.skipped.append((entry.ledger, entry.entry))
            self.permits.release(entry.charged, self._reasons.SKIPPED, epoch)
        elif values is None or values.admit(entry, source):
            self.deliver(entry, source)
        self.look_for_receivers()

    def deliver(self, entry: Any, source: Any) -> None:
        """An entry that was charged, and whose schema is known; what is sealed is opened first, in its turn."""
        if entry.encrypted or self._consumer.unsealer:
            self._consumer.unsealer.take(entry, source)
        else:
            self.hand_over(entry, source)

    def hand_over(self, entry: Any, source: Any, payload: bytes | None = None) -> None:
        """To where its messages wait. `payload` stands in for one that was sealed."""
        letters = self._consumer.letters
        sealed: Any = entry if payload is None else Whole(entry, payload)
        if entry.chunk_id is not None and entry.corrupt is None:
            self._on_part(entry, source, entry.payload if payload is None else payload)
        elif letters is not None and entry.redelivery_count > letters.limit:
            self._bury(sealed, source.epoch, letters)
        elif self._sealed or sealed is not entry or (entry.compression and entry.corrupt is None):
            self.mailbox.put_sealed(sealed, entry.charged, source)
        else:
            batch = self._codec.decode_messages(entry)
            messages = self._wanted(entry, list(batch))
            self._settle(entry, source.epoch, batch, len(messages))
            if messages:
                self.mailbox.put_many(messages, source)

    # ---- told by what opens sealed entries

    def hand_over_raw(self, entry: Any, source: Any) -> None:
        """One message, as it is: nobody here can read it."""
        self.mailbox.put_sealed(entry, entry.charged, source)

    def leave_out(self, entry: Any, source: Any) -> None:
        self.permits.release(entry.charged, self._reasons.DISCARDED, source.epoch)

    def look_for_receivers(self) -> None:
        """Who waits at an empty queue of none asks again, if what was on its way to it was left out."""
        if self.permits.zero_queue:
            self.permits.receivers(self.mailbox.waiters)

    # ---- told by the mailbox

    def on_taken(self, source: Any, taken: int) -> None:
        """The user took that many since it was told last."""
        if self._by_batch:
            source.half = min(self.permits.half, FEW)
        self.permits.release(taken + self._told_beyond(), self._reasons.DELIVERED, source.epoch)
        if not self._durable and source is self.source and source.last is not None:
            acks = self._consumer.acks
            acks.add_cumulative(self.id_of(source.last))
            acks.flush()

    def open_sealed(self, sealed: Any, source: Any) -> list[Any]:
        """An entry that was left closed, opened on the side that takes; outside of any entry of the driver."""
        entry, batch = unpacked(self._codec, sealed)
        if self._by_batch:
            return self._whole(entry, source, batch)
        messages = self._wanted(entry, list(batch))
        if self._watched or len(messages) != entry.charged:
            with self._driver.enter():
                self._settle(entry, source.epoch, batch, len(messages))
                if self._watched and messages and source is self.source:
                    self._watch(entry, messages)
        return messages

    def on_wait(self) -> None:
        """A receive finds nothing and begins to wait."""
        if self._adaptive is not None:
            self._adapt(self._adaptive.on_wait())
        else:
            self.permits.receivers(self.mailbox.waiters)

    # ---- told by the consumer

    def begin(self, epoch: int) -> None:
        """A new subscription: nobody grants any more for what came by the old one."""
        old = self.source
        self._box.collect(old)
        self.mailbox.clear(old)
        if not self._durable and old.last is not None and not self._consumer.seeking.has_left(old):
            self.start.go_on_after(self.id_of(old.last))
        self._repeats = epoch > 1
        self._awaited = 0
        self._beyond.clear()
        self.renew(epoch)

    def renew(self, epoch: int) -> None:
        """What came so far is of the past."""
        half = self.permits.half
        self.source = self._make(self._consumer, epoch, min(half, FEW) if self._by_batch else half)

    def drop_waiting(self) -> None:
        """What was taken is told, what waits is dropped: both have their permits back."""
        source = self.source
        told = self._box.collect(source) + self._told_beyond()
        self.permits.release(told, self._reasons.DELIVERED, source.epoch)
        self.permits.release(self.mailbox.clear(source), self._reasons.DISCARDED, source.epoch)
        values = self._consumer.values
        if values is not None:
            self.permits.release(values.clear(), self._reasons.DISCARDED, source.epoch)
        self.permits.release(self._consumer.unsealer.clear(), self._reasons.DISCARDED, source.epoch)

    def expect_again(self, epoch: int = 0) -> None:
        """Entries come again of which a part may be acknowledged here already; not before those of this consumer
        epoch, if the broker tells them apart."""
        self._repeats = True
        self._awaited = epoch

    def take_all(self) -> None:
        """Whoever sends now may not have heard that everything was asked back."""
        self._awaited = 0

    def resize(self, window: int) -> None:
        self.permits.resize(window)
        if self._by_batch:
            self.source.half = min(self.source.half, self.permits.half)
        elif self.source.half:
            self.source.half = self.permits.half

    # ---- asked by the consumer

    @property
    def last_taken(self) -> Any:
        """The id of the message that the user took last since the subscription was opened; None: none yet."""
        return self.id_of(self.source.last)

    @property
    def untold(self) -> int:
        """Messages that the user took since it was told last."""
        untold: int = self.source.untold + sum(self._beyond)
        return untold

    @property
    def taken_in_part(self) -> tuple[int, int] | None:
        """The entry of which some messages are taken and others wait; None if there is none such."""
        last = self.source.last
        if last is None or last.batch_index < 0 or last.batch_index >= last.entry.num_messages - 1:
            return None
        return (last.entry.ledger, last.entry.entry) if self.source.waiting else None

    def id_of(self, taken: Any) -> Any:
        """Of a message; of a batch the id of its entry, which means all of it."""
        if taken is None or not self._by_batch:
            return None if taken is None else taken.message_id
        return self._codec.MessageId(taken.entry.ledger, taken.entry.entry, taken.entry.partition)

    # ---- inside

    def _own_mailbox(self) -> Mailbox:
        return Mailbox(
            self._driver,
            self._consumer.client.impl.handover.Mailbox,
            on_taken=self.on_taken,
            opener=self.open_sealed,
            on_wait=self.on_wait if self.permits.zero_queue or self._adaptive is not None else None,
        )

    def _on_part(self, entry: Any, source: Any, payload: Any) -> None:
        """Of a message in parts: with its last one it is whole and takes that part's permit along."""
        letters = self._consumer.letters
        whole = self._consumer.chunks.add(entry, payload)
        if whole is None:
            last = entry.chunk_id + 1 == entry.num_chunks
            reason = self._reasons.DISCARDED if last else self._reasons.CHUNK
            self.permits.release(entry.charged, reason, source.epoch)
        elif letters is not None and entry.redelivery_count > letters.limit:
            self._bury(whole, source.epoch, letters)
        else:
            self.mailbox.put_sealed(whole, entry.charged, source)

    def _watch(self, entry: Any, messages: list[Any]) -> None:
        consumer = self._consumer
        if consumer.unacked is not None:
            consumer.unacked.track(entry, messages)
        if consumer.letters is not None:
            consumer.letters.remember(entry, messages)

    def _bury(self, sealed: Any, epoch: int, letters: DeadLetters) -> None:
        """It came too often: nobody sees it here any more."""
        entry, batch = unpacked(self._codec, sealed)
        messages = self._wanted(entry, list(batch))
        self._settle(entry, epoch, batch, len(messages))
        self.permits.release(len(messages), self._reasons.DISCARDED, epoch)
        if messages:
            letters.bury((entry.ledger, entry.entry), messages)

    def _adapt(self, window: int | None) -> None:
        if window is not None:
            self.resize(window)

    def _whole(self, entry: Any, source: Any, batch: Any) -> list[Any]:
        """The batch itself, which the mailbox counts as one message: the others' permits follow it in `on_taken`.

        The mailbox is to tell when half a window of messages was taken. It counts entries, so its mark becomes 1 as
        soon as they are enough; `on_taken` alone raises it again, and tells of all that are here."""
        wanted = len(batch) if self.start.takes_whole(entry) else 0
        if wanted != entry.charged:
            with self._driver.enter():
                self._settle(entry, source.epoch, batch, wanted)
        if wanted:
            self._beyond.append(wanted - 1)
            if self.untold + 1 >= self.permits.half:
                source.half = 1
        return [batch] if wanted else []

    def _told_beyond(self) -> int:
        told = 0
        while self._beyond:  # popped, not swapped: another thread may be about to append
            told += self._beyond.pop()
        return told

    def _settle(self, entry: Any, epoch: int, batch: Any, wanted: int) -> None:
        """What of an entry does not go to the user leaves here; an entry that cannot be read is told so."""
        if batch.corrupt is not None:
            log.warning("%s: entry %d:%d cannot be read (%d)", self._text, entry.ledger, entry.entry, batch.corrupt)
            self._consumer.acks.refuse(entry, batch.corrupt)
        self.permits.release(batch.lost, self._reasons.DISCARDED, epoch)
        self.permits.release(entry.charged - batch.lost - wanted, self._reasons.SKIPPED, epoch)

    def _wanted(self, entry: Any, messages: list[Any]) -> list[Any]:
        """Without what lies before the start, and what was acknowledged here and comes again all the same."""
        if self.start.hides(entry):
            messages = self.start.after(entry, messages)
        if self._repeats:
            covers, ledger, number = self._consumer.acks.covers, entry.ledger, entry.entry
            messages = [message for message in messages if not covers(ledger, number, message.batch_index)]
        return messages
