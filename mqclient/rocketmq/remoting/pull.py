"""Owns the pulling of one queue: next offset, flow decision, long poll, and what is said when it fails."""

from __future__ import annotations

import logging
from typing import Any, Final

from mqclient.core.compress import decompressor
from mqclient.core.steps import Steps, run_steps
from mqclient.errors import DeadlineError, LinkError, MQError
from mqclient.rocketmq.codes import BrokerError, Request, Response
from mqclient.rocketmq.model import RETRY_PREFIX, MessageQueue
from mqclient.rocketmq.remoting import requests
from mqclient.rocketmq.remoting.process_queue import ProcessQueue

LOG = logging.getLogger("mqclient.remoting")

EXCEPTION_DELAY: Final = 1.0
FLOW_CONTROL_DELAY: Final = 0.02
SUSPEND_MS: Final = 15000
PULL_TIMEOUT: Final = 30.0
FOLD_SECONDS: Final = 60.0
COMPRESSION: Final = {1: "lz4-frame", 2: "zstd", 3: "zlib"}
"""The kinds of a message's sysFlag, and what `core.compress` calls them."""
DECOMPRESS: Final = decompressor(COMPRESSION)


class PullLoop:
    """One queue, one request at a time, until the queue is dropped.

    The loop belongs to one epoch of the queue: after every wait it looks at `dropped` before anything else.
    """

    def __init__(self, member: Any, process_queue: ProcessQueue) -> None:
        self._member = member
        self._client = member.client
        self._queue = process_queue.queue
        self._process_queue = process_queue

    def start(self) -> None:
        run_steps(self._steps()).then(self._ended)

    def _ended(self, slot: Any) -> None:
        if slot.error is not None and not self._member.closed:
            LOG.error("pulling %s ended: %s", _name(self._queue), slot.error, exc_info=slot.error)

    def _steps(self) -> Steps[None]:
        process_queue = self._process_queue
        while not process_queue.dropped:
            if process_queue.full():
                yield process_queue.wait_for_room()
                continue
            try:
                delay = yield from self._pull_steps()
            except MQError as error:
                if process_queue.dropped or self._member.closed:
                    return
                delay = self._failed(error)
            if delay:
                yield self._client.timers.sleep(delay)

    def _pull_steps(self) -> Steps[float]:
        """One request and its answer; how long to wait before the next."""
        process_queue, topic = self._process_queue, self._queue.topic
        address = self._client.routes.address(self._queue.broker_name, process_queue.suggested)
        if address is None:
            yield self._client.routes.fetch(topic)
            raise LinkError(f"the route of {topic} names no broker {self._queue.broker_name}")
        subscriptions = self._member.subscriptions
        while subscriptions.usable(address, topic) < process_queue.version:
            # Story 1: no pull may carry a version before this broker has acknowledged it, twice.
            answered = yield self._client.heartbeats.beat(address)
            if process_queue.dropped or topic not in subscriptions:
                return 0.0
            if not answered:
                raise LinkError(f"{address} has not acknowledged the subscription to {topic}")
        told = self._told()
        answer = self._request(address, subscriptions.usable(address, topic), told)
        process_queue.telling = answer if told else None
        frame = yield answer
        return 0.0 if process_queue.dropped else self._answered(frame, address)

    def _told(self) -> int:
        """How far we are, told along only by a pull that is answered at once: `Member.settled_steps` waits for that.

        Race: a broker with much to do may look at a pull after the offset that was told when the queue was given up,
        and what the pull tells is older. One that finds nothing is held for long, so nobody could wait for its answer.
        """
        process_queue = self._process_queue
        return self._member.offsets.told_by_pull(self._queue) if process_queue.end > process_queue.next_offset else 0

    def _request(self, address: str, version: int, told: int) -> Any:
        opaque = self._client.opaque()
        self._process_queue.last_pull_ms = self._client.driver.now.wall_ms
        frame = requests.pull(
            self._client.impl.remoting,
            opaque,
            self._member.group,
            self._queue,
            self._process_queue.next_offset,
            count=self._member.pull_batch,
            version=version,
            suspend_ms=SUSPEND_MS,
            commit_offset=told,
            subscription=self._member.inline(self._queue.topic),
            expression_type=self._member.subscriptions.kind(self._queue.topic),
        )
        return self._client.send(address, opaque, frame, Request.PULL_MESSAGE.name, timeout=PULL_TIMEOUT)

    def _answered(self, frame: Any, address: str) -> float:
        code, process_queue = frame.code, self._process_queue
        if code in (Response.SUCCESS, Response.PULL_NOT_FOUND, Response.PULL_RETRY_IMMEDIATELY):
            process_queue.end = int(frame.field("maxOffset", "-1"))
            process_queue.suggested = int(frame.field("suggestWhichBrokerId", "0"))
            process_queue.next_offset = int(frame.field("nextBeginOffset", str(process_queue.next_offset)))
            if code == Response.SUCCESS:
                self._found(frame)
            else:
                self._member.on_nothing(process_queue)
            return 0.0
        if code == Response.PULL_OFFSET_MOVED:
            offset = int(frame.field("nextBeginOffset", "0"))
            if frame.remark != "OFFSET_RESET" or not self._member.absorber.absorbs(self._queue, offset):
                self._member.correct(process_queue, offset)
            return 0.0
        if code == Response.FLOW_CONTROL:
            return FLOW_CONTROL_DELAY
        if code in (Response.SUBSCRIPTION_NOT_EXIST, Response.SUBSCRIPTION_NOT_LATEST):
            # Another member's heartbeat, or a restart, made the broker forget us: it learns anew before the next pull.
            self._member.subscriptions.forget(address)
        raise BrokerError(code, frame.remark or "", remote=address, request=Request.PULL_MESSAGE.name)

    def _found(self, frame: Any) -> None:
        subscription = self._member.subscriptions.get(self._queue.topic)
        if subscription is None:
            return
        batch = self._client.impl.remoting.decode_messages(
            frame.body, subscription.tags or None, decompress=DECOMPRESS, queue=self._queue, retry_topic=True
        )
        if len(batch):
            self._process_queue.put(batch)
            self._member.on_batch(self._process_queue, batch)
        else:
            self._member.on_nothing(self._process_queue)

    def _failed(self, error: MQError) -> float:
        """Say it as operators know it, once; the delay before the next try."""
        code = error.code
        if self._member.gives_up(self._process_queue, error):
            return 0.0
        if code == Response.SUBSCRIPTION_NOT_LATEST:
            self._member.not_latest += 1
        if self._queue.topic.startswith(RETRY_PREFIX):
            return EXCEPTION_DELAY
        if code == Response.SUBSCRIPTION_NOT_LATEST:
            line = f"consumer:{self._member.group} execute the pull request, code:25, "
            line += f"message:{getattr(error, 'remark', '')}, (might be ok if at rebalancing), "
            line += f"topic:{self._queue.topic}, broker:{self._queue.broker_name}"
            self._member.folds.warn(("code 25", self._queue.topic, self._queue.broker_name), line)
        elif code in (Response.SUBSCRIPTION_NOT_EXIST, Response.SUBSCRIPTION_GROUP_NOT_EXIST):
            LOG.info("pulling %s: %s", _name(self._queue), error)
        elif isinstance(error, (LinkError, DeadlineError)):
            self._member.folds.warn(("lost", self._queue.broker_name), f"pulling {_name(self._queue)}: {error}")
        else:
            self._member.folds.warn(("pull", self._queue, code), f"pulling {_name(self._queue)}: {error}")
        return EXCEPTION_DELAY


class Folds:
    """Warnings that come in swarms: the first at once, the others of its minute as one line with their count."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._more: dict[Any, int] = {}

    def warn(self, key: Any, line: str) -> None:
        if key in self._more:
            self._more[key] += 1
            return
        self._more[key] = 0
        LOG.warning("%s", line)
        self._client.timers.after(FOLD_SECONDS, lambda _: self._over(key, line))

    def _over(self, key: Any, line: str) -> None:
        more = self._more.pop(key)
        if more:
            LOG.warning("%s (%d more within a minute)", line, more)


def _name(queue: MessageQueue) -> str:
    return f"{queue.topic} queue {queue.queue_id} of {queue.broker_name}"
