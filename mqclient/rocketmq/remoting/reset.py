"""Owns an offset reset on a member: the queues that it names start anew from there, now and after any rebalance."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from mqclient.rocketmq.model import MessageQueue

LOG = logging.getLogger("mqclient.remoting")


def reset(member: Any, topic: str, table: Mapping[MessageQueue, int]) -> dict[MessageQueue, int]:
    """Move every queue of the table that we hold, in memory and in the store; the queues moved and their new offsets.

    Sequence: the old epoch is dropped, so no late result counts; the offset goes into memory and store; a new epoch
    pulls from it. A rebalance that follows reads memory (broadcasting) or the store (clustering): both hold it.
    A broadcasting member remembers offsets of queues that it does not hold yet, too.
    """
    moved: dict[MessageQueue, int] = {}
    for queue, offset in table.items():
        if queue.topic != topic:
            continue
        process_queue = member.queues.get(queue)
        if process_queue is None and not member.broadcasting:
            continue
        moved[queue] = offset
        if process_queue is None:
            member.offsets.put(queue, offset)
        else:
            member.restart(process_queue, offset)
    member.offsets.flush()
    LOG.info("consumer:%s reset of %s moved %d of %d queues", member.group, topic, len(moved), len(table))
    return moved
