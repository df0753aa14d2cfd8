"""Messages as users make them, into the body of a batch send."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from .batch import MOST, BatchBuilder
from .ids import UniqueKeys
from .properties import checked_size, encode_properties


def add_messages(
    builder: BatchBuilder,
    messages: Sequence[Any],
    start: int,
    topic: str,
    unique: UniqueKeys,
    now_ms: int,
    ids: list[str],
    reserved: AbstractSet[str],
    *,
    max_size: int = MOST,
    max_count: int = sys.maxsize,
    most: int = MOST,
    kind: type[Any] | None = None,
) -> int:
    """Append messages from `start` on; gives the place of the first that was not added."""
    for place in range(start, len(messages)):
        message = messages[place]
        if builder.count >= max_count or message.topic != topic or not _plain(message, most, reserved):
            return place
        text, message_id = _text(message, unique, now_ms)
        size = 22 + memoryview(message.body).nbytes + len(text)
        if builder.count and builder.size + size > max_size:
            return place
        builder.add(message.body, text, message.flag)
        ids.append(message_id)
    return max(start, len(messages))


def message_text(
    message: Any,
    unique: UniqueKeys,
    now_ms: int,
    reserved: AbstractSet[str],
    most: int = MOST,
    kind: type[Any] | None = None,
) -> tuple[bytes, str] | None:
    """Of a message that goes alone: its properties as they are sent, and its id; None if it needs other care."""
    if not _plain(message, most, reserved):
        return None
    text, message_id = _text(message, unique, now_ms)
    return checked_size(text), message_id


def _text(message: Any, unique: UniqueKeys, now_ms: int) -> tuple[bytes, str]:
    message_id = unique.next(now_ms)
    properties = {"UNIQ_KEY": message_id, "WAIT": "true"}
    if message.tag:
        properties["TAGS"] = message.tag
    if message.keys:
        properties["KEYS"] = " ".join(message.keys)
    return encode_properties(properties) + encode_properties(message.properties), message_id


def _plain(message: Any, most: int, reserved: AbstractSet[str]) -> bool:
    """Whether it needs no other care: not delayed, neither empty nor larger than `most`, of its own properties only."""
    if message.delay_level or not reserved.isdisjoint(message.properties):
        return False
    if message.deliver_at is not None or message.deliver_after is not None:
        return False
    return 0 < memoryview(message.body).nbytes <= most
