"""Owns one member of a consumer group: its subscriptions, its queues, how far they are; both consumers use it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from mqclient.core.driver import Now
from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, gather, run_steps
from mqclient.errors import ClosedError, ConfigError, MQError
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import MODELS, RETRY_PREFIX, MessageQueue, check_group, check_topic
from mqclient.rocketmq.remoting import requests
from mqclient.rocketmq.remoting.assign import Assignment, Rule
from mqclient.rocketmq.remoting.client import ClientEngine, check_options
from mqclient.rocketmq.remoting.identity import ClashWatch
from mqclient.rocketmq.remoting.offset_file import OffsetFile
from mqclient.rocketmq.remoting.offsets import LocalOffsets, RemoteOffsets
from mqclient.rocketmq.remoting.process_queue import Limits, ProcessQueue
from mqclient.rocketmq.remoting.pull import Folds, PullLoop
from mqclient.rocketmq.remoting.rebalance import Rebalance
from mqclient.rocketmq.remoting.subscription import Subscriptions

LOG = logging.getLogger("mqclient.remoting")

Start = str | int | float | datetime
FROM: Final = {"first": "CONSUME_FROM_FIRST_OFFSET", "last": "CONSUME_FROM_LAST_OFFSET"}


@dataclass(frozen=True, slots=True)
class MemberOptions:
    """How a member consumes; the defaults are the protocol's."""

    model: str = "clustering"
    start: Start = "last"
    rule: Rule = "averagely"
    rule_options: Mapping[str, Any] = field(default_factory=dict)
    pull_batch: int = 32
    limits: Limits = field(default_factory=Limits)
    consume_type: str = "CONSUME_PASSIVELY"
    retries: bool = True
    """Whether the group's retry topic is consumed, too (never when broadcasting)."""


