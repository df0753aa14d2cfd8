"""Owns how consumers and readers come to be: options checked, topics looked at, opened."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, run_steps
from mqclient.errors import ClosedError, ConfigError, MQError
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.consumer import ConsumerEngine
from mqclient.pulsar.consumer_options import ConsumerOptions, DeadLetter
from mqclient.pulsar.dead_letter import dead_letter_topic, retry_topic
from mqclient.pulsar.listening import Listening
from mqclient.pulsar.multi import MultiConsumer
from mqclient.pulsar.names import TopicName
from mqclient.pulsar.options import checked
from mqclient.pulsar.patience import partitions_steps
from mqclient.pulsar.pattern import PatternConsumer

Engine: TypeAlias = ConsumerEngine | MultiConsumer
"""What a consumer or reader face talks to."""

Topics: TypeAlias = str | Sequence[str] | re.Pattern[str]
"""What a consumer is made for."""


def open_consumer(
    client: ClientEngine, topics: Topics, subscription: str, options: Mapping[str, Any], deadline: float | None
) -> Slot[Engine]:
    limit = client.deadline() if deadline is None else deadline
    return run_steps(_open_steps(client, topics, subscription, checked(ConsumerOptions, options), limit))


def open_reader(
    client: ClientEngine, topics: Topics, start: Any, options: Mapping[str, Any], deadline: float | None
) -> Slot[Engine]:
    """A consumer of a subscription that nothing durable is kept of."""
    if isinstance(topics, re.Pattern):
        raise ConfigError("a reader reads topics that are named; a pattern needs a consumer")
    given = {"start": start, **options, "durable": False, "type": "exclusive"}
    return open_consumer(client, topics, f"reader-{secrets.token_hex(5)}", given, deadline)


def _open_steps(
    client: ClientEngine, topics: Topics, subscription: str, options: ConsumerOptions, limit: float
) -> Steps[Engine]:
    if client.closed:
        raise ClosedError("the client is closed")
    engine = yield run_steps(_make_steps(client, topics, subscription, options, limit))
    if options.listener is not None:
        engine.listening = Listening(engine, options.listener, options.threads)
    opened = engine.open(limit) if isinstance(engine, ConsumerEngine) else run_steps(engine.open_steps(limit))
    try:
        yield opened
    except MQError as error:
        engine.abandon(error)
        raise
    if engine.listening is not None:
        engine.listening.start()
    opened_engine: Engine = engine
    return opened_engine


def _make_steps(
    client: ClientEngine, topics: Topics, subscription: str, options: ConsumerOptions, limit: float
) -> Steps[Engine]:
    if isinstance(topics, re.Pattern):
        if options.retry:
            raise ConfigError("retry=True needs topics that are named, not a pattern")
        return PatternConsumer(client, topics, subscription, options)
    names = _names(topics)
    if options.read_compacted and not all(name.persistent for name in names):
        raise ConfigError("read_compacted needs persistent topics: of others nothing is kept")
    if options.letters is not None:
        options = _with_names(names[0], subscription, options, options.letters)
        if options.retry and options.dead_letter is not None:
            names.append(TopicName.parse(str(options.dead_letter.retry_topic)))
    if len(names) > 1 or (yield run_steps(partitions_steps(client, names[0], limit))):
        return MultiConsumer(client, names, subscription, options)
    return ConsumerEngine(client, names[0], subscription, options)


def _with_names(topic: TopicName, subscription: str, options: ConsumerOptions, policy: DeadLetter) -> ConsumerOptions:
    """All topics of one consumer have their letters in common, those from the retry topic, too."""
    dead, retry = dead_letter_topic(topic, subscription, policy), retry_topic(topic, subscription, policy)
    return replace(options, dead_letter=replace(policy, topic=dead, retry_topic=retry))


def _names(topics: str | Sequence[str]) -> list[TopicName]:
    given = [topics] if isinstance(topics, str) else list(topics)
    if any(isinstance(topic, re.Pattern) for topic in given):
        raise ConfigError("a pattern stands alone: either name the topics or give one pattern that matches them")
    names = [TopicName.parse(topic) for topic in given]
    if not names:
        raise ConfigError("a consumer has at least one topic")
    return list(dict.fromkeys(names))
