"""Owns concurrent push consumption: every batch to the next free worker, what fails back to the broker."""

from __future__ import annotations

import logging
from typing import Any

from mqclient.core.slot import Slot, completed
from mqclient.core.steps import Steps
from mqclient.core.workers import Workers
from mqclient.rocketmq.remoting.dispatch import Dispatch
from mqclient.rocketmq.remoting.handling import Job, Retry
from mqclient.rocketmq.remoting.process_queue import ProcessQueue

LOG = logging.getLogger("mqclient.remoting")


class Concurrent(Dispatch):
    """In no order. Handler raises: its messages come again later (clustering), or are passed over (broadcasting)."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.workers: Workers[Job] = Workers(self.client.driver, self.call, self.done, self.options.threads)
        self._parked: list[Job] = []
        self._batch = self.options.batch

    def on_batch(self, process_queue: ProcessQueue, batch: Any) -> None:
        if self.skip_before is not None and self.member.is_retry(process_queue.queue.topic):
            for kept in self.young(process_queue, batch):
                self._submit(process_queue, kept)
        else:
            self._submit(process_queue, batch)

    def _submit(self, process_queue: ProcessQueue, batch: Any) -> None:
        size, submit = self._batch, self.workers.submit if self.pace is None else self._submit_later
        if len(batch) <= size:
            submit(Job(process_queue, batch))
            return
        for start in range(0, len(batch), size):
            submit(Job(process_queue, batch[start : start + size]))

    def _submit_later(self, job: Job) -> None:
        assert self.pace is not None
        delay = self.pace.take(len(job.messages), self.client.driver.now.mono)
        if delay:
            self.client.timers.after(delay, lambda _: self.workers.submit(job))
        else:
            self.workers.submit(job)

    def on_resumed(self, process_queue: ProcessQueue) -> None:
        """What was handed out while it was paused is handed out again."""
        parked, self._parked = self._parked, []
        for job in parked:
            if job.process_queue is process_queue:
                self.workers.submit(job)
            elif not job.process_queue.dropped:
                self._parked.append(job)

    def quiet(self, process_queue: ProcessQueue) -> Slot[None]:
        return completed(None)

    # ---- results, inside

    def done(self, job: Job, outcome: Any, error: BaseException | None) -> None:
        process_queue = job.process_queue
        self.ended(job, outcome, error)
        if process_queue.dropped:
            return
        if job.parked:
            self._park(job)
        elif error is None:
            self.acknowledge(process_queue, job.messages)
        else:
            self._failed(process_queue, job.messages, error)

    def _park(self, job: Job) -> None:
        if job.process_queue.paused:
            self._parked.append(job)
        else:  # resumed between the call and now
            self.workers.submit(job)

    def _failed(self, process_queue: ProcessQueue, messages: Any, error: BaseException) -> None:
        failed = error.failed(messages) if isinstance(error, Retry) else list(messages)
        if not failed:
            self.acknowledge(process_queue, messages)
            return
        self.tell_failed(process_queue, failed, error)
        if self.member.broadcasting:
            self.acknowledge(process_queue, messages, counted=False)
            return
        if len(failed) < len(messages):
            again = {message.offset for message in failed}
            well = [offset for offset in messages.offsets if offset not in again]
            self.counts.handled(process_queue.queue.topic, len(well))
            self.mark(process_queue, well)
        level = error.level if isinstance(error, Retry) else 0
        for message in failed:
            steps = self._send_back_steps(process_queue, message, level or self.options.level(message.attempts))
            self.return_by(steps)

    def _send_back_steps(self, process_queue: ProcessQueue, message: Any, level: int) -> Steps[None]:
        """The message counts as consumed here when the broker has it again; until then we try."""
        if (yield from self.send_back.steps(process_queue, message, level)) and not process_queue.dropped:
            self.mark(process_queue, [message.offset])
