"""Owns a consumer of all topics whose names match: who they are, who came, who went."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, gather, run_steps
from mqclient.errors import ConfigError, MQError
from mqclient.pulsar import requests
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.connection import Connection
from mqclient.pulsar.consumer import ConsumerEngine
from mqclient.pulsar.consumer_options import ConsumerOptions
from mqclient.pulsar.multi import MultiConsumer
from mqclient.pulsar.names import TopicName, without_partition

log = logging.getLogger("mqclient.pulsar")

MODES: Mapping[str, int] = {"persistent": 0, "non_persistent": 1, "all": 2}
SYSTEM = re.compile(r"__change_events|__transaction_buffer_snapshot.*|.*__transaction_pending_ack")
"""Local names of the broker's own topics."""
_PLAIN = re.compile(r"[-=:.\w]+")


class Pattern:
    """A regular expression over the local names of one namespace.

    >>> Pattern(re.compile("shop/eu/orders-.*")).matches(TopicName.parse("shop/eu/orders-7"))
    True
    >>> str(Pattern(re.compile("orders-.*")))
    'public/default/orders-.*'
    """

    def __init__(self, pattern: re.Pattern[str]) -> None:
        text = pattern.pattern
        if not isinstance(text, str):
            raise ConfigError("a pattern of topics is text, not bytes")
        self.domain, separator, rest = text.partition("://")
        rest = rest if separator else text
        parts = rest.split("/", 2)
        if len(parts) == 1 and not separator:
            parts = ["public", "default", parts[0]]
        if len(parts) != 3 or not all(parts) or not all(map(_PLAIN.fullmatch, parts[:2])):
            raise ConfigError(
                f"pattern {text!r}: it is 'orders-.*', 'tenant/namespace/orders-.*' or "
                "'persistent://tenant/namespace/orders-.*': only the last part may hold signs"
            )
        self.domain = self.domain if separator else ""
        self.namespace = f"{parts[0]}/{parts[1]}"
        self._local = re.compile(parts[2], pattern.flags)
        self._text = f"{self.namespace}/{parts[2]}"

    def __str__(self) -> str:
        return self._text

    def matches(self, topic: TopicName) -> bool:
        if f"{topic.tenant}/{topic.namespace}" != self.namespace or SYSTEM.fullmatch(topic.local):
            return False
        return self.domain in ("", topic.domain) and self._local.fullmatch(topic.local) is not None

    def among(self, topics: Iterable[str]) -> list[TopicName]:
        """Those that match; partitions count as their topic."""
        found = dict.fromkeys(without_partition(TopicName.parse(name)) for name in topics)
        return [name for name in found if self.matches(name)]


def matching_steps(client: ClientEngine, pattern: Pattern, mode: int, limit: float) -> Steps[list[TopicName]]:
    """Who matches now; partitions count as their topic."""
    connection = yield run_steps(client.service_steps(limit, pattern.namespace))
    reply = yield connection.request(requests.topics(pattern.namespace, mode, None), limit)
    return pattern.among(reply.topics)


