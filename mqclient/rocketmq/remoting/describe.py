"""Owns what a member of a group tells about itself: to operators (307) and to people (`diagnose`)."""

from __future__ import annotations

import sys
import traceback
from typing import Any

from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.namespaces import wrapped_keys
from mqclient.rocketmq.remoting.process_queue import ProcessQueue


def running_info(member: Any, started_ms: int) -> dict[str, Any]:
    """What 307 answers; the keys are the ones that operators' tools print."""
    return {
        "mqPopTable": {},
        "mqTable": {queue: _queue_info(member, queue, held) for queue, held in member.queues.items()},
        "properties": {
            "PROP_CLIENT_VERSION": "mqclient",
            "PROP_CONSUMEORDERLY": "true" if member.orderly else "false",
            "PROP_CONSUMER_START_TIMESTAMP": str(started_ms),
            "PROP_CONSUME_TYPE": member.options.consume_type,
            "PROP_NAMESERVER_ADDR": f"{member.client.name_servers};",
            "PROP_THREADPOOL_CORE_SIZE": str(getattr(member.taker, "threads", 0)),
        },
        "statusTable": wrapped_keys(member.client.names, _statuses(member)),
        "subscriptionSet": member.subscriptions.data(),
        "userConsumerInfo": {},
    }


def stacks(member: Any) -> str:
    """Where this process stands, as 307 shows it if it is asked to: what handlers do, then every thread."""
    lines: list[str] = []
    for job in list(getattr(member.taker, "running", ())):
        where = job.stack()
        if where:
            lines += [f"handler of {job.process_queue.queue} from offset {job.messages.first_offset}", *where, ""]
    for ident, frame in sys._current_frames().items():
        lines += [f"thread {ident}", *traceback.format_stack(frame), ""]
    return "\n".join(line.rstrip() for line in lines)


def _statuses(member: Any) -> dict[str, Any]:
    counts = getattr(member.taker, "counts", None)
    if counts is None:
        return {}
    return {topic: counts.status(topic) for topic in member.subscriptions.topics()}


def _queue_info(member: Any, queue: MessageQueue, held: ProcessQueue) -> dict[str, Any]:
    outstanding = held.outstanding
    return {
        "cachedMsgCount": outstanding.count,
        "cachedMsgMaxOffset": outstanding.highest_seen if outstanding.count else 0,
        "cachedMsgMinOffset": max(0, outstanding.lowest),
        "cachedMsgSizeInMiB": outstanding.bytes >> 20,
        "commitOffset": member.offsets.memory.get(queue, held.started_at),
        "droped": held.dropped,
        "lastConsumeTimestamp": held.last_consume_ms,
        "lastLockTimestamp": member.locks.since_ms(queue) if member.locks is not None else 0,
        "lastPullTimestamp": held.last_pull_ms,
        "locked": member.locks is not None and member.locks.valid(queue),
        "transactionMsgCount": 0,
        "transactionMsgMaxOffset": 0,
        "transactionMsgMinOffset": 0,
        "tryUnlockTimes": 0,
    }


def diagnose(member: Any) -> dict[str, Any]:
    """The state of a member, for people."""
    return {
        "group": member.group,
        "model": member.options.model,
        "orderly": member.orderly,
        "client_id": member.client.client_id,
        "equal_id_seen": member.equal_id_seen,
        "code_25": member.not_latest,
        "offsets_corrected": member.corrected,
        "rebalances": member.rebalance.rounds,
        "subscriptions": member.subscriptions.versions(),
        "queues": {queue: _queue(member, queue, held) for queue, held in sorted(member.queues.items())},
    }


def _queue(member: Any, queue: MessageQueue, held: ProcessQueue) -> dict[str, Any]:
    state = {
        "next_offset": held.next_offset,
        "committed": member.offsets.memory.get(queue),
        "lag": max(0, held.end - member.offsets.memory.get(queue, held.started_at)) if held.end >= 0 else None,
        "cached": held.outstanding.count,
        "cached_bytes": held.outstanding.bytes,
        "paused": held.paused,
        "last_pull_ms": held.last_pull_ms,
    }
    if member.locks is not None:
        state["locked"] = member.locks.valid(queue)
    return state


def why_nothing(member: Any) -> str:
    """Why nothing came in time, for whoever asked; as much as is known here."""
    subscriptions, routes = member.subscriptions, member.client.routes
    missing = [topic for topic in subscriptions.topics() if routes.get(topic) is None and not member.is_retry(topic)]
    if missing:
        return f"topic {missing[0]} is not there: create it, as with client.admin().create_topic, or send to it"
    held = list(member.queues.values())
    if not held:
        return "no queue is ours: the other members of the group have them all, or a broker cannot be asked"
    if all(one.paused for one in held):
        return "all of our queues are paused"
    if all(one.last_pull_ms == 0 for one in held):
        return "no pull was answered yet: diagnose() and the log mqclient.remoting tell why"
    return f"nothing new in our {len(held)} queues"
