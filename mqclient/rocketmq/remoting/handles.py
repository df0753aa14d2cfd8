"""Owns the handles of popped messages: made of what a broker answered, and taken apart for an acknowledgement."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final, NamedTuple

from mqclient.errors import ProtocolError

NORMAL: Final = "0"
RETRY: Final = "1"
RETRY_2: Final = "2"


class Handle(NamedTuple):
    """Eight words: where the broker notes what became of a message that it gave to somebody for a while."""

    start: str
    pop_time: str
    invisible: str
    revive_queue: str
    mark: str
    """0: of the topic itself; 1 and 2: of the group's retry topic of that topic, by its older and newer name."""
    broker_name: str
    queue_id: str
    offset: str

    @classmethod
    def parse(cls, text: str) -> Handle:
        words = text.split(" ")
        if len(words) < 8 or not all(word.lstrip("-").isdigit() for word in (*words[:4], words[6], words[7])):
            raise ProtocolError(f"{text!r} is no handle of a popped message")
        return cls(*words[:8])

    def __str__(self) -> str:
        return " ".join(self)

    @property
    def expires_ms(self) -> int:
        """Wall time of the broker: from then on somebody else may get the message."""
        return int(self.pop_time) + int(self.invisible)

    def topic(self, group: str, topic: str) -> str:
        """Where the message really is stored."""
        return topic if self.mark == NORMAL else retry_topic(group, topic, newer=self.mark == RETRY_2)


def retry_topic(group: str, topic: str, *, newer: bool = False) -> str:
    return f"%RETRY%{group}{'+' if newer else '_'}{topic}"


def handles_of(frame: Any, batch: Any, broker_name: str, group: str, topic: str) -> list[Handle]:
    """One for each message of a pop's answer, in their order; ProtocolError if they do not fit together."""
    starts = _table(frame.field("startOffsetInfo", ""))
    offsets = _table(frame.field("msgOffsetInfo", ""))
    common = (frame.field("popTime", "0"), frame.field("invisibleTime", "0"), frame.field("reviveQid", "0"))
    places: dict[tuple[str, int], list[int]] = defaultdict(list)
    for message in batch:
        places[_place(message, group, topic)].append(message.offset)
    handles: list[Handle] = []
    for message in batch:
        known = message.property("POP_CK")
        if known:  # it comes again, and its handle came with it
            handles.append(Handle.parse(known))
            continue
        mark, queue_id = place = _place(message, group, topic)
        index = sorted(places[place]).index(message.offset)
        start, named = starts.get(place, [places[place][0]])[0], offsets.get(place, places[place])
        if index >= len(named):
            raise ProtocolError(f"{broker_name} popped {len(places[place])} messages and named {len(named)} offsets")
        handles.append(Handle(str(start), *common, mark, broker_name, str(queue_id), str(named[index])))
    return handles


def _place(message: Any, group: str, topic: str) -> tuple[str, int]:
    if message.topic == retry_topic(group, topic, newer=True):
        return RETRY_2, message.queue_id
    return (RETRY if message.topic == retry_topic(group, topic) else NORMAL), message.queue_id


def _table(text: str) -> dict[tuple[str, int], list[int]]:
    """`mark queue offset,offset;…`"""
    found: dict[tuple[str, int], list[int]] = {}
    for entry in filter(None, text.split(";")):
        try:
            mark, queue_id, offsets = entry.split(" ")
            found[mark, int(queue_id)] = [int(offset) for offset in offsets.split(",")]
        except ValueError as error:
            raise ProtocolError(f"{entry!r} is no place of popped messages") from error
    return found