class PatternConsumer(MultiConsumer):
    """A consumer of many topics, whose topics come and go.

    The namespace is asked every `pattern_period` seconds, and at once when the broker's watcher says that something
    changed; so an update that got lost delays, and nothing more. A topic that comes later is read from its beginning.
    """

    makes_topics = False

    def __init__(
        self, client: ClientEngine, pattern: re.Pattern[str], subscription: str, options: ConsumerOptions
    ) -> None:
        self._pattern = Pattern(pattern)
        if self._pattern.domain and options.pattern_mode not in (self._pattern.domain.replace("-", "_"), "all"):
            raise ConfigError(f"pattern_mode={options.pattern_mode!r} finds no topic that is {self._pattern.domain}")
        super().__init__(client, [], subscription, options)
        self._hash: str | None = None
        self._names: list[TopicName] = []
        self._watched: Connection | None = None
        self._watcher_id = client.next_consumer_id()
        self._looking = False
        self._again = False

    @property
    def topic(self) -> str:
        return str(self._pattern)

    def on_child_failed(self, child: ConsumerEngine, error: MQError) -> None:
        """A topic that is gone is nobody's trouble here; if it comes again, it is found again."""
        self.children.pop(str(child.topic), None)
        self._bases.pop(without_partition(child.topic), None)
        self._hash = None

    # ---- told by the connection

    def on_topics_changed(self) -> None:
        """The watcher's word: look at once, or once more when the look that is under way has ended."""
        if self._looking:
            self._again = True
        elif self._closed is None:
            self._stop_timer()
            self._on_timer(self.client.driver.now)

    def on_watcher_lost(self) -> None:
        self._watched = None

    # ---- opening and looking

    def open_steps(self, deadline: float) -> Steps[None]:
        self.client.join(self)
        self._names = yield run_steps(self._list_steps(deadline))
        new = yield run_steps(self._ask_steps(self._names, deadline))
        yield run_steps(self._add_steps(new, self.options, deadline))
        yield run_steps(self._watch_steps())
        self._arm()

    def grow_steps(self) -> Steps[None]:
        limit = self.client.deadline()
        self._names = yield run_steps(self._list_steps(limit))
        yield run_steps(self._drop_steps([base for base in self._bases if base not in self._names]))
        # One by one: a topic that cannot be opened keeps none of the others away.
        ended = yield gather([run_steps(self._add_one_steps(base, limit)) for base in self._names])
        for base, slot in zip(self._names, ended, strict=False):
            if slot.error is not None and self._closed is None:
                log.warning("%s: cannot consume %s: %s", self._pattern, base, slot.error)
        yield run_steps(self._watch_steps())

    def _add_one_steps(self, base: TopicName, limit: float) -> Steps[None]:
        if self._bases.get(base) == 0 or self._closed is not None:
            return
        new = yield run_steps(self._ask_steps([base], limit))
        if new and self._closed is None:
            yield run_steps(self._add_steps(new, self._from_now_on(), limit))

    def _drop_steps(self, gone: Sequence[TopicName]) -> Steps[None]:
        children = [child for child in self._children() if without_partition(child.topic) in gone]
        for base in gone:
            del self._bases[base]
        yield gather([run_steps(child.close_steps()) for child in children])

    def _list_steps(self, limit: float) -> Steps[list[TopicName]]:
        """Who matches; partitions count as their topic."""
        mode = MODES[self.options.pattern_mode]
        connection = yield run_steps(self.client.service_steps(limit, self._pattern.namespace))
        reply = yield connection.request(requests.topics(self._pattern.namespace, mode, self._hash), limit)
        if not reply.changed:
            return self._names
        self._hash = reply.topics_hash or None
        return self._pattern.among(reply.topics)

    def _watch_steps(self) -> Steps[None]:
        """Have the broker say when something changes, where it can; a refusal leaves the period."""
        if self._watched is not None or self._closed is not None:
            return
        limit = self.client.deadline()
        try:
            connection = yield run_steps(self.client.service_steps(limit, self._pattern.namespace))
            if not connection.features.get("supports_topic_watchers"):
                return
            connection.watchers[self._watcher_id] = self
            self._watched = connection
            ask = requests.watch_topics(self._watcher_id, self._pattern.namespace, str(self._pattern))
            yield connection.request(ask, limit)
        except MQError as error:
            log.info("%s: no watcher: %s", self._pattern, error)
            if self._watched is not None:
                self._watched.watchers.pop(self._watcher_id, None)
                self._watched = None

    def _unwatch(self) -> None:
        connection, self._watched = self._watched, None
        if connection is not None and connection.watchers.pop(self._watcher_id, None) is not None:
            connection.tell(requests.unwatch_topics(self._watcher_id))

    def _period(self) -> float:
        return self.options.pattern_period

    def _stop_timer(self) -> None:
        super()._stop_timer()
        if self._closed is not None:
            self._unwatch()

    def _on_timer(self, now: Any) -> None:
        self._looking = True
        super()._on_timer(now)

    def _on_looked(self, slot: Slot[None]) -> None:
        self._looking = False
        super()._on_looked(slot)
        if self._again:
            self._again = False
            self.on_topics_changed()
