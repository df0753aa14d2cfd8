"""Owns orderly push consumption: one call at a time for a queue, in its order; what fails is tried again in place."""

from __future__ import annotations

from collections import deque
from typing import Any

from mqclient.core.slot import Slot, Wake, completed
from mqclient.core.steps import Steps
from mqclient.core.workers import Workers
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.dispatch import Dispatch
from mqclient.rocketmq.remoting.failures import DEAD
from mqclient.rocketmq.remoting.handling import Job, Retry
from mqclient.rocketmq.remoting.process_queue import ProcessQueue

UNLOCKED_REST = 0.5
"""How long a queue rests whose lock ran out before it was renewed."""


class Lane:
    """What of one queue, in one epoch, waits for its turn."""

    __slots__ = ("process_queue", "resting", "retired", "waiting")

    def __init__(self, process_queue: ProcessQueue) -> None:
        self.process_queue = process_queue
        self.waiting: deque[Any] = deque()
        self.resting = False
        self.retired = False

    def take(self, limit: int) -> Any:
        batch = self.waiting.popleft()
        if len(batch) > limit:
            self.waiting.appendleft(batch[limit:])
            batch = batch[:limit]
        return batch


class Orderly(Dispatch):
    """A queue's next call begins when the one before has ended, whatever epoch that belonged to."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.workers: Workers[Job] = Workers(self.client.driver, self.call, self.done, self.options.threads)
        self._lanes: dict[MessageQueue, Lane] = {}
        self._busy: set[MessageQueue] = set()
        """Queues with a call that runs, waits for its worker or gives dead letters to the broker."""
        self._quiet: dict[MessageQueue, list[Wake]] = {}

    def on_granted(self, process_queue: ProcessQueue) -> None:
        self._lanes[process_queue.queue] = Lane(process_queue)

    def on_revoked(self, process_queue: ProcessQueue) -> None:
        lane = self._lanes.get(process_queue.queue)
        if lane is not None and lane.process_queue is process_queue:
            del self._lanes[process_queue.queue]

    def on_batch(self, process_queue: ProcessQueue, batch: Any) -> None:
        lane = self._lanes[process_queue.queue]
        if self.skip_before is not None and self.member.is_retry(process_queue.queue.topic):
            lane.waiting.extend(self.young(process_queue, batch))
        else:
            lane.waiting.append(batch)
        self._next(lane)

    def on_resumed(self, process_queue: ProcessQueue) -> None:
        lane = self._lanes.get(process_queue.queue)
        if lane is not None:
            self._next(lane)

    def quiet(self, process_queue: ProcessQueue) -> Slot[None]:
        lane = self._lanes.get(process_queue.queue)
        if lane is not None and lane.process_queue is process_queue:
            lane.retired = True
        if process_queue.queue not in self._busy:
            return completed(None)
        wake = Wake()
        self._quiet.setdefault(process_queue.queue, []).append(wake)
        return wake

    def clear(self) -> None:
        for lane in self._lanes.values():
            lane.retired = True
        for job in self.workers.clear():
            self._free(job.process_queue.queue)

    # ---- the next call

    def _next(self, lane: Lane) -> None:
        process_queue = lane.process_queue
        if process_queue.queue in self._busy or not lane.waiting or lane.resting or lane.retired:
            return
        if process_queue.dropped or process_queue.paused:
            return
        locks = self.member.locks
        if locks is not None and not locks.valid(process_queue.queue):
            self._rest(lane, UNLOCKED_REST)
            return
        job = Job(process_queue, lane.take(self.options.batch))
        self._busy.add(process_queue.queue)
        delay = 0.0 if self.pace is None else self.pace.take(len(job.messages), self.client.driver.now.mono)
        if delay:
            self.client.timers.after(delay, lambda _: self.workers.submit(job))
        else:
            self.workers.submit(job)

    def _rest(self, lane: Lane, seconds: float) -> None:
        lane.resting = True

        def go_on(_: Any) -> None:
            lane.resting = False
            self._next(lane)

        self.client.timers.after(seconds, go_on)

    def _free(self, queue: MessageQueue) -> None:
        """Nothing of the queue runs any more."""
        self._busy.discard(queue)
        for wake in self._quiet.pop(queue, ()):
            wake.complete(None)
        lane = self._lanes.get(queue)
        if lane is not None:
            self._next(lane)

    # ---- results, inside

    def done(self, job: Job, outcome: Any, error: BaseException | None) -> None:
        process_queue = job.process_queue
        self.ended(job, outcome, error)
        lane = self._lanes.get(process_queue.queue)
        if lane is None or lane.process_queue is not process_queue or process_queue.dropped:
            self._free(process_queue.queue)
        elif job.parked:
            lane.waiting.appendleft(job.messages)
            self._free(process_queue.queue)
        elif error is None:
            self.acknowledge(process_queue, job.messages)
            self._free(process_queue.queue)
        else:
            failed = self.return_by(self._failed_steps(lane, job.messages, error))
            failed.then(lambda _: self._free(process_queue.queue))

    def _failed_steps(self, lane: Lane, messages: Any, error: BaseException) -> Steps[None]:
        """What stands before the first that failed is consumed; the rest goes back to its place, or to the dead."""
        process_queue = lane.process_queue
        failed = error.failed(messages) if isinstance(error, Retry) else list(messages)
        if not failed:
            self.acknowledge(process_queue, messages)
            return
        self.tell_failed(process_queue, failed, error)
        first = messages.offsets.index(failed[0].offset)
        if first:
            self.acknowledge(process_queue, messages[:first])
        dead = self._hopeless(messages[first:], error)
        left = messages[first + dead :]
        if dead:
            yield from self._bury_steps(process_queue, messages[first : first + dead])
            if process_queue.dropped:
                return
        if len(left):
            lane.waiting.appendleft(again(self.client.impl.remoting, left))
        delay = error.delay if isinstance(error, Retry) and error.delay is not None else self.options.suspend
        if not dead or len(left):
            self._rest(lane, delay)

    def _hopeless(self, messages: Any, error: BaseException) -> int:
        """How many at the head come no more: they were tried as often as is allowed, or the handler said so."""
        if isinstance(error, Retry) and error.level == DEAD:
            return 1
        limit = self.options.attempts
        count = 0
        if limit >= 0:
            while count < len(messages) and messages[count].attempts >= limit:
                count += 1
        return count

    def _bury_steps(self, process_queue: ProcessQueue, messages: Any) -> Steps[None]:
        """To the dead letters; the queue waits until the broker has them. Broadcasting has none: passed over."""
        for index, message in enumerate(messages):
            if not self.member.broadcasting:
                yield from self.send_back.steps(process_queue, message, DEAD)
            if process_queue.dropped:
                return
            self.acknowledge(process_queue, messages[index : index + 1], counted=False)


def again(remoting: Any, messages: Any) -> Any:
    """The same messages, with one more attempt."""
    records = [
        remoting.encode_message(
            message.body,
            message.topic,
            properties=message.properties_text,
            queue_id=message.queue_id,
            flag=message.flag,
            offset=message.offset,
            physical_offset=message.physical_offset,
            sys_flag=message.sys_flag,
            born_at=message.born_at,
            born_host=_host(message.born_host),
            stored_at=message.stored_at,
            store_host=_host(message.store_host),
            attempts=message.attempts + 1,
            prepared_transaction_offset=message.prepared_transaction_offset,
        )
        for message in messages
    ]
    return remoting.decode_messages(b"".join(records), queue=messages.queue, retry_topic=True)


def _host(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
