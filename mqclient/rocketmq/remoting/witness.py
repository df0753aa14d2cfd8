"""Owns the question whether a topic is still the one that stored offsets speak of (story 3).

An offset inside a queue's range says nothing: a topic that was deleted and made anew has such offsets, too. So beside
each offset a witness is kept, a consumed message's offset and store time. If the broker has another message there, or
none yet, the topic was made anew.
"""

from __future__ import annotations

from typing import Any

from mqclient.core.steps import Steps
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting import requests


def anew_steps(client: Any, group: str, queue: MessageQueue, witness: tuple[int, int]) -> Steps[int | None]:
    """None: still the same, or it cannot be told. Else where to go on: the first message stored since then."""
    offset, stored_at = witness
    address = client.broker_address(queue.broker_name)
    opaque = client.opaque()
    frame = requests.peek(client.impl.remoting, opaque, group, queue, offset)
    reply = yield client.send(address, opaque, frame, Request.PULL_MESSAGE.name)
    if reply.code == Response.SUCCESS:
        found = client.impl.remoting.decode_messages(reply.body)
        same = not len(found) or found.first_offset != offset or found[0].stored_at == stored_at
    else:
        # No message there: it expired (then the queue goes on behind it), or the queue does not reach so far.
        same = int(reply.field("maxOffset", str(offset + 1))) > offset
    if same:
        return None
    fields = requests.search_offset(queue, stored_at)
    answer = yield from client.ask_steps(address, Request.SEARCH_OFFSET_BY_TIMESTAMP, fields)
    return max(0, int(answer.field("offset", "0")))
