"""Owns the twin of the native ferry: messages to a request, its answer to receipts, one step after the other."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic, time_ns
from typing import Any

from .batch import BatchBuilder
from .frames import Frame
from .lane import Crossing
from .outgoing import add_messages, message_text
from .receipts import receipts
from .sends import SendHead

AROUND = 22


class Berth:
    """One queue, and the way to its broker."""

    __slots__ = ("address", "alone", "batch", "passage", "queue")

    def __init__(self, queue: Any, address: str, alone: SendHead, batch: SendHead, /) -> None:
        self.queue = queue
        self.address = address
        self.alone = alone
        self.batch = batch
        self.passage: Any = None


class Ferry:
    """One producer's."""

    __slots__ = ("_owner", "_terms", "closed", "courses", "keys")

    def __init__(self, owner: Any, terms: Any, /) -> None:
        self.courses: dict[str, list[Berth]] = {}
        self.keys = terms.keys
        self.closed = False
        self._owner = owner
        self._terms = terms
        if not issubclass(terms.content, tuple) or not issubclass(terms.receipt, tuple):
            raise TypeError("contents and receipts are kinds of tuple")

    def send(self, message: Any, key: str | None, queue: Any, timeout: float | None, /) -> Any:
        """Its receipt; None: nothing was done, take the long way."""
        if key is not None or queue is not None or type(message) is not self._terms.kind:
            return None
        berth = self._berth(message.topic, timeout)
        content = None if berth is None else self._single(message)
        if berth is None or content is None:
            return None
        done = self._cross(berth, content, False, timeout)
        return None if done is None else done[0]

    def send_many(self, messages: Any, key: Any, timeout: float | None, /) -> Any:
        """What became of each; None: nothing was done, take the long way."""
        if key is not None or self._terms.decorates or type(messages) is not list or len(messages) < 2:
            return None
        if type(messages[0]) is not self._terms.kind:
            return None
        berth = self._berth(messages[0].topic, timeout)
        content = None if berth is None else self._batch(messages)
        return None if berth is None or content is None else self._cross(berth, content, True, timeout)

    def _berth(self, topic: Any, timeout: float | None) -> Berth | None:
        terms = self._terms
        if self.closed or terms.faults or type(topic) is not str or self._seconds(timeout) < terms.timely:
            return None
        course = self.courses.get(topic) or self._owner.chart(topic)
        if course is None:
            return None
        found: Berth = course[(terms.turns[topic] + 1) % len(course)]
        if found.passage is None or found.passage.connection.link is not found.passage.link:
            found.passage = self._owner.board(found.address)
        return None if found.passage is None or found.passage.taken else found

    def _seconds(self, timeout: float | None) -> float:
        seconds: float = self._terms.send_timeout if timeout is None else timeout
        return seconds

    def _single(self, message: Any) -> Any:
        terms = self._terms
        if type(message.body) is not bytes or len(message.body) >= terms.most_together:
            return None
        made = None
        if not terms.decorates:
            made = message_text(message, self.keys, _wall_ms(), terms.reserved, terms.most_plain)
        if made is None:
            return terms.prepare(message)
        return self._made(message.topic, message.body, made[0], (made[1],), message.flag, terms.codes[0])

    def _batch(self, messages: list[Any]) -> Any:
        terms, ids, builder, topic = self._terms, list[str](), BatchBuilder(), messages[0].topic
        if any(type(message) is not terms.kind or type(message.body) is not bytes for message in messages):
            return None
        if len(messages) * (AROUND + len(messages[0].body)) >= terms.most_together:
            return None
        stop = add_messages(
            builder, messages, 0, topic, self.keys, _wall_ms(), ids, terms.reserved,
            max_size=terms.most_together - 1, most=terms.most_plain,
        )  # fmt: skip
        if stop < len(messages):
            return None
        return self._made(topic, builder.seal(), terms.batch_properties, ids, 0, terms.codes[1])

    def _made(self, topic: str, body: bytes, properties: bytes, ids: Sequence[str], flag: int, code: Any) -> Any:
        return self._terms.content(topic, body, properties, ids, flag, 0, None, False, code, "")

    def _cross(self, berth: Berth, content: Any, many: bool, timeout: float | None) -> Any:
        terms, now = self._terms, monotonic()
        topic, body, properties, ids, flag, sys_flag = content[:6]
        turn, opaque = terms.turns[topic] + 1, next(terms.opaques) & 0x7FFFFFFF
        head = berth.batch if many else berth.alone
        frame = head.frame(opaque, properties, body, _wall_ms(), sys_flag, flag)
        what = (content, berth.queue, berth.address, now + self._seconds(timeout), now, many)
        crossing = Crossing(berth.passage, opaque, what)
        answer = self._owner.lane.exchange(crossing, frame, len(ids))
        if answer is None:
            return None
        terms.turns[topic] = turn
        if type(answer) is Frame:
            return receipts(terms.receipt, answer, berth.queue, ids, "SEND_OK")
        return self._owner.settle(crossing, answer)


def _wall_ms() -> int:
    return time_ns() // 1_000_000
