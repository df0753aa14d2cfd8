"""Owns the message trace, in the broker's own format, as its console reads it: of sends, and of calls of handlers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import count
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mqclient.core.driver import Now
from mqclient.core.steps import Steps
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import Message
from mqclient.rocketmq.remoting.handling import Retry
from mqclient.rocketmq.remoting.outgoing import HALF, Prepared, Stored
from mqclient.rocketmq.remoting.producer_options import ProducerOptions

if TYPE_CHECKING:
    from mqclient.rocketmq.remoting.producer import ProducerEngine

TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
TOGETHER: Final = 10
EVERY: Final = 5.0
WAITING: Final = 2048
MAX_BODY: Final = 120_000
REGION: Final = "DefaultRegion"
SUCCESS, _TIME_OUT, EXCEPTION, _RETURNED_NULL, FAILED = range(5)
NORMAL, HALF_MESSAGE, _, DELAYED = range(4)
_numbers = count()


class Record(NamedTuple):
    """One message that was stored: its line, and what it is found by."""

    text: str
    keys: tuple[str, ...]


class Records:
    """Gathers records; sends them after ten, or after five seconds, by a producer of its own, which is not traced."""

    def __init__(self, client: Any, inner: ProducerEngine) -> None:
        self.client = client
        self._inner = inner
        self._records: deque[Record] = deque()
        self._armed = False
        self.dropped = 0

    @staticmethod
    def options() -> ProducerOptions:
        """Of the inner producer."""
        return ProducerOptions(send_timeout=5.0, compression=None)

    @staticmethod
    def group(traced: str, what: str = "PRODUCE") -> str:
        return f"_INNER_TRACE_PRODUCER-{traced}-{what}-{next(_numbers)}"[:120]

    def add(self, records: Iterable[Record]) -> None:
        """More than can wait is dropped, and counted."""
        for record in records:
            if len(self._records) >= WAITING:
                self.dropped += 1
            else:
                self._records.append(record)
        if len(self._records) >= TOGETHER:
            self.flush()
        elif self._records and not self._armed:
            self._armed = True
            self.client.timers.after(EVERY, self._on_timer)

    def flush(self) -> None:
        """Send what is there, in as many messages as their size asks for."""
        while self._records:
            texts: list[str] = []
            keys: list[str] = []
            size = 0
            while self._records and size + len(self._records[0].text) * 3 < MAX_BODY:
                record = self._records.popleft()
                texts.append(record.text)
                keys += record.keys
                size += len(record.text.encode())
            if not texts:  # larger than anything that could be sent
                self._records.popleft()
                self.dropped += 1
                continue
            message = Message(TOPIC, "".join(texts).encode(), keys=[key for key in keys if key])
            self._inner.send(self._inner.prepare(message), None)

    def forget(self) -> None:
        """In a forked child: the records are the parent's, and so was the timer."""
        self._records.clear()
        self._armed = False

    def close_steps(self) -> Steps[None]:
        self.flush()
        yield from self._inner.close_steps()

    def _on_timer(self, now: Now) -> None:
        self._armed = False
        if not self.client.closed:
            self.flush()


class Trace(Records):
    """Of one producer's sends."""

    def __init__(self, traced: ProducerEngine, inner: ProducerEngine) -> None:
        super().__init__(traced.client, inner)
        self._traced = traced

    def sent(self, prepared: Prepared, stored: Stored, broker: str, seconds: float) -> None:
        """A request was stored; brokers that want no trace name no region."""
        if stored.region is not None:
            self.add(self._recorded(prepared, stored, broker, seconds, stored.region))

    def _recorded(
        self, prepared: Prepared, stored: Stored, broker: str, seconds: float, region: str
    ) -> Iterator[Record]:
        milliseconds = round(seconds * 1000)
        born = self.client.driver.now.wall_ms - milliseconds
        contents: list[Any] = [(0, prepared.body, prepared.properties)]
        if prepared.code == Request.SEND_BATCH_MESSAGE:
            contents = self._traced.remoting.split_batch(prepared.body)
        for receipt, (_, body, text) in zip(stored.receipts(), contents, strict=True):
            properties = self._traced.remoting.decode_properties(text)
            tag, keys = properties.get("TAGS", ""), properties.get("KEYS", "")
            delayed = any(name == "DELAY" or name.startswith("TIMER_") for name in properties)
            kind = HALF_MESSAGE if prepared.sys_flag & HALF else DELAYED if delayed else NORMAL
            named = ("Pub", born, region, self._traced.group, receipt.topic, receipt.message_id, tag, keys, broker)
            fields = (*named, len(body), milliseconds, kind, receipt.offset_id, "true")
            yield Record("\x01".join(map(str, fields)) + "\x02", (receipt.message_id, *keys.split(" ")))


class ConsumeTrace(Records):
    """Of one push consumer's calls: a record when a message's handler begins, and one when it ends."""

    def __init__(self, client: Any, group: str, inner: ProducerEngine) -> None:
        super().__init__(client, inner)
        self._group = group

    def begins(self, messages: Any) -> str:
        """The id of the call, for `ended`."""
        request = token_hex(16)
        now = self.client.driver.now.wall_ms
        self.add(
            _record(
                ("SubBefore", now, region, self._group, request, message.message_id, message.attempts, _keys(message)),
                message,
            )
            for message, region in _traced(messages)
        )
        return request

    def ended(self, request: str, messages: Any, seconds: float, error: BaseException | None) -> None:
        """What came of it, of each message: those that a `Retry` does not name went well."""
        now = self.client.driver.now.wall_ms
        each = round(1000 * seconds / max(1, len(messages)))
        again = set() if error is None else {message.offset for message in failed_of(error, messages)}
        failure = FAILED if isinstance(error, Retry) else EXCEPTION
        for message, _ in _traced(messages):
            bad = message.offset in again
            outcome = ("false", _keys(message), failure) if bad else ("true", _keys(message), SUCCESS)
            fields = ("SubAfter", request, message.message_id, each, *outcome, now, self._group)
            self.add([_record(fields, message)])


def failed_of(error: BaseException, messages: Any) -> list[Any]:
    """The messages that come again after this error of their handler."""
    return error.failed(messages) if isinstance(error, Retry) else list(messages)


def _traced(messages: Any) -> Iterator[tuple[Any, str]]:
    """The messages that are to be traced, each with its region."""
    for message in messages:
        if message.property("TRACE_ON") != "false":
            yield message, message.property("MSG_REGION") or REGION


def _keys(message: Any) -> str:
    return " ".join(message.keys)


def _record(fields: tuple[Any, ...], message: Any) -> Record:
    return Record("\x01".join(map(str, fields)) + "\x02", (message.message_id, *message.keys))
