"""Owns push consumption: a member of a group whose messages go to a handler, and its end with a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mqclient.core.slot import Slot, Wake
from mqclient.core.steps import Steps, run_steps
from mqclient.errors import ConfigError
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.client import ClientEngine
from mqclient.rocketmq.remoting.concurrent import Concurrent
from mqclient.rocketmq.remoting.dispatch import Dispatch
from mqclient.rocketmq.remoting.group import Member
from mqclient.rocketmq.remoting.handling import Handler, Job, check_handler
from mqclient.rocketmq.remoting.member_options import MemberOptions, Start
from mqclient.rocketmq.remoting.orderly import Orderly
from mqclient.rocketmq.remoting.process_queue import ProcessQueue
from mqclient.rocketmq.remoting.push_options import PushOptions, StopReport
from mqclient.rocketmq.remoting.seeking import seek_to_time_steps

GRACE: Final = 30.0

__all__ = ["Handler", "Job", "PushEngine"]


class PushEngine:
    """Handler returns: acknowledged. Handler raises: its messages come again, as `Concurrent` and `Orderly` say."""

    def __init__(
        self,
        client: ClientEngine,
        group: str,
        topics: Mapping[str, str],
        handler: Handler,
        options: MemberOptions,
        push: PushOptions | None = None,
    ) -> None:
        push = PushOptions() if push is None else push
        check_handler(handler)
        self.member = Member(client, group, topics, options, self, orderly=push.orderly)
        self._client = client
        self.threads = push.threads
        self._work: Dispatch = (Orderly if push.orderly else Concurrent)(self.member, handler, push)
        self.handler = self._work.handler
        self.counts = self._work.counts
        self._ended: Slot[None] = Wake()
        self._ending: Slot[StopReport] | None = None
        self._all_paused = False
        self.running = self._work.running
        # What comes by the thousand goes the short way.
        self.on_batch = self._work.on_batch
        self.on_revoked = self._work.on_revoked
        self.quiet = self._work.quiet

    @property
    def handled(self) -> int:
        return self.counts.all_handled

    @property
    def failed(self) -> int:
        return self.counts.all_failed

    def start(self) -> Slot[None]:
        return run_steps(self.member.start_steps())

    def close(self, grace: float) -> Slot[StopReport]:
        """Stop pulling, let handlers end within the grace, then leave; asked again, the same end."""
        if self._ending is None:
            self._ended.complete(None)
            self._ending = run_steps(self._close_steps(grace))
        return self._ending

    def until(self, asked: Slot[None]) -> None:
        """Nobody needs to ask for the end any more when it has begun by itself."""
        self._ended.then(lambda _: asked.complete(None))

    def close_steps(self) -> Steps[None]:
        """Of the client that closes."""
        yield self.close(GRACE)

    def abandon(self) -> None:
        """In a forked child."""
        self._work.abandon()
        self.member.abandon()

    def diagnose(self) -> dict[str, Any]:
        state = self.member.diagnose()
        workers = self._work.workers
        return state | {
            "handled": self.handled,
            "failed": self.failed,
            "handlers": {"running": workers.running, "waiting": workers.waiting},
            "oldest": self._work.oldest(),
        }

    def _close_steps(self, grace: float) -> Steps[StopReport]:
        work = self._work
        for process_queue in self.member.queues.values():
            process_queue.pause()
        work.clear()
        until = self._client.driver.now.mono + grace
        if work.workers.running and not work.asks:  # a handler that closes would wait for itself
            yield self._client.timers.within(work.workers.idle(), grace)
        yield self._client.timers.within(work.returned(), until - self._client.driver.now.mono)
        unhandled = sum(held.outstanding.count for held in self.member.queues.values())
        running = [where[-1] for job in list(work.running) if (where := job.stack())]
        finished = not work.workers.running
        yield from work.close_steps()
        yield from self.member.close_steps()
        return StopReport(finished, self.handled, self.failed, unhandled, running)

    # ---- told by the member

    def on_granted(self, process_queue: ProcessQueue) -> None:
        """Race: a round of before the end may still bring a queue; what came of it would be dropped, and come again."""
        if self._all_paused or self._ended.done:
            process_queue.pause()
        self._work.on_granted(process_queue)

    def on_nothing(self, process_queue: ProcessQueue) -> None:
        """If nothing is in work, the queue is consumed up to the next offset: filtered messages, too."""
        if not process_queue.outstanding.count:
            self.member.offsets.mark(process_queue.queue, process_queue.next_offset)

    # ---- asked by the faces, inside an entry

    def pause(self, queues: Iterable[MessageQueue] | None) -> None:
        """Hand out no more of these, or of all, also of those that are still to come."""
        self.member.check_open()
        self._all_paused = self._all_paused or queues is None
        for process_queue in self._held(queues):
            process_queue.pause()

    def resume(self, queues: Iterable[MessageQueue] | None) -> None:
        self.member.check_open()
        if self._ended.done:
            return  # what begins now would not be told any more
        if queues is None:
            self._all_paused = False
        for process_queue in self._held(queues):
            process_queue.resume()
            self._work.on_resumed(process_queue)

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on with a queue of ours at this offset; what a handler has of it now counts no more."""
        self.member.check_open()
        (process_queue,) = self._held([queue])
        self.member.restart(process_queue, offset)

    def seek_to_time_steps(self, when: Start, queues: Iterable[MessageQueue] | None) -> Steps[dict[MessageQueue, int]]:
        return (yield from seek_to_time_steps(self.member, when, queues))

    def _held(self, queues: Iterable[MessageQueue] | None) -> list[ProcessQueue]:
        if queues is None:
            return list(self.member.queues.values())
        wanted = list(queues)
        for queue in wanted:
            if queue not in self.member.queues:
                raise ConfigError(f"{queue} is not assigned to this consumer")
        return [self.member.queues[queue] for queue in wanted]
