"""Owns one member of a consumer group: its subscriptions, its queues, how far they are; both consumers use it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mqclient.core.driver import Now
from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, gather, run_steps
from mqclient.errors import ClosedError, ConfigError, MQError
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import MODELS, RETRY_PREFIX, MessageQueue, check_group, check_topic
from mqclient.rocketmq.remoting import describe, requests
from mqclient.rocketmq.remoting.assign import Assignment
from mqclient.rocketmq.remoting.client import ClientEngine
from mqclient.rocketmq.remoting.identity import ClashWatch
from mqclient.rocketmq.remoting.joining import check_filter_steps, route_steps
from mqclient.rocketmq.remoting.locks import QueueLocks
from mqclient.rocketmq.remoting.member_options import FROM, MemberOptions, start_ms
from mqclient.rocketmq.remoting.offset_file import OffsetFile
from mqclient.rocketmq.remoting.offsets import LocalOffsets, RemoteOffsets
from mqclient.rocketmq.remoting.process_queue import ProcessQueue
from mqclient.rocketmq.remoting.pull import Folds, PullLoop
from mqclient.rocketmq.remoting.rebalance import Rebalance
from mqclient.rocketmq.remoting.relayed import Absorber
from mqclient.rocketmq.remoting.subscription import Subscription, Subscriptions

LOG = logging.getLogger("mqclient.remoting")


class Member:
    """Joins a group, owns the queues that the rule gives it, and hands what is pulled to `taker`."""

    def __init__(
        self,
        client: ClientEngine,
        group: str,
        topics: Mapping[str, str],
        options: MemberOptions,
        taker: Any,
        *,
        orderly: bool = False,
    ) -> None:
        check_group(group)
        if options.model not in MODELS:
            raise ConfigError(f"model={options.model!r}: {' or '.join(map(repr, MODELS))}")
        self.start_ms = start_ms(options.start)
        self.client = client
        self.group = group
        self.options = options
        self.broadcasting = options.model == "broadcasting"
        self.orderly = orderly
        self.locks = QueueLocks(client, group, self._lock_lost) if orderly and not self.broadcasting else None
        """An orderly clustering member works on what it has locked, and on nothing else."""
        self.pull_batch = options.pull_batch
        self.closed = False
        self.abandoned = False
        self.queues: dict[MessageQueue, ProcessQueue] = {}
        self._leaving: dict[MessageQueue, Slot[None]] = {}
        """Locked queues that we gave up while a handler was at work on them."""
        self.subscriptions = Subscriptions(client.impl.digest.java_string_hash)
        for topic, expression in topics.items():
            check_topic(topic)
            self.subscriptions.subscribe(topic, expression, client.driver.now.wall_ms)
        if options.retries and not self.broadcasting:
            self.subscriptions.subscribe(RETRY_PREFIX + group, "*", client.driver.now.wall_ms)
        self.offsets: Any = self._offsets()
        self.folds = Folds(client)
        self.not_latest = 0
        """How often a broker answered 25: story 1 says never."""
        self.corrected = 0
        self.absorber = Absorber(client)
        self.rebalance = Rebalance(self, Assignment(client.impl.allocation, options.rule, options.rule_options))
        self.taker = taker
        self._clashes = ClashWatch(client, self._warn_clash)
        self._started_ms = client.driver.now.wall_ms
        self.on_assignment: Callable[[list[MessageQueue]], None] = lambda queues: None

    def _offsets(self) -> RemoteOffsets | LocalOffsets:
        client = self.client
        if not self.broadcasting:
            return RemoteOffsets(client, self.group, strict=self.start_ms is not None)
        options = client.options
        group = self.group if client.names is None else client.names.wrap(self.group)  # as Java's folder is called
        return LocalOffsets(
            client, self.group, OffsetFile(options.offset_dir, client.identity.host, group, options.instance)
        )

    # ---- life

    def start_steps(self) -> Steps[None]:
        """Sequence: routes, offsets, join, tell every broker, then take what is ours."""
        client = self.client
        if self.group in client.consumers:
            raise ConfigError(f"group {self.group!r} has a consumer in this client already: make another client")
        client.consumers[self.group] = self
        try:
            yield from self.offsets.load_steps()
            for topic in self.subscriptions.topics():
                yield from route_steps(self, topic)
                yield from check_filter_steps(self, topic)
            yield client.heartbeats.beat_all()
            yield self.rebalance.poke()
        except BaseException:
            client.consumers.pop(self.group, None)
            raise
        client.timers.after(client.options.persist_interval, self._persist)

    def close_steps(self) -> Steps[None]:
        """Sequence: no more pulls, offsets told, the brokers told that we go.

        Race: a lock that was asked for may be granted after the others were given up, and would keep its queue from
        everybody for a minute. So the round that asked ends first.
        """
        if self.closed:
            return
        self.closed = True
        self.rebalance.close()
        yield self.client.timers.within(self.rebalance.idle, self.client.options.request_timeout)
        yield gather(list(self._leaving.values()))
        held = list(self.queues.values())
        for process_queue in held:
            process_queue.drop()
        self.queues.clear()
        yield from self.settled_steps(held)
        yield from self.offsets.close_steps()
        if self.locks is not None:
            yield from self.locks.close_steps()
        farewells = []
        for name, address in self.client.routes.masters().items():
            fields = requests.unregister(self.client.client_id, consumer=self.group, broker=name)
            farewells.append(self.client.ask(address, Request.UNREGISTER_CLIENT, fields))
        yield gather(farewells)
        self.client.consumers.pop(self.group, None)

    def abandon(self) -> None:
        """In a forked child: what we hold is the parent's, and nobody is told."""
        self.closed = self.abandoned = True
        self.rebalance.close()
        for process_queue in list(self.queues.values()):
            process_queue.drop()
        self.queues.clear()
        if self.locks is not None:
            self.locks.abandon()
        self.offsets.abandon()

    def check_open(self) -> None:
        if self.closed or self.client.closed:
            whose = "belongs to the parent process: make another one in this one" if self.abandoned else "is closed"
            raise ClosedError(f"the consumer of group {self.group!r} {whose}")

    def ready(self) -> bool:
        """Whether every queue of ours can be pulled just now: its broker is there and knows what we subscribe to."""
        links, routes = self.client.links, self.client.routes
        for queue, held in self.queues.items():
            address = routes.address(queue.broker_name) or ""
            if address not in links or links[address].state != "open":
                return False
            if self.subscriptions.usable(address, queue.topic) < held.version:
                return False
        return not self.closed and self.rebalance.rounds > 0

    def _persist(self, now: Now) -> None:
        if not self.closed:
            self.client.timers.after(self.client.options.persist_interval, self._persist)
            self.offsets.flush()

    # ---- told by the client

    def heartbeat_entry(self) -> dict[str, Any]:
        where = FROM.get(self.options.start, "") if isinstance(self.options.start, str) else ""
        return {
            "consumeFromWhere": where or "CONSUME_FROM_TIMESTAMP",
            "consumeType": self.options.consume_type,
            "groupName": self.group,
            "messageModel": self.options.model.upper(),
            "subscriptionDataSet": self.subscriptions.data(),
            "unitMode": False,
        }

    def inline(self, topic: str) -> Subscription | None:
        """The subscription that pulls bring themselves; None: brokers know it by heartbeats."""
        return None

    def on_route(self, topic: str) -> None:
        if topic in self.subscriptions and not self.closed:
            self.rebalance.poke()

    def is_retry(self, topic: str) -> bool:
        return topic.startswith(RETRY_PREFIX)

    # ---- queues that come and go

    def grant(self, queue: MessageQueue, offset: int, version: int) -> None:
        """The queue is ours from this offset on, in a new epoch."""
        outstanding = self.client.impl.permits.Outstanding()
        process_queue = ProcessQueue(queue, offset, version, outstanding, self.options.limits, self.client.cache)
        self.queues[queue] = process_queue
        self.taker.on_granted(process_queue)
        LOG.info("consumer:%s add a new queue %s, nextOffset %d", self.group, queue, offset)
        PullLoop(self, process_queue).start()

    def admit_steps(self, queues: list[MessageQueue]) -> Steps[set[MessageQueue]]:
        """Which of these we may begin with: an orderly member with those whose lock it got."""
        if self.locks is None:
            return set(queues)
        free = [queue for queue in queues if queue not in self._leaving]
        return (yield from self.locks.lock_steps(free)) if free else set()

    def dismiss_steps(self, queue: MessageQueue) -> Steps[None]:
        """A queue that was admitted could not be begun with."""
        if self.locks is not None:
            yield from self.locks.unlock_steps([queue])

    def revoke(self, process_queue: ProcessQueue) -> None:
        """The queue is not ours any more: what came of it so far is told, later results are dropped.

        An orderly one is given up when its handler has ended, so that two members never work on it.
        """
        queue = process_queue.queue
        self.queues.pop(queue, None)
        if self.locks is None:
            self._let_go(process_queue)
            return
        process_queue.pause()
        self._leaving[queue] = run_steps(self._hand_over_steps(process_queue))
        self._leaving[queue].then(lambda slot: self._left(queue, slot))

    def _left(self, queue: MessageQueue, slot: Slot[None]) -> None:
        self._leaving.pop(queue, None)
        if slot.error is not None:
            LOG.error("consumer:%s could not hand over %s: %s", self.group, queue, slot.error, exc_info=slot.error)

    def _let_go(self, process_queue: ProcessQueue) -> None:
        process_queue.drop()
        self.taker.on_revoked(process_queue)
        self.offsets.persist(process_queue.queue)
        self.offsets.forget(process_queue.queue)
        LOG.info("consumer:%s gave up the queue %s", self.group, process_queue.queue)

    def _hand_over_steps(self, process_queue: ProcessQueue) -> Steps[None]:
        """Sequence: the handler ends, the broker knows how far we are, and only then somebody else may lock it."""
        assert self.locks is not None
        yield self.taker.quiet(process_queue)
        yield from self.settled_steps([process_queue])
        yield from self.offsets.flush_steps()
        self._let_go(process_queue)
        yield from self.locks.unlock_steps([process_queue.queue])

    def settled_steps(self, process_queues: Iterable[ProcessQueue]) -> Steps[None]:
        """No pull under way tells of these queues any more: what is told next is the broker's last word."""
        telling = [queue.telling for queue in process_queues if queue.telling is not None]
        yield self.client.timers.within(gather(telling), self.client.options.request_timeout)

    def _lock_lost(self, queue: MessageQueue) -> None:
        """Somebody else has it: the next round takes it from us, or locks it again and asks where to go on."""
        process_queue = self.queues.pop(queue, None)
        if process_queue is not None:
            self.offsets.forget(queue)
            process_queue.drop()
            self.taker.on_revoked(process_queue)
            self.rebalance.soon()

    def restart(self, process_queue: ProcessQueue, offset: int) -> None:
        """The same queue from another offset: the old epoch's messages and results count no more."""
        process_queue.drop()
        self.taker.on_revoked(process_queue)
        self.offsets.put(process_queue.queue, offset)
        self.offsets.persist(process_queue.queue)
        self.grant(process_queue.queue, offset, process_queue.version)

    def correct(self, process_queue: ProcessQueue, offset: int) -> None:
        """The broker says that the offset is illegal: go on where it says, in this very round (story 3)."""
        self.corrected += 1
        LOG.warning(
            "consumer:%s the pull request offset illegal, %s has no offset %d: goes on at %d",
            self.group,
            process_queue.queue,
            process_queue.next_offset,
            offset,
        )
        self.restart(process_queue, offset)

    def gives_up(self, process_queue: ProcessQueue, error: MQError) -> bool:
        """Whether a pull that failed ends it all: a group goes on, as long as it takes."""
        return False

    def on_batch(self, process_queue: ProcessQueue, batch: Any) -> None:
        self.taker.on_batch(process_queue, batch)

    def on_nothing(self, process_queue: ProcessQueue) -> None:
        """The queue has nothing new for us up to its next offset."""
        self.taker.on_nothing(process_queue)

    def on_assigned(self, topic: str) -> None:
        self.on_assignment(sorted(queue for queue in self.queues if queue.topic == topic))

    # ---- who else is there

    def suspect(self, address: str) -> None:
        """The list of members holds our id twice."""
        if self._clashes.suspects(self.group):
            run_steps(self._clashes.look_steps(self.group, address)).then(self._looked)

    def _looked(self, slot: Slot[None]) -> None:
        if slot.error is not None and not self.closed:
            LOG.info("consumer:%s could not look for an equal client id: %s", self.group, slot.error)

    def _warn_clash(self, group: str, client_id: str, own: str, others: list[str]) -> None:
        LOG.warning(
            "consumer:%s another client has our id %s: ours is at %s, the other at %s. Both get the same queues, "
            "other queues pile up. Cure: leave client_id out, or give each its own.",
            group,
            client_id,
            own,
            ", ".join(others),
        )

    # ---- explain yourself

    @property
    def equal_id_seen(self) -> bool:
        """Whether another client with our id was found (story 2)."""
        return self.group in self._clashes.warned

    def running_info(self) -> dict[str, Any]:
        """What 307 answers."""
        return describe.running_info(self, self._started_ms)

    def diagnose(self) -> dict[str, Any]:
        """The state of this member, for people."""
        return describe.diagnose(self)
