"""Owns pull consumption: messages wait for whoever asks, and what was taken counts when more is asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mqclient.core.slot import Slot, Wake
from mqclient.core.steps import Steps, run_steps
from mqclient.core.waiters import Waiters
from mqclient.errors import ClosedError, ConfigError, DeadlineError
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting import describe, requests
from mqclient.rocketmq.remoting.assigned import Assigned, Ends, RangesRead
from mqclient.rocketmq.remoting.client import ClientEngine
from mqclient.rocketmq.remoting.group import Member
from mqclient.rocketmq.remoting.member_options import MemberOptions, Start
from mqclient.rocketmq.remoting.process_queue import ProcessQueue
from mqclient.rocketmq.remoting.seeking import seek_to_time_steps
from mqclient.rocketmq.remoting.subscription import EVERYTHING

if TYPE_CHECKING:
    from mqclient._native.remoting import MessageBatch


class PullEngine:
    """Batches wait in the order in which they came; the mailbox holds the one that is taken message by message.

    `take` and `take_many` of the mailbox run without entering; `refill` puts the next batch into it. Positions come
    from the mailbox's sources, which know the last message taken of each queue.
    """

    def __init__(
        self,
        client: ClientEngine,
        group: str,
        topics: Mapping[str, str],
        options: MemberOptions,
        auto_commit: bool = True,
        assign: Mapping[MessageQueue, Ends] | None = None,
        expression: str = EVERYTHING,
    ) -> None:
        if assign is None and expression != EVERYTHING:
            raise ConfigError("expression= goes with assign=; otherwise topics={name: expression}")
        self.member = (
            Member(client, group, topics, options, self)
            if assign is None
            else Assigned(client, group, assign, options, self, expression)
        )
        self._client = client
        self._auto_commit = auto_commit
        self._batches: deque[tuple[ProcessQueue, MessageBatch]] = deque()
        self.mailbox = client.impl.handover.Mailbox()
        self._open: dict[MessageQueue, ProcessQueue] = {}
        """Queues of which something was put into the mailbox."""
        self._taken: dict[MessageQueue, tuple[ProcessQueue, int]] = {}
        self.waiters = Waiters(self._there)

    def start(self) -> Slot[None]:
        return run_steps(self.member.start_steps())

    def close(self) -> Slot[None]:
        """Commit what was taken, wake who waits, leave."""
        return run_steps(self.close_steps())

    def abandon(self) -> None:
        """In a forked child: who asks is told why nothing comes."""
        self.member.abandon()
        self._batches.clear()
        self._open.clear()
        self._taken.clear()
        self.mailbox.clear()
        self._end()

    def diagnose(self) -> dict[str, Any]:
        return self.member.diagnose() | {"waiting": len(self.mailbox) + sum(len(batch) for _, batch in self._batches)}

    def close_steps(self) -> Steps[None]:
        if self.member.closed:
            return
        if self._auto_commit:
            self.begin_take()
        yield from self.member.close_steps()
        self._batches.clear()
        self.mailbox.clear()
        self._end()

    # ---- told by the member

    def on_granted(self, process_queue: ProcessQueue) -> None:
        process_queue.source = self._client.impl.handover.Source(process_queue, 0, 0)

    def on_revoked(self, process_queue: ProcessQueue) -> None:
        """What of it waits is dropped; what was taken before stays taken."""
        self._note(process_queue)
        taken = self._taken.pop(process_queue.queue, None)
        if taken is not None and self._auto_commit:
            self.member.offsets.mark(process_queue.queue, taken[1])
        self._open.pop(process_queue.queue, None)
        self.mailbox.clear(process_queue.source)
        self._batches = deque(entry for entry in self._batches if entry[0] is not process_queue)

    def on_batch(self, process_queue: ProcessQueue, batch: MessageBatch) -> None:
        self._batches.append((process_queue, batch))
        self.waiters.arrived(len(batch))

    def on_failed(self) -> None:
        """Whoever asks next learns what happened."""
        self.waiters.all()

    def on_ended(self) -> None:
        """Nothing more can come: who waits is told so."""
        self.waiters.all()

    def on_nothing(self, process_queue: ProcessQueue) -> None:
        """If nobody holds or waits for anything of it, the queue is consumed up to the next offset."""
        queue = process_queue.queue
        if not process_queue.outstanding.count and queue not in self._taken and queue not in self._open:
            self.member.offsets.mark(queue, process_queue.next_offset)

    # ---- asked by the faces, inside an entry

    def refill(self) -> Wake:
        """Asked when the mailbox is empty: done when it may hold something. What was taken before is consumed."""
        self.member.check_open()
        self.begin_take()
        if not len(self.mailbox) and self._batches:
            process_queue, batch = self._batches.popleft()
            self._open[process_queue.queue] = process_queue
            process_queue.done(batch.offsets)
            self.mailbox.put_many(list(batch), process_queue.source)
        return self.wait()

    def next_batch(self, limit: int) -> MessageBatch | None:
        """A batch of at most so many messages, or None. What was taken so far counts as consumed."""
        if limit < 1:
            raise ConfigError(f"max_messages={limit}: at least 1")
        self.member.check_open()
        self.begin_take()
        if len(self.mailbox):
            raise ConfigError("messages taken one by one are left over: receive them before asking for batches")
        if not self._batches:
            return None
        process_queue, batch = self._batches.popleft()
        if len(batch) > limit:
            self._batches.appendleft((process_queue, batch[limit:]))
            batch = batch[:limit]
        process_queue.done(batch.offsets)
        self._taken[process_queue.queue] = (process_queue, batch.last_offset + 1)
        return batch

    def wait(self) -> Wake:
        """Done when something may be there: who was woken asks again, or leaves."""
        if not self._there() and self._nothing_to_come():
            raise RangesRead("every range that was assigned was read to its end")
        return self.waiters.join()

    def begin_take(self) -> None:
        """More is asked for: what was taken before is consumed."""
        self.note_positions()
        if self._auto_commit:
            self.commit_taken()

    def note_positions(self) -> None:
        for process_queue in list(self._open.values()):
            self._note(process_queue)

    def commit_taken(self) -> None:
        """What was taken so far is consumed; brokers are told with the next flush."""
        taken, self._taken = self._taken, {}
        for queue, (process_queue, offset) in taken.items():
            if not process_queue.dropped:
                self.member.offsets.mark(queue, offset)

    def commit_steps(self) -> Steps[None]:
        """Everything taken so far is consumed, and the brokers know when this ends."""
        self.member.check_open()
        self.note_positions()
        self.commit_taken()
        yield from self.member.offsets.flush_steps()

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on with a queue of ours at this offset."""
        self.member.check_open()
        process_queue = self.member.queues.get(queue)
        if process_queue is None:
            raise ConfigError(f"{queue} is not assigned to this consumer")
        self.member.restart(process_queue, offset)
        self._taken.pop(queue, None)

    def seek_to_time_steps(self, when: Start, queues: Iterable[MessageQueue] | None) -> Steps[dict[MessageQueue, int]]:
        """Go on with these queues, or all, where they were at that time."""
        moved = yield from seek_to_time_steps(self.member, when, queues)
        for queue in moved:
            self._taken.pop(queue, None)
        return moved

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        for queue in queues:
            self.member.queues[queue].pause()

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        for queue in queues:
            self.member.queues[queue].resume()

    def committed_steps(self, queue: MessageQueue) -> Steps[int | None]:
        """What the store has for a queue."""
        remembered = self.member.offsets.memory.get(queue)
        if remembered is not None:
            return int(remembered)
        stored: int | None = yield from self.member.offsets.read_steps(queue)
        return stored

    def lag_steps(self) -> Steps[dict[MessageQueue, int]]:
        """Per queue of ours: how many offsets lie between what was consumed and the end."""
        lags: dict[MessageQueue, int] = {}
        for queue, held in list(self.member.queues.items()):
            address = self._client.broker_address(queue.broker_name)
            frame = yield from self._client.ask_steps(address, Request.GET_MAX_OFFSET, requests.queue_fields(queue))
            done = self.member.offsets.memory.get(queue, held.started_at)
            lags[queue] = max(0, int(frame.field("offset", "0")) - done)
        return lags

    def _note(self, process_queue: ProcessQueue) -> None:
        last = process_queue.source.last
        if process_queue.queue in self._open and last is not None:
            self._taken[process_queue.queue] = (process_queue, last.offset + 1)
            if not process_queue.source.waiting:
                self._open.pop(process_queue.queue, None)

    def nothing(self) -> DeadlineError:
        """For whoever asked for a message and got none in time; nothing of it is unknown."""
        error = DeadlineError(f"no message in time: {describe.why_nothing(self.member)}")
        error.outcome_unknown = False
        return error

    def ended(self) -> bool:
        """Whether every range that was assigned has been handed out."""
        return not self._batches and not len(self.mailbox) and self._nothing_to_come()

    def _nothing_to_come(self) -> bool:
        return isinstance(self.member, Assigned) and self.member.ended()

    def _there(self) -> bool:
        return bool(len(self.mailbox) or self._batches)

    def _end(self) -> None:
        self.waiters.close(ClosedError(f"the consumer of group {self.member.group!r} is closed"))
