"""Owns `send_many`: messages cut into requests before the engine is entered, and a window of requests on their way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from mqclient.core.slot import Slot
from mqclient.errors import ConfigError, MQError
from mqclient.rocketmq.model import RESERVED_PROPERTIES, RETRY_PREFIX, Message, Receipt, check_key, check_message
from mqclient.rocketmq.remoting.outgoing import Prepared, Stored
from mqclient.rocketmq.remoting.sending import Sending

if TYPE_CHECKING:
    from mqclient.rocketmq.remoting.producer import ProducerEngine

MAX_BATCH: Final = 4096
SMALL: Final = 256
"""So few messages are tried as one request before anybody looks what they have in common."""
WINDOW: Final = 16
"""Requests on their way at once: enough to keep brokers busy, too few for them to call themselves so."""


class Part:
    """One request of a `send_many`: which messages it holds, and what came of it."""

    __slots__ = ("indexes", "outcome", "prepared")

    def __init__(self, prepared: Prepared, indexes: Sequence[int]) -> None:
        self.prepared = prepared
        self.indexes = indexes
        self.outcome: Stored | BaseException | None = None


Chain = deque[Part]
"""Parts that go one after the other, because they share a key."""


def plan(engine: ProducerEngine, given: Iterable[Message], key: Callable[[Message], str | None] | None) -> list[Chain]:
    """Outside of any entry: what travels together is of one topic and one key; what may not be batched goes alone."""
    # Where a broker takes its time, a call of Python's costs half a microsecond afterwards: so there are few.
    messages = given if type(given) is list else check_messages(given)
    whole = _whole(engine, messages) if key is None and 1 < len(messages) <= SMALL else None
    if whole is not None:
        return [deque((whole,))]
    chains: list[Chain] = []
    for topic, text, members in _groups(messages, key):
        check_message(messages[members[0]], engine.options.max_body)  # also of its topic
        chosen = messages if len(members) == len(messages) else [messages[index] for index in members]
        parts = _cut(engine, topic, text, chosen, members)
        chains += [deque(parts)] if text is not None else [deque([part]) for part in parts]
    return chains


def _whole(engine: ProducerEngine, messages: Sequence[Message]) -> Part | None:
    """All of them in one request, as most calls want it; None if anything asks for a closer look."""
    first, preparer = messages[0], engine.preparer
    if type(first) is not Message or preparer.hooks.adds:
        return None
    if first.topic not in preparer.topics and not preparer.knows(first):
        return None
    builder, ids = engine.remoting.BatchBuilder(), list[str]()
    try:
        stop = engine.remoting.add_messages(
            builder, messages, 0, first.topic, engine.client.keys, engine.client.driver.now.wall_ms, ids,
            RESERVED_PROPERTIES, max_size=preparer.most_together, max_count=MAX_BATCH, most=preparer.most_plain,
            kind=Message,
        )  # fmt: skip
    except AttributeError:  # one of them is no message
        return None
    if stop < len(messages):
        return None
    return Part(preparer.batch(first.topic, builder.seal(), ids), range(stop))


def _groups(
    messages: Sequence[Message], key: Callable[[Message], str | None] | None
) -> Iterable[tuple[str, str | None, Sequence[int]]]:
    """Topic, key, and the places of their messages; nothing is looked at twice if all have one topic."""
    try:
        if key is None and len({message.topic for message in messages}) <= 1:
            return [(messages[0].topic, None, range(len(messages)))] if messages else []
        groups: dict[tuple[str, str | None], list[int]] = {}
        for index, message in enumerate(messages):
            groups.setdefault((message.topic, None if key is None else key(message)), []).append(index)
    except AttributeError:
        for message in messages:
            check_message(message)
        raise
    return [(topic, text, members) for (topic, text), members in groups.items()]


def _cut(
    engine: ProducerEngine, topic: str, key: str | None, messages: Sequence[Message], members: Sequence[int]
) -> Iterable[Part]:
    """Batches, each made in one crossing; a message that the builder leaves to us goes by itself, in its place."""
    if key is not None:
        check_key(key)
    wall_ms, keys = engine.client.driver.now.wall_ms, engine.client.keys
    builder, add = engine.remoting.BatchBuilder(), engine.remoting.add_messages
    most = 0 if topic.startswith(RETRY_PREFIX) else engine.preparer.most_plain  # brokers refuse batches of retries
    limit, start = engine.preparer.most_together, 0
    hooks, own = engine.preparer.hooks, messages
    if hooks.adds:
        messages = [hooks.decorated(message) for message in messages]
    while start < len(messages):
        ids: list[str] = []
        stop: int = add(
            builder, messages, start, topic, keys, wall_ms, ids, RESERVED_PROPERTIES, max_size=limit,
            max_count=MAX_BATCH, most=most, kind=Message,
        )  # fmt: skip
        body = builder.seal()
        if stop - start < 2:  # none, because it may not be batched or is wrong; or one, which needs no batch
            stop = start + 1
            yield Part(engine.prepare(own[start], key), members[start:stop])
        else:
            yield Part(engine.preparer.batch(topic, body, ids, key), members[start:stop])
        start = stop


class Many:
    """The parts on their way: at most a window of them, those of a chain one by one."""

    def __init__(self, engine: ProducerEngine, chains: Sequence[Chain], deadline: float) -> None:
        self._engine = engine
        self._ready = deque(chains)
        self._running = 0
        self._pumping = False
        self.deadline = deadline
        self._parts = [part for chain in chains for part in chain]
        self.slot: Slot[list[Part]] = Slot()

    def pump(self) -> None:
        # A loop, not recursion: requests may fail in the moment in which they are started, thousands of them.
        if self._pumping:
            return
        self._pumping = True
        while self._ready and self._running < WINDOW:
            chain = self._ready.popleft()
            part = chain.popleft()
            self._running += 1
            sending = Sending(self._engine, part.prepared, self.deadline)
            sending.start().then(lambda slot, chain=chain, part=part: self._landed(chain, part, slot))  # type: ignore[misc]
        self._pumping = False
        if not self._running:
            self.slot.complete(self._parts)

    def _landed(self, chain: Chain, part: Part, slot: Slot[Stored]) -> None:
        part.outcome = slot.error or slot.result()
        self._running -= 1
        if chain:
            self._ready.appendleft(chain)
        self.pump()


class Lone(Sending):
    """The only request of a `send_many`: its slot never fails, for an error is an outcome like another."""

    __slots__ = ("_part",)

    def __init__(self, engine: ProducerEngine, part: Part, deadline: float) -> None:
        super().__init__(engine, part.prepared, deadline)
        self._part = part

    def complete(self, value: Any) -> None:
        if not self.done:
            self._part.outcome = value
            super().complete([self._part])  # type: ignore[arg-type]  # of this slot it is the value

    def fail(self, error: BaseException) -> None:
        self.complete(error)


def results(parts: list[Part]) -> list[Receipt | MQError]:
    """The outcome of each message, in order: made outside of any entry."""
    if len(parts) == 1 and type(parts[0].outcome) is Stored:
        return parts[0].outcome.receipts()  # type: ignore[return-value]  # a list's items may be more than these
    found: list[Any] = [None] * sum(len(part.indexes) for part in parts)
    for part in parts:
        if isinstance(part.indexes, range):
            found[part.indexes.start : part.indexes.stop] = outcomes(part)
        else:
            for index, outcome in zip(part.indexes, outcomes(part), strict=True):
                found[index] = outcome
    return found


def outcomes(part: Part) -> list[Any]:
    return part.outcome.receipts() if isinstance(part.outcome, Stored) else [part.outcome] * len(part.indexes)


def check_messages(messages: Iterable[Message]) -> Sequence[Message]:
    """As a sequence; a single message instead of many is an error that says so."""
    if isinstance(messages, Message):
        raise ConfigError("send_many takes several messages: use send for one")
    return messages if isinstance(messages, (list, tuple)) else list(messages)
