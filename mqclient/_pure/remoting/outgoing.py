"""Messages as users make them, into the body of a batch send."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from .batch import MOST, BatchBuilder
from .ids import UniqueKeys
from .properties import encode_properties


def add_messages(
    builder: BatchBuilder,
    messages: Sequence[Any],
    start: int,
    topic: str,
    unique: UniqueKeys,
    now_ms: int,
    ids: list[str],
    *,
    reserved: AbstractSet[str],
    max_size: int = MOST,
    max_count: int = sys.maxsize,
    most: int = MOST,
) -> int:
    """Append messages from `start` on; gives the place of the first that was not added."""
    for place in range(start, len(messages)):
        message = messages[place]
        if builder.count >= max_count or not _plain(message, topic, most):
            return place
        if not reserved.isdisjoint(message.properties):
            return place
        message_id = unique.next(now_ms)
        properties = {"UNIQ_KEY": message_id, "WAIT": "true"}
        if message.tag:
            properties["TAGS"] = message.tag
        if message.keys:
            properties["KEYS"] = " ".join(message.keys)
        text = encode_properties(properties) + encode_properties(message.properties)
        size = 22 + memoryview(message.body).nbytes + len(text)
        if builder.count and builder.size + size > max_size:
            return place
        builder.add(message.body, text, message.flag)
        ids.append(message_id)
    return max(start, len(messages))


def _plain(message: Any, topic: str, most: int) -> bool:
    """Whether a message may stand in this batch: of this topic, not delayed, neither empty nor larger than `most`."""
    if message.topic != topic or message.delay_level:
        return False
    if message.deliver_at is not None or message.deliver_after is not None:
        return False
    return 0 < memoryview(message.body).nbytes <= most
