"""Owns what hooks see of Pulsar: messages before they are sent, entries with their outcome, calls of listeners."""

from __future__ import annotations

import logging
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, NamedTuple

from mqclient.core.hooking import ConsumeHooks, SendHooks
from mqclient.hooks import Consumed, Sent
from mqclient.pulsar.outgoing import plain

if TYPE_CHECKING:
    from mqclient.pulsar.batch import Batch
    from mqclient.pulsar.producer import ProducerEngine
    from mqclient.pulsar.subscribing import Engine

log = logging.getLogger("mqclient.pulsar")


class Outgoing(NamedTuple):
    """What `before_send` sees of a message."""

    topic: str
    body: Any
    """Bytes as they will travel, before compression; None: a null value."""
    key: str | bytes | None
    properties: Mapping[str, str]
    event_time: int


def send_hooks(hooks: Sequence[Any]) -> SendHooks:
    return SendHooks(hooks, log)


def hooked(make: Callable[..., Any], hooks: SendHooks, topic: str) -> Callable[..., Any]:
    """`prepare` with what hooks put into each message: outside of any entry, for they are user code."""
    if not hooks.adds:
        return make

    def prepare_hooked(*given: Any, **named: Any) -> Any:
        message = make(*given, **named)
        item = plain(message)
        body, key, properties, event_time, ordering_key, number, key_b64 = item
        shown = Outgoing(topic, body, b64decode(key or "") if key_b64 else key, properties or {}, event_time)
        added = hooks.properties(shown)
        item = (body, key, {**(properties or {}), **added}, event_time, ordering_key, number, key_b64)
        return item if type(message) is tuple else message._replace(item=item)

    prepare_hooked.pairs = getattr(make, "pairs", False)  # type: ignore[attr-defined]
    return prepare_hooked


class Telling:
    """To the `after_send` hooks of one producer: what came of each entry."""

    def __init__(self, engine: ProducerEngine, hooks: SendHooks) -> None:
        self._engine = engine
        self._hooks = hooks

    def on_done(self, batch: Batch) -> None:
        """Inside an entry."""
        if batch.known and not batch.frame:
            return  # its one message could not be written, as whoever sent it knows
        engine = self._engine
        seconds = engine.client.driver.now.mono - (batch.deadline - engine.options.send_timeout)
        connection = engine.attachment.connection
        broker = "" if connection is None else str(connection.link.address)
        told = (batch, len(batch.frame), seconds, broker)
        engine.client.driver.run_user(self._tell, told)

    def _tell(self, told: tuple[Batch, int, float, str]) -> None:
        batch, size, seconds, broker = told
        ids = [] if batch.error is not None else [str(one) for one in batch.outcomes(0, batch.count)]
        status = "" if batch.error is not None else "DUPLICATE" if batch.known else "STORED"
        topic, name = str(self._engine.topic), self._engine.name
        self._hooks.tell(Sent(topic, name, ids, size, seconds, broker, status, batch.error))


def telling(engine: ProducerEngine, hooks: SendHooks) -> Callable[[Batch], None] | None:
    """Who is told when an entry has its outcome; None: nobody wants to know."""
    return Telling(engine, hooks).on_done if hooks.listens else None


def observed(engine: Engine, handle: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A listener with its hooks; itself if there are none."""
    if not engine.options.hooks:
        return handle
    hooks = ConsumeHooks(engine.options.hooks, log)
    whole = hooks.wrap(lambda messages: handle(messages[0]))
    return Observed(engine, whole, hooks) if hooks.listens else lambda message: whole([message])


class Observed:
    """A listener whose calls are timed and told."""

    def __init__(self, engine: Engine, whole: Callable[[Any], Any], hooks: ConsumeHooks) -> None:
        self._engine = engine
        self._driver = engine.client.driver
        self._whole = whole
        self._hooks = hooks

    def __call__(self, message: Any) -> Any:
        with self._driver.enter() as now:
            began = now.mono
        try:
            outcome = self._whole([message])
        except BaseException as error:
            self._told(message, began, error)
            raise
        if isawaitable(outcome):
            return self._finish(outcome, message, began)
        self._told(message, began, None)
        return outcome

    async def _finish(self, outcome: Awaitable[Any], message: Any, began: float) -> Any:
        try:
            value = await outcome
        except BaseException as error:
            self._told(message, began, error)
            raise
        self._told(message, began, None)
        return value

    def _told(self, message: Any, began: float, error: BaseException | None) -> None:
        with self._driver.enter() as now:
            topic, group = message.topic or str(self._engine.topic), self._engine.subscription
            consumed = Consumed(topic, group, [message], now.mono - began, error)
            self._driver.run_user(self._hooks.tell, consumed)
