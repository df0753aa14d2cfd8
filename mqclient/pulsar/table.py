"""Owns a table of a topic: of each key what was said last."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, run_steps
from mqclient.errors import DeadlineError, MQError
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.listening import Listening
from mqclient.pulsar.subscribing import Engine, Topics, open_reader

log = logging.getLogger("mqclient.pulsar")

Told = Callable[[str, Any], object]
Goal = dict[str, Any]
"""Of each topic the message that is to be there."""


class Table:
    """Fed by a reader's listener, one message at a time; read by anybody, at any time.

    A message without key says nothing, one without value takes its key away.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.rows: dict[str, Any] = {}
        """Key -> message."""
        self.listeners: list[Told] = []
        self._driver = engine.client.driver
        self._at: dict[str, Any] = {}
        self._goals: list[tuple[Goal, Slot[None]]] = []

    def listen(self, told: Told, existing: bool) -> None:
        """Tell of each change from now on: key and value, None where the key is taken away."""
        self.listeners.append(told)
        for key, message in list(self.rows.items()) if existing else ():
            told(key, value_of(message))

    def apply(self, message: Any) -> None:
        """Where user code runs."""
        key = message.key
        if key is not None:
            gone = message.null_value or not message.body
            if gone:
                self.rows.pop(key, None)
            else:
                self.rows[key] = message
            for told in self.listeners:
                try:
                    told(key, None if gone else value_of(message))
                except Exception:
                    log.exception("a listener of the table of %s failed", self.engine.topic)
        # Race: who asks notes its goal, *then* looks how far we are; we say how far we are, *then* look for goals.
        self._at[message.topic] = message.message_id
        if self._goals:
            with self._driver.enter():
                self._look()

    # ---- inside entries

    def refresh_steps(self, deadline: float | None) -> Steps[None]:
        """Until all is here that is in the topic now."""
        limit = self.engine.client.deadline() if deadline is None else deadline
        last = yield run_steps(self.engine.last_message_ids_steps())
        reached: Slot[None] = Slot()
        self._goals.append(({topic: at for topic, at in last.items() if at is not None}, reached))
        self._look()
        late = DeadlineError(f"the table of {self.engine.topic} was not complete in time")
        timer = self.engine.client.timers.at(limit, lambda _: reached.fail(late))
        try:
            yield reached
        finally:
            timer.cancel()
            self._goals = [goal for goal in self._goals if goal[1] is not reached]

    def close_steps(self) -> Steps[None]:
        yield run_steps(self.engine.close_steps())

    def _look(self) -> None:
        for goal, reached in self._goals:
            if all(topic in self._at and self._at[topic] >= last for topic, last in goal.items()):
                reached.complete(None)


def value_of(message: Any) -> Any:
    """What a schema makes of the body; without one the body."""
    return getattr(message, "value", message.body)


def open_table(client: ClientEngine, topic: Topics, options: Mapping[str, Any], deadline: float | None) -> Slot[Table]:
    """A table that holds all that is in the topic now."""
    return run_steps(_open_steps(client, topic, options, client.deadline() if deadline is None else deadline))


def _open_steps(client: ClientEngine, topic: Topics, options: Mapping[str, Any], limit: float) -> Steps[Table]:
    given = {"read_compacted": True, **options}
    engine: Engine = yield open_reader(client, topic, "earliest", given, limit)
    table = Table(engine)
    try:
        engine.listening = Listening(engine, table.apply, 1)
        engine.listening.start()
        yield run_steps(table.refresh_steps(limit))
    except MQError:
        yield run_steps(engine.close_steps())
        raise
    return table
