"""Owns push consumption: pulled messages to handlers, results to offsets, failures back to the broker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, run_steps
from mqclient.core.workers import Workers
from mqclient.errors import ConfigError, MQError
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting import requests
from mqclient.rocketmq.remoting.client import ClientEngine
from mqclient.rocketmq.remoting.group import Member, MemberOptions
from mqclient.rocketmq.remoting.process_queue import ProcessQueue

LOG = logging.getLogger("mqclient.remoting")

SEND_BACK_TIMEOUT: Final = 5.0
RETRY_DELAY: Final = 5.0
MAX_ATTEMPTS: Final = 16
GRACE: Final = 30.0

Handler = Callable[[Any], Any]


class Job:
    """Messages of one queue for one call of the handler."""

    __slots__ = ("messages", "process_queue")

    def __init__(self, process_queue: ProcessQueue, messages: Any) -> None:
        self.process_queue = process_queue
        self.messages = messages


class PushEngine:
    """Handler returns: acknowledged. Handler raises: each of its messages goes back to the broker and comes again
    later (clustering), or is logged and passed over (broadcasting)."""

    def __init__(
        self,
        client: ClientEngine,
        group: str,
        topics: Mapping[str, str],
        handler: Handler,
        options: MemberOptions,
        *,
        threads: int = 20,
        batch: int = 32,
        max_attempts: int = MAX_ATTEMPTS,
    ) -> None:
        if threads < 1 or batch < 1:
            raise ConfigError(f"threads={threads}, batch={batch}: at least 1 each")
        self.member = Member(client, group, topics, options, self)
        self._client = client
        self._handler = handler
        self._batch = batch
        self._max_attempts = max_attempts
        self._workers: Workers[Job] = Workers(client.driver, self._call, self._done, threads)
        self.handled = 0
        self.failed = 0

    def start(self) -> Slot[None]:
        return run_steps(self.member.start_steps())

    def close(self, grace: float) -> Slot[None]:
        """Stop pulling, let handlers end within the grace, then leave."""
        return run_steps(self._close_steps(grace))

    def close_steps(self) -> Steps[None]:
        """Of the client that closes."""
        yield from self._close_steps(GRACE)

    def abandon(self) -> None:
        """In a forked child."""
        self._workers.clear()
        self.member.abandon()

    def diagnose(self) -> dict[str, Any]:
        state = self.member.diagnose()
        workers = {"running": self._workers.running, "waiting": self._workers.waiting}
        return state | {"handled": self.handled, "failed": self.failed, "handlers": workers}

    def _close_steps(self, grace: float) -> Steps[None]:
        self._workers.clear()
        if self._workers.running:
            done: Slot[None] = Slot()
            self._workers.idle().then(lambda _: done.complete(None))
            self._client.timers.after(grace, lambda _: done.complete(None))
            for process_queue in self.member.queues.values():
                process_queue.pause()
            yield done
            self._workers.clear()
        yield from self.member.close_steps()

    # ---- told by the member

    def on_granted(self, process_queue: ProcessQueue) -> None:
        """Nothing to prepare."""

    def on_revoked(self, process_queue: ProcessQueue) -> None:
        """Its jobs that wait are passed over when their turn comes."""

    def on_batch(self, process_queue: ProcessQueue, batch: Any) -> None:
        for start in range(0, len(batch), self._batch):
            self._workers.submit(Job(process_queue, batch[start : start + self._batch]))

    def on_nothing(self, process_queue: ProcessQueue) -> None:
        """If nothing is in work, the queue is consumed up to the next offset: filtered messages, too."""
        if not process_queue.outstanding.count:
            self.member.offsets.mark(process_queue.queue, process_queue.next_offset)

    # ---- user code, outside of entries

    def _call(self, job: Job) -> Any:
        return None if job.process_queue.dropped else self._handler(job.messages)

    # ---- results, inside

    def _done(self, job: Job, outcome: Any, error: BaseException | None) -> None:
        if job.process_queue.dropped:
            return
        if error is None:
            self.handled += len(job.messages)
            self._acknowledge(job.process_queue, job.messages.offsets)
            return
        self.failed += len(job.messages)
        LOG.warning(
            "consumer:%s the handler failed on %d messages of %s: %r",
            self.member.group,
            len(job.messages),
            job.process_queue.queue,
            error,
            exc_info=error if LOG.isEnabledFor(logging.DEBUG) else None,
        )
        if self.member.broadcasting:
            self._acknowledge(job.process_queue, job.messages.offsets)
        else:
            for message in job.messages:
                run_steps(self._send_back_steps(job.process_queue, message))

    def _acknowledge(self, process_queue: ProcessQueue, offsets: list[int]) -> None:
        self.member.offsets.mark(process_queue.queue, process_queue.done(offsets))

    def _send_back_steps(self, process_queue: ProcessQueue, message: Any) -> Steps[None]:
        """The message counts as consumed here when the broker has it again; until then we try."""
        queue = process_queue.queue
        fields = requests.send_back(self.member.group, message, 0, self._max_attempts, queue.broker_name)
        while not process_queue.dropped:
            try:
                address = self._client.broker_address(queue.broker_name)
                yield from self._client.ask_steps(
                    address, Request.CONSUMER_SEND_MSG_BACK, fields, timeout=SEND_BACK_TIMEOUT
                )
            except MQError as error:
                self.member.folds.warn(("send back", queue), f"could not send a message back to {queue}: {error}")
                yield self._client.timers.sleep(RETRY_DELAY)
            else:
                break
        if not process_queue.dropped:
            self._acknowledge(process_queue, [message.offset])
