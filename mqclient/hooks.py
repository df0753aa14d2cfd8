"""The shapes of hooks: what metrics and traces are told about sends and handlers, whatever the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol


class Sent(NamedTuple):
    """What came of one send request: a message, or a batch."""

    topic: str
    group: str
    """Of Pulsar the producer's name, or the subscription."""
    message_ids: Sequence[str]
    size: int
    """Bytes of the request's body, as it was sent; of Pulsar the whole entry."""
    seconds: float
    """From the first try to the outcome."""
    broker: str
    """The address of the last try; empty if none was made."""
    status: str
    """The broker's word for a stored message; of Pulsar STORED, or DUPLICATE where it was there already; empty after an
    error."""
    error: BaseException | None


class BeforeSend(Protocol):
    """Runs in the sender's own thread or task, and context, before each message."""

    def before_send(self, message: Any, properties: dict[str, str]) -> None:
        """Put properties into it that shall travel with the message, such as a `traceparent`."""


class AfterSend(Protocol):
    """Runs where user code may run, after each request."""

    def after_send(self, sent: Sent) -> None:
        """Count it, time it, tell it."""


class Consumed(NamedTuple):
    """What came of one call of a consumer's handler."""

    topic: str
    group: str
    messages: Sequence[Any]
    """As the handler got them."""
    seconds: float
    error: BaseException | None
    """What the handler raised."""


class AroundConsume(Protocol):
    """Runs where the handler runs, in its context: a span that is current while the handler works, for instance."""

    def around_consume(self, messages: Sequence[Any]) -> AbstractContextManager[Any]:
        """Entered before the handler is called, and left, with what it raised, when it has ended."""


class AfterConsume(Protocol):
    """Runs where user code may run, after each call of the handler."""

    def after_consume(self, consumed: Consumed) -> None:
        """Count it, time it, tell it."""
