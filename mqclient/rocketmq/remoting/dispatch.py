"""Owns what both ways of calling a handler share: the call, its counts, the offsets that it moves, who is stuck."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterable, Iterator
from contextvars import ContextVar
from inspect import isawaitable
from typing import Any, Final

from mqclient.core.driver import Now
from mqclient.core.hooking import ConsumeHooks
from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, gather, run_steps
from mqclient.core.timers import Timer
from mqclient.core.workers import Workers
from mqclient.hooks import Consumed
from mqclient.rocketmq.remoting.counts import Counts
from mqclient.rocketmq.remoting.failures import SendBack
from mqclient.rocketmq.remoting.handling import Handler, Job, Retry, explain
from mqclient.rocketmq.remoting.pace import Pace
from mqclient.rocketmq.remoting.process_queue import ProcessQueue
from mqclient.rocketmq.remoting.producer import ProducerEngine
from mqclient.rocketmq.remoting.push_options import PushOptions
from mqclient.rocketmq.remoting.trace import ConsumeTrace, Records

LOG = logging.getLogger("mqclient.remoting")
_inside: ContextVar[Any] = ContextVar("mqclient_rocketmq_dispatch", default=None)
"""In handlers: whose they are. Who closes a consumer from its own handler must not wait for that handler."""

LOOK: Final = 5.0
"""How often it is looked for handlers that are stuck."""


class Dispatch:
    """From pulled messages to handlers and back; `Concurrent` and `Orderly` are the two ways."""

    workers: Workers[Job]

    def __init__(self, member: Any, handler: Handler, options: PushOptions) -> None:
        self.member = member
        self.client = member.client
        self.options = options
        self.hooks = ConsumeHooks(options.hooks, LOG)
        self.handler = self.hooks.wrap(handler)
        self.trace = self._trace() if options.message_trace else None
        self.counts = Counts(member.client)
        self.running: set[Job] = set()
        self.pace = None if options.rate is None else Pace(options.rate)
        self.skip_before = options.skip_before_ms
        self.send_back = SendBack(member, options.attempts)
        self._returning: set[Slot[None]] = set()
        """What goes back to brokers: its messages count as consumed when the brokers have them."""
        self._told_value = False
        self._look: Timer | None = None
        if options.stuck_after is not None:
            self._look = self.client.timers.after(min(LOOK, options.stuck_after), self._look_for_stuck)

    def _trace(self) -> ConsumeTrace:
        group = self.member.group
        inner = ProducerEngine(self.client, Records.group(group, "CONSUME"), Records.options())
        return ConsumeTrace(self.client, group, inner)

    # ---- each way does these in its own manner

    def on_granted(self, process_queue: ProcessQueue) -> None:
        """A queue is ours."""

    def on_revoked(self, process_queue: ProcessQueue) -> None:
        """It is not any more: its jobs that wait are passed over when their turn comes."""

    def on_batch(self, process_queue: ProcessQueue, batch: Any) -> None:
        raise NotImplementedError

    def on_resumed(self, process_queue: ProcessQueue) -> None:
        raise NotImplementedError

    def quiet(self, process_queue: ProcessQueue) -> Slot[None]:
        """Begin nothing more with this queue; done when nothing of it runs."""
        raise NotImplementedError

    def returned(self) -> Slot[Any]:
        """Done when nothing that failed is on its way back to a broker."""
        return gather(list(self._returning))

    def return_by(self, steps: Steps[None]) -> Slot[None]:
        """Give back what failed; whoever closes waits for it."""
        slot = run_steps(steps)
        self._returning.add(slot)
        slot.then(self._returning.discard)
        return slot

    def clear(self) -> None:
        """Begin nothing more at all."""
        self.workers.clear()

    def close(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def close_steps(self) -> Steps[None]:
        """As `close`, and what was traced is told."""
        self.close()
        if self.trace is not None:
            yield from self.trace.close_steps()

    def abandon(self) -> None:
        """In a forked child: what was traced is the parent's."""
        self.clear()
        self.close()
        if self.trace is not None:
            self.trace.forget()

    @property
    def asks(self) -> bool:
        """Whether it is a handler of ours that calls."""
        return _inside.get() is self

    # ---- user code, outside of entries

    def call(self, job: Job) -> Any:
        self.running.add(job)
        if self.trace is not None and job.callable:
            with self.client.driver.enter():
                job.request = self.trace.begins(job.messages)
        token = _inside.set(self)
        try:
            outcome = job.call(self.handler, self.client.driver.now.mono)
        finally:
            _inside.reset(token)
        return outcome if outcome is None or not isawaitable(outcome) else self._awaited(outcome)

    async def _awaited(self, outcome: Awaitable[Any]) -> Any:
        _inside.set(self)  # in a context of its own
        return await outcome

    # ---- results, inside

    def ended(self, job: Job, outcome: Any, error: BaseException | None) -> None:
        """A call is over, however."""
        self.running.discard(job)
        now = self.client.driver.now
        job.process_queue.last_consume_ms = now.wall_ms
        if job.began:
            self.counts.took(job.process_queue.queue.topic, now.mono - job.began)
            self._tell(job, now.mono - job.began, error)
        if outcome is not None and not self._told_value:
            self._told_value = True
            LOG.warning(
                "consumer:%s the handler returned %s, which means nothing: returning acknowledges, raising asks for "
                "the messages again",
                self.member.group,
                type(outcome).__name__,
            )

    def _tell(self, job: Job, seconds: float, error: BaseException | None) -> None:
        """To those who count and trace."""
        if self.trace is not None and job.request:
            self.trace.ended(job.request, job.messages, seconds, error)
        if self.hooks.listens:
            topic = job.process_queue.queue.topic
            consumed = Consumed(topic, self.member.group, job.messages, seconds, error)
            self.client.driver.run_user(self.hooks.tell, consumed)

    def acknowledge(self, process_queue: ProcessQueue, messages: Any, *, counted: bool = True) -> None:
        """These are consumed."""
        if counted:
            self.counts.handled(process_queue.queue.topic, len(messages))
        commit = self.mark(process_queue, messages.offsets)
        if self.member.broadcasting and commit > messages.last_offset:
            # Story 3: what was consumed, and when it was stored, tells later whether the topic is still the same.
            self.member.offsets.witness(process_queue.queue, messages.last_offset, messages[-1].stored_at)

    def mark(self, process_queue: ProcessQueue, offsets: Iterable[int]) -> int:
        commit = process_queue.done(offsets)
        self.member.offsets.mark(process_queue.queue, commit)
        return commit

    def tell_failed(self, process_queue: ProcessQueue, failed: list[Any], error: BaseException) -> None:
        self.counts.failed(process_queue.queue.topic, len(failed))
        LOG.warning(
            "consumer:%s the handler failed on %d messages of %s: %s",
            self.member.group,
            len(failed),
            process_queue.queue,
            error if isinstance(error, Retry) else explain(error),
            exc_info=error if LOG.isEnabledFor(logging.DEBUG) else None,
        )

    def young(self, process_queue: ProcessQueue, batch: Any) -> Iterator[Any]:
        """The runs of a batch that were born late enough; the others count as consumed."""
        assert self.skip_before is not None
        old: list[int] = []
        start = 0
        for index, message in enumerate(batch):
            if message.born_at < self.skip_before:
                old.append(message.offset)
                if start < index:
                    yield batch[start:index]
                start = index + 1
        if start < len(batch):
            yield batch[start:]
        if old:
            self.mark(process_queue, old)
            LOG.info("consumer:%s skipped %d retries that were born too early", self.member.group, len(old))

    # ---- who is stuck

    def oldest(self) -> dict[str, Any] | None:
        """The call that runs longest: its queue, its first offset, for how long, and where the handler stands."""
        jobs = [job for job in list(self.running) if job.began]
        if not jobs:
            return None
        job = min(jobs, key=lambda job: job.began)
        return {
            "queue": job.process_queue.queue,
            "offset": job.messages.first_offset,
            "messages": len(job.messages),
            "seconds": round(self.client.driver.now.mono - job.began, 3),
            "stack": job.stack(),
        }

    def _look_for_stuck(self, now: Now) -> None:
        limit = self.options.stuck_after
        assert limit is not None
        self._look = self.client.timers.after(min(LOOK, limit), self._look_for_stuck)
        for job in list(self.running):
            if job.began and not job.told and now.mono - job.began > limit:
                job.told = True
                LOG.warning(
                    "consumer:%s a handler runs for %.0f s on %d messages of %s from offset %d: %s",
                    self.member.group,
                    now.mono - job.began,
                    len(job.messages),
                    job.process_queue.queue,
                    job.messages.first_offset,
                    _where(job.stack()),
                )


def _where(stack: list[str]) -> str:
    """The handler's own line, and the innermost one, which may be a library's."""
    if not stack:
        return "it waits outside of Python"
    return stack[0] if len(stack) == 1 else f"{stack[0]} … {stack[-1]}"
