"""Owns the message trace of sends, in the broker's own format, as its console reads it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mqclient.core.driver import Now
from mqclient.core.steps import Steps
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import Message
from mqclient.rocketmq.remoting.outgoing import HALF, Prepared, Stored
from mqclient.rocketmq.remoting.producer_options import ProducerOptions

if TYPE_CHECKING:
    from mqclient.rocketmq.remoting.producer import ProducerEngine

TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
TOGETHER: Final = 10
EVERY: Final = 5.0
WAITING: Final = 2048
MAX_BODY: Final = 120_000
NORMAL, HALF_MESSAGE, _, DELAYED = range(4)
_numbers = count()


class Record(NamedTuple):
    """One message that was stored: its line, and what it is found by."""

    text: str
    keys: tuple[str, ...]


class Trace:
    """Gathers records; sends them after ten, or after five seconds, by a producer of its own, which is not traced."""

    def __init__(self, traced: ProducerEngine, inner: ProducerEngine) -> None:
        self._traced = traced
        self._inner = inner
        self._remoting = traced.remoting
        self._records: deque[Record] = deque()
        self._armed = False
        self.dropped = 0

    @staticmethod
    def options() -> ProducerOptions:
        """Of the inner producer."""
        return ProducerOptions(send_timeout=5.0, compression=None)

    @staticmethod
    def group(traced: str) -> str:
        return f"_INNER_TRACE_PRODUCER-{traced}-PRODUCE-{next(_numbers)}"[:120]

    def sent(self, prepared: Prepared, stored: Stored, broker: str, seconds: float) -> None:
        """A request was stored; brokers that want no trace name no region."""
        region = stored.region
        if region is None:
            return
        for record in self._recorded(prepared, stored, broker, seconds, region):
            if len(self._records) >= WAITING:
                self.dropped += 1
            else:
                self._records.append(record)
        if len(self._records) >= TOGETHER:
            self.flush()
        elif self._records and not self._armed:
            self._armed = True
            self._traced.client.timers.after(EVERY, self._on_timer)

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
        if not self._traced.client.closed:
            self.flush()

    def _recorded(
        self, prepared: Prepared, stored: Stored, broker: str, seconds: float, region: str
    ) -> Iterator[Record]:
        milliseconds = round(seconds * 1000)
        born = self._traced.client.driver.now.wall_ms - milliseconds
        contents: list[Any] = [(0, prepared.body, prepared.properties)]
        if prepared.code == Request.SEND_BATCH_MESSAGE:
            contents = self._remoting.split_batch(prepared.body)
        for receipt, (_, body, text) in zip(stored.receipts(), contents, strict=True):
            properties = self._remoting.decode_properties(text)
            tag, keys = properties.get("TAGS", ""), properties.get("KEYS", "")
            delayed = any(name == "DELAY" or name.startswith("TIMER_") for name in properties)
            kind = HALF_MESSAGE if prepared.sys_flag & HALF else DELAYED if delayed else NORMAL
            named = ("Pub", born, region, self._traced.group, receipt.topic, receipt.message_id, tag, keys, broker)
            fields = (*named, len(body), milliseconds, kind, receipt.offset_id, "true")
            yield Record("\x01".join(map(str, fields)) + "\x02", (receipt.message_id, *keys.split(" ")))
