"""Owns which definition entries were written with: asked of the broker once a version, while entries wait in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, run_steps
from mqclient.errors import MQError, RemoteError
from mqclient.pulsar import requests
from mqclient.pulsar.schema.base import Schema, SchemaInfo

if TYPE_CHECKING:
    from mqclient.pulsar.consumer import ConsumerEngine

AGAIN = 1.0
"""Seconds until the next try."""

Reader = Callable[[Any], Any]


class Values:
    """Gives each entry what makes values of its messages. Inside entries only.

    Definitions never change, so a version is asked for once; one that the broker does not give is an error of those
    messages' `value`, not of the consumer.
    """

    __slots__ = ("_asking", "_consumer", "_plain", "_readers", "_schema", "_waiting")

    def __init__(self, consumer: ConsumerEngine, schema: Schema[Any]) -> None:
        self._consumer = consumer
        self._schema = schema
        self._plain: Reader = schema.value_of
        self._readers: dict[bytes, Reader] = {}
        self._waiting: deque[tuple[Any, Any]] = deque()
        self._asking = False

    def __len__(self) -> int:
        return len(self._waiting)

    def admit(self, entry: Any, source: Any) -> bool:
        """Whether it can be delivered now; else it is, later."""
        if not self._waiting and self._give(entry):
            return True
        self._waiting.append((entry, source))
        self._ask()
        return False

    def clear(self) -> int:
        """Drop what waits; the permits of it."""
        dropped: int = sum(entry.charged for entry, _ in self._waiting)
        self._waiting.clear()
        return dropped

    def _give(self, entry: Any) -> bool:
        version = entry.schema_version
        reader = self._readers.get(version) if self._schema.versioned and version else self._plain
        entry.values = reader
        return reader is not None

    def _ask(self) -> None:
        if not self._asking and self._waiting and self._consumer.connection is not None:
            self._asking = True
            version = self._waiting[0][0].schema_version
            run_steps(self._ask_steps(version)).then(self._answered)

    def _ask_steps(self, version: bytes) -> Steps[None]:
        consumer = self._consumer
        connection = consumer.connection
        assert connection is not None
        command = requests.get_schema(str(consumer.topic), version)
        try:
            reply = yield connection.request(command, consumer.client.deadline())
        except RemoteError as error:
            self._readers[version] = _failing(error)
        else:
            self._readers[version] = _reading(self._schema, requests.schema_info(reply.schema))

    def _answered(self, slot: Slot[None]) -> None:
        self._asking = False
        if slot.error is not None:
            # Either the connection is gone, and what waits with it, or the broker is slow: then again.
            self._consumer.client.timers.after(AGAIN, lambda _: self._ask())
            return
        while self._waiting and self._give(self._waiting[0][0]):
            self._consumer.intake.deliver(*self._waiting.popleft())
        self._ask()


def _reading(schema: Schema[Any], writer: SchemaInfo) -> Reader:
    return lambda message: schema.value_of(message, writer)


def _failing(error: MQError) -> Reader:
    def fail(message: Any) -> Any:
        raise error

    return fail
