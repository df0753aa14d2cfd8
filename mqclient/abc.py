"""Owns the narrow views for callers that really are generic: what a thing can do, whatever its protocol.

Structural types, for annotations: nothing inherits from them and nothing registers. Where a protocol means something
else by a verb, its class is no such thing, and the type checker says so: a RocketMQ consumer is no `Acker`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

M = TypeVar("M")
In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)


class Sender(Protocol[In, Out]):
    """Sends one message and gives its receipt: a message id or a send receipt."""

    def send(self, message: In, /, *, timeout: float | None = ...) -> Out: ...


class Receiver(Protocol[Out]):
    """Gives messages: one, or DeadlineError; or what is there by the timeout, perhaps nothing."""

    def receive(self, timeout: float | None = ...) -> Out: ...

    def receive_many(self, max: int = ..., timeout: float | None = ...) -> Sequence[Out]: ...


class Acker(Protocol[In]):
    """Acknowledges messages one by one or as a list."""

    def ack(self, message: In, /) -> None: ...


class Seekable(Protocol[In]):
    """Goes on reading from another position."""

    def seek(self, to: In, /, timeout: float | None = ...) -> None: ...
