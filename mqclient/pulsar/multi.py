"""Owns a consumer of many topics or partitions: its children, the one mailbox that they fill, and how they grow."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from mqclient.core.driver import Now
from mqclient.core.mailbox import Mailbox
from mqclient.core.slot import Slot, completed
from mqclient.core.steps import Steps, gather, run_steps
from mqclient.core.timers import Timer
from mqclient.errors import ClosedError, ConfigError, MQError
from mqclient.pulsar.acks import listed
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.consumer import ConsumerEngine
from mqclient.pulsar.consumer_options import ConsumerOptions
from mqclient.pulsar.listening import GRACE, Listening
from mqclient.pulsar.names import TopicName
from mqclient.pulsar.patience import partitions_steps

if TYPE_CHECKING:
    from mqclient._native.pulsar import MessageId

log = logging.getLogger("mqclient.pulsar")


def topic_of(message: Any) -> str | None:
    """Where a message, or a batch of them, came from; None for an id, which does not say it."""
    entry: Any = getattr(message, "entry", None)
    if entry is None:
        listed([message])  # says what is needed
    return None if isinstance(entry, int) else entry.topic


def all_done_steps(slots: Sequence[Slot[Any]]) -> Steps[list[Any]]:
    """The values of all; the first error once all have ended."""
    ended = yield gather(list(slots))
    return [slot.result() for slot in ended]


class MultiAcks:
    """What `Acks` is to one topic: finds the child that a message came by. Used by faces, outside of entries."""

    __slots__ = ("_due", "_multi")

    def __init__(self, multi: MultiConsumer) -> None:
        self._multi = multi
        self._due: deque[tuple[ConsumerEngine, int]] = deque()

    def add(self, message: Any) -> int:
        return self._noted(child := self._multi.child_of(message), child.acks.add(message))

    def add_many(self, messages: Iterable[Any]) -> int:
        signal = 0
        for child, own in self._multi.by_child(messages):
            signal = max(signal, self._noted(child, child.acks.add_many(own)))
        return signal

    def due(self) -> None:
        """Inside an entry: arm and flush what asked for it."""
        while self._due:
            child, signal = self._due.popleft()
            child.acks_due(signal)

    def _noted(self, child: ConsumerEngine, signal: int) -> int:
        if signal:
            self._due.append((child, signal))
        return signal


class MultiConsumer:
    """One consumer to its user. Each child has its own account of permits and grants nothing until all are there.

    Messages lie in one mailbox and count, wherever they leave, for the child they came by. Together the children's
    windows stay within `total_receiver_queue`.
    """

    makes_topics = True

    def __init__(
        self, client: ClientEngine, topics: Sequence[TopicName], subscription: str, options: ConsumerOptions
    ) -> None:
        if not subscription:
            raise ConfigError("a subscription has a name")
        if options.receiver_queue == 0:
            raise ConfigError("receiver_queue=0 is for one topic without partitions: here it is at least 1")
        if not options.durable and not isinstance(options.start, str):
            raise ConfigError("many topics or partitions are read from 'earliest' or 'latest'; then seek({topic: id})")
        self.client = client
        self.subscription = subscription
        self.options = options
        self.children: dict[str, ConsumerEngine] = {}
        self.mailbox = Mailbox(
            client.driver,
            client.impl.handover.Mailbox,
            on_taken=lambda source, taken: source.consumer.intake.on_taken(source, taken),
            opener=lambda sealed, source: source.consumer.intake.open_sealed(sealed, source),
            on_wait=self._on_wait if options.queue_memory else None,
        )
        self.listening: Listening | None = None
        self.acks = MultiAcks(self)
        self._bases: dict[TopicName, int] = dict.fromkeys(topics, -1)
        """Of each topic how many partitions it is known to have: 0 none, -1 not asked yet."""
        self._paused = False
        self._closed: MQError | None = None
        self._timer: Timer | None = None

    # ---- asked by the face

    @property
    def topic(self) -> str:
        return ", ".join(map(str, self._bases))

    @property
    def ready(self) -> bool:
        return all(child.ready for child in self._children())

    def renew(self) -> None:
        """A child of the process would take messages from its parent: who wants that makes a consumer there."""

    @property
    def topics(self) -> list[str]:
        """What is consumed: partitions by their own names."""
        return list(self.children)

    def child_of(self, message: Any) -> ConsumerEngine:
        """The child that a message came by; of an id alone the partition must tell it."""
        topic = topic_of(message)
        if topic is not None:
            child = self.children.get(topic)
            if child is None:
                raise ConfigError(f"this consumer has no topic {topic} (any more)")
            return child
        fitting = [child for child in list(self.children.values()) if child.topic.partition == message.partition]
        if len(fitting) != 1:
            raise ConfigError("of an id alone it is not clear which of the topics is meant: give the message itself")
        return fitting[0]

    def by_child(self, messages: Iterable[Any]) -> Iterable[tuple[ConsumerEngine, list[Any]]]:
        for child, own in groupby(messages, self.child_of):
            yield child, list(own)

    def check_by_batch(self) -> None:
        if not self.options.by_batch:
            raise ConfigError("batches come from what was opened with by_batch=True")

    def acks_due(self, signal: int) -> None:
        self.acks.due()

    def ack_cumulative(self, message: Any) -> None:
        """Of the topic or partition that the message came by."""
        self.child_of(message).ack_cumulative(message)

    def ack_confirmed(self, messages: Iterable[Any]) -> Slot[Any]:
        return run_steps(all_done_steps([child.ack_confirmed(own) for child, own in self.by_child(messages)]))

    def nack(self, messages: Iterable[Any]) -> None:
        for child, own in self.by_child(messages):
            child.nack(own)

    def retry_steps(self, message: Any, delay: float, properties: Mapping[str, str]) -> Steps[None]:
        yield run_steps(self.child_of(message).retry_steps(message, delay, properties))

    def redeliver(self) -> None:
        for child in self._children():
            child.redeliver()

    def pause(self) -> None:
        self._paused = True
        if self.listening is not None:
            self.listening.pause()
        for child in self._children():
            child.pause()

    def resume(self) -> None:
        self._paused = False
        for child in self._children():
            child.resume()
        if self.listening is not None:
            self.listening.resume()

    def seek_steps(self, to: Any) -> Steps[None]:
        """A time, "earliest" or "latest" moves every child; an id of a partition that one; a mapping those in it."""
        yield run_steps(all_done_steps([run_steps(child.seek_steps(at)) for child, at in self._targets(to)]))

    def last_message_id_steps(self) -> Steps[MessageId | None]:
        yield completed(None)
        raise ConfigError("each of the topics ends somewhere else: ask for last_message_ids()")

    def last_message_ids_steps(self) -> Steps[dict[str, MessageId | None]]:
        found: dict[str, MessageId | None] = yield run_steps(self._of_each_steps(ConsumerEngine.last_message_id_steps))
        return found

    def stats_steps(self) -> Steps[dict[str, Any]]:
        """What the broker says about each child, by its topic."""
        shown: dict[str, Any] = yield run_steps(self._of_each_steps(ConsumerEngine.stats_steps))
        return shown

    def unsubscribe_steps(self, force: bool) -> Steps[None]:
        """The subscription is deleted from every topic, and this consumer closed."""
        self._stop_timer()
        children = self._children()
        yield run_steps(all_done_steps([run_steps(child.unsubscribe_steps(force)) for child in children]))
        self.abandon(ClosedError(f"unsubscribed from {self.topic}"))

    def close_steps(self) -> Steps[None]:
        if self._closed is not None:
            return
        self._stop_timer()
        if self.listening is not None:
            yield run_steps(self.listening.stop_steps(GRACE))
        yield gather([run_steps(child.close_steps()) for child in self._children()])
        self.abandon(ClosedError(f"the consumer of {self.topic} is closed"))

    def abandon(self, error: MQError) -> None:
        if self._closed is not None:
            return
        self._closed = error
        self._stop_timer()
        for child in self._children():
            child.abandon(error)
        self.mailbox.close(error)
        self.client.leave(self)

    def diagnose(self) -> dict[str, Any]:
        """The accounts summed up, and each child's own."""
        children = [child.diagnose() for child in self._children()]
        names = children[0]["permits"] if children else ()
        return {
            "topic": self.topic,
            "subscription": self.subscription,
            "type": self.options.type,
            "mailbox": len(self.mailbox),
            "permits": {name: sum(child["permits"][name] for child in children) for name in names},
            "children": children,
            **({} if self.listening is None else {"listener": self.listening.diagnose()}),
        }

    # ---- told by children

    def on_child_failed(self, child: ConsumerEngine, error: MQError) -> None:
        """A topic that the broker refuses for good ends the whole: nobody should miss its messages unknowingly."""
        self.children.pop(str(child.topic), None)
        if self._closed is None and not isinstance(error, ClosedError):
            self.abandon(error)

    # ---- opening and growing

    def open_steps(self, deadline: float) -> Steps[None]:
        self.client.join(self)
        new = yield run_steps(self._ask_steps(list(self._bases), deadline))
        yield run_steps(self._add_steps(new, self.options, deadline))
        self._arm()

    def grow_steps(self) -> Steps[None]:
        """Look for new partitions. What is in one is newer than our subscription, so none of it is left out."""
        limit = self.client.deadline()
        new = yield run_steps(self._ask_steps([base for base, count in self._bases.items() if count], limit))
        if new and self._closed is None:
            yield run_steps(self._add_steps(new, self._from_now_on(), limit))

    def _from_now_on(self) -> ConsumerOptions:
        return replace(self.options, start="earliest")

    def _ask_steps(self, bases: Sequence[TopicName], limit: float) -> Steps[dict[TopicName, range | None]]:
        """Of each topic the partitions that are new; None: it is new and has none."""
        client = self.client
        counts: list[int] = yield run_steps(
            all_done_steps([run_steps(partitions_steps(client, base, limit)) for base in bases])
        )
        found: dict[TopicName, range | None] = {}
        for base, count in zip(bases, counts, strict=True):
            known = self._bases.get(base, -1)
            if count > max(known, 0):
                found[base] = range(max(known, 0), count)
            elif known < 0 and count == 0:
                found[base] = None
        return found

    def _add_steps(self, new: Mapping[TopicName, range | None], options: ConsumerOptions, limit: float) -> Steps[None]:
        """All of them open before one of them may receive; if one cannot, none of them stays."""
        names = [base for base, parts in new.items() if parts is None]
        names += [base.partitioned(number) for base, parts in new.items() for number in parts or ()]
        names = [name for name in names if str(name) not in self.children]
        share = self._share(len(self.children) + len(names))
        memory = options.queue_memory and max(1, options.queue_memory // (len(self.children) + len(names)))
        options = replace(options, receiver_queue=share, queue_memory=memory)
        added = [ConsumerEngine(self.client, name, self.subscription, options, self) for name in names]
        ended = yield gather([child.open(limit) for child in added])
        errors = [slot.error for slot in ended if slot.error is not None]
        if errors or self._closed is not None:
            yield gather([run_steps(child.close_steps()) for child in added])
            raise errors[0] if errors else self._closed or ClosedError("closed meanwhile")
        for base, parts in new.items():
            self._bases[base] = 0 if parts is None else parts.stop
        self.children.update((str(child.topic), child) for child in added)
        self._share_out(self._share(len(self.children)))  # others may have been added meanwhile
        if not self._paused:
            for child in added:
                child.resume()

    def _share(self, count: int) -> int:
        return max(1, min(self.options.receiver_queue, self.options.total_receiver_queue // max(count, 1)))

    def _share_out(self, share: int) -> None:
        """Adaptive queues find their sizes by themselves, each within its own share."""
        for child in [] if self.options.queue_memory else self._children():
            child.resize(share)

    # ---- inside

    def _on_wait(self) -> None:
        for child in self._children():
            child.intake.on_wait()

    def _children(self) -> list[ConsumerEngine]:
        return list(self.children.values())

    def _of_each_steps(self, make: Any) -> Steps[dict[str, Any]]:
        children = self._children()
        values = yield run_steps(all_done_steps([run_steps(make(child)) for child in children]))
        return dict(zip([str(child.topic) for child in children], values, strict=True))

    def _targets(self, to: Any) -> list[tuple[ConsumerEngine, Any]]:
        if isinstance(to, Mapping):
            unknown = [topic for topic in to if topic not in self.children]
            if unknown:
                raise ConfigError(f"this consumer has no topic {', '.join(unknown)}; it has {', '.join(self.topics)}")
            return [(self.children[topic], at) for topic, at in to.items()]
        everywhere = isinstance(to, int | str) or to in (self._codec.EARLIEST, self._codec.LATEST)
        return [(child, to) for child in self._children()] if everywhere else [(self.child_of(to), to)]

    @property
    def _codec(self) -> Any:
        return self.client.impl.pulsar

    def _period(self) -> float:
        """Seconds between two looks for new partitions; 0: never."""
        return self.options.partition_refresh if any(count > 0 for count in self._bases.values()) else 0.0

    def _arm(self) -> None:
        if self._closed is None and self._timer is None and (period := self._period()):
            self._timer = self.client.timers.after(period, self._on_timer)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self, now: Now) -> None:
        run_steps(self.grow_steps()).then(self._on_looked)

    def _on_looked(self, slot: Slot[None]) -> None:
        self._timer = None
        if slot.error is not None and self._closed is None:
            log.warning("looking for new topics and partitions of %s: %s", self.subscription, slot.error)
        self._arm()
