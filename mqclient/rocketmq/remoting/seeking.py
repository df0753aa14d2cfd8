"""Owns going on at a time: the offset of each queue at that time, asked of its broker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mqclient.core.steps import Steps
from mqclient.errors import ConfigError
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting import requests
from mqclient.rocketmq.remoting.member_options import Start, start_ms


def offset_at_steps(client: Any, queue: MessageQueue, when: Start) -> Steps[int]:
    """The first offset stored at that time or later; "first" and "last": the queue's ends."""
    wall_ms = start_ms(when)
    if wall_ms is not None:
        code, fields = Request.SEARCH_OFFSET_BY_TIMESTAMP, requests.search_offset(queue, wall_ms)
    else:
        code = Request.GET_MIN_OFFSET if when == "first" else Request.GET_MAX_OFFSET
        fields = requests.queue_fields(queue)
    frame = yield from client.ask_steps(client.broker_address(queue.broker_name), code, fields)
    return max(0, int(frame.field("offset", "0")))


def seek_to_time_steps(
    member: Any, when: Start, queues: Iterable[MessageQueue] | None
) -> Steps[dict[MessageQueue, int]]:
    """Move these queues of the member, or all but its retries; where each went."""
    member.check_open()
    wanted = [queue for queue in member.queues if not member.is_retry(queue.topic)] if queues is None else list(queues)
    moved: dict[MessageQueue, int] = {}
    for queue in wanted:
        if queue not in member.queues:
            raise ConfigError(f"{queue} is not assigned to this consumer")
        offset = yield from offset_at_steps(member.client, queue, when)
        process_queue = member.queues.get(queue)
        if process_queue is not None:  # else it went to another member meanwhile
            member.restart(process_queue, offset)
            moved[queue] = offset
    return moved