class Member:
    """Joins a group, owns the queues that the rule gives it, and hands what is pulled to `taker`."""

    def __init__(
        self, client: ClientEngine, group: str, topics: Mapping[str, str], options: MemberOptions, taker: Any
    ) -> None:
        check_group(group)
        if options.model not in MODELS:
            raise ConfigError(f"model={options.model!r}: {' or '.join(map(repr, MODELS))}")
        self.start_ms = start_ms(options.start)
        self.client = client
        self.group = group
        self.options = options
        self.broadcasting = options.model == "broadcasting"
        self.pull_batch = options.pull_batch
        self.closed = False
        self.abandoned = False
        self.queues: dict[MessageQueue, ProcessQueue] = {}
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
        self.rebalance = Rebalance(self, Assignment(client.impl.allocation, options.rule, options.rule_options))
        self.taker = taker
        self._clashes = ClashWatch(client, self._warn_clash)
        self._started_ms = client.driver.now.wall_ms
        self.on_assignment: Callable[[list[MessageQueue]], None] = lambda queues: None

    def _offsets(self) -> RemoteOffsets | LocalOffsets:
        client = self.client
        if not self.broadcasting:
            return RemoteOffsets(client, self.group)
        return LocalOffsets(client, self.group, OffsetFile(client.options.offset_dir, client.identity.host, self.group))

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
                yield from self._route_steps(topic)
            yield client.heartbeats.beat_all()
            yield self.rebalance.poke()
        except BaseException:
            client.consumers.pop(self.group, None)
            raise
        client.timers.after(client.options.persist_interval, self._persist)

    def _route_steps(self, topic: str) -> Steps[None]:
        try:
            yield self.client.routes.fetch(topic)
        except MQError as error:
            # A topic may come to be with the first message; a name server that is not there is told to the caller.
            if error.code is None:
                raise
            if not self.is_retry(topic):
                LOG.warning("consumer:%s subscribed to %s, which is not there yet: %s", self.group, topic, error)

    def close_steps(self) -> Steps[None]:
        """Sequence: no more pulls, offsets told, the brokers told that we go."""
        if self.closed:
            return
        self.closed = True
        self.rebalance.close()
        for process_queue in list(self.queues.values()):
            process_queue.drop()
        self.queues.clear()
        yield from self.offsets.close_steps()
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
        self.offsets.abandon()

    def check_open(self) -> None:
        if self.closed or self.client.closed:
            whose = "belongs to the parent process: make another one in this one" if self.abandoned else "is closed"
            raise ClosedError(f"the consumer of group {self.group!r} {whose}")

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

    def inline(self, topic: str) -> str | None:
        """The expression that pulls bring themselves; None: brokers know it by heartbeats."""
        return None

    def on_route(self, topic: str) -> None:
        if topic in self.subscriptions and not self.closed:
            self.rebalance.poke()

    def is_retry(self, topic: str) -> bool:
        return topic.startswith(RETRY_PREFIX)

    # ---- queues that come and go

    def start_offset_steps(self, queue: MessageQueue) -> Steps[int]:
        """Where to begin with a queue: what is stored, else what `start` says."""
        stored = yield from self.offsets.read_steps(queue)
        if stored is not None and stored >= 0:
            return int(stored)
        code, fields = Request.GET_MAX_OFFSET, requests.queue_fields(queue)
        if self.options.start == "first" or (self.is_retry(queue.topic) and self.options.start == "last"):
            code = Request.GET_MIN_OFFSET
        elif self.start_ms is not None and not self.is_retry(queue.topic):
            code, fields = Request.SEARCH_OFFSET_BY_TIMESTAMP, requests.search_offset(queue, self.start_ms)
        address = self.client.broker_address(queue.broker_name)
        frame = yield from self.client.ask_steps(address, code, fields)
        return max(0, int(frame.field("offset", "0")))

    def grant(self, queue: MessageQueue, offset: int, version: int) -> None:
        """The queue is ours from this offset on, in a new epoch."""
        outstanding = self.client.impl.permits.Outstanding()
        process_queue = ProcessQueue(queue, offset, version, outstanding, self.options.limits)
        self.queues[queue] = process_queue
        self.taker.on_granted(process_queue)
        LOG.info("consumer:%s add a new queue %s, nextOffset %d", self.group, queue, offset)
        PullLoop(self, process_queue).start()

    def revoke(self, process_queue: ProcessQueue) -> None:
        """The queue is not ours any more: what came of it so far is told, later results are dropped."""
        self.queues.pop(process_queue.queue, None)
        process_queue.drop()
        self.taker.on_revoked(process_queue)
        self.offsets.persist(process_queue.queue)
        self.offsets.forget(process_queue.queue)
        LOG.info("consumer:%s gave up the queue %s", self.group, process_queue.queue)

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

    def running_info(self) -> dict[str, Any]:
        """What 307 answers."""
        return {
            "mqPopTable": {},
            "mqTable": {queue: self._queue_info(queue, held) for queue, held in self.queues.items()},
            "properties": {
                "PROP_CLIENT_VERSION": "mqclient",
                "PROP_CONSUMEORDERLY": "false",
                "PROP_CONSUMER_START_TIMESTAMP": str(self._started_ms),
                "PROP_CONSUME_TYPE": self.options.consume_type,
                "PROP_NAMESERVER_ADDR": f"{self.client.name_servers};",
                "PROP_THREADPOOL_CORE_SIZE": "0",
            },
            "statusTable": {},
            "subscriptionSet": self.subscriptions.data(),
            "userConsumerInfo": {},
        }

    def _queue_info(self, queue: MessageQueue, held: ProcessQueue) -> dict[str, Any]:
        outstanding = held.outstanding
        return {
            "cachedMsgCount": outstanding.count,
            "cachedMsgMaxOffset": outstanding.highest_seen if outstanding.count else 0,
            "cachedMsgMinOffset": max(0, outstanding.lowest),
            "cachedMsgSizeInMiB": outstanding.bytes >> 20,
            "commitOffset": self.offsets.memory.get(queue, held.started_at),
            "droped": held.dropped,
            "lastConsumeTimestamp": 0,
            "lastLockTimestamp": 0,
            "lastPullTimestamp": 0,
            "locked": False,
            "transactionMsgCount": 0,
            "transactionMsgMaxOffset": 0,
            "transactionMsgMinOffset": 0,
            "tryUnlockTimes": 0,
        }

    def diagnose(self) -> dict[str, Any]:
        """The state of this member, for people."""
        return {
            "group": self.group,
            "model": self.options.model,
            "client_id": self.client.client_id,
            "equal_id_seen": self.group in self._clashes.warned,
            "code_25": self.not_latest,
            "offsets_corrected": self.corrected,
            "rebalances": self.rebalance.rounds,
            "subscriptions": self.subscriptions.versions(),
            "queues": {
                queue: {
                    "next_offset": held.next_offset,
                    "committed": self.offsets.memory.get(queue),
                    "cached": held.outstanding.count,
                    "cached_bytes": held.outstanding.bytes,
                }
                for queue, held in sorted(self.queues.items())
            },
        }


def member_options(options: Mapping[str, Any]) -> MemberOptions:
    """A face's keyword options; an unknown one names the nearest."""
    check_options(options, MemberOptions.__slots__)
    return MemberOptions(**options)


def topics_of(topics: str | Mapping[str, str] | Iterable[str]) -> dict[str, str]:
    """Topic to expression, from a name, names, or names with expressions."""
    if isinstance(topics, str):
        return {topics: "*"}
    found = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, "*")
    if not found:
        raise ConfigError("a consumer needs a topic")
    return found


def start_ms(start: Start) -> int | None:
    """The time that `start` names, None for "first" and "last"; ConfigError for anything else."""
    if isinstance(start, datetime):
        return int(start.timestamp() * 1000)
    if isinstance(start, (int, float)):
        return int(start)
    if start not in FROM:
        raise ConfigError(f"start={start!r}: 'first', 'last', a datetime or milliseconds since 1970")
    return None
