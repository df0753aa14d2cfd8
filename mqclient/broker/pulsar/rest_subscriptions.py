"""Subscriptions over HTTP: listing, making, deleting, moving, and looking at what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mqclient.broker.pulsar import life
from mqclient.broker.pulsar.http import Answer
from mqclient.broker.pulsar.rest_call import Call, RestError
from mqclient.broker.pulsar.rest_topics import TOPIC
from mqclient.broker.pulsar.subscription import Subscription
from mqclient.broker.pulsar.topics import Topic
from mqclient.pulsar.codes import SubType

LATEST = 2**63 - 1


def names(call: Call) -> Any:
    found = (name for topic in call.stored() for name, known in topic.subscriptions.items() if known.durable)
    return sorted(set(found))


def make(call: Call) -> Any:
    name, given = call.parts["subscription"], call.json("latest")
    for topic in call.stored():
        if name in topic.subscriptions:
            raise RestError(409, f"Subscription already exists for topic {topic.text}")
        topic.subscribe(name, SubType.Exclusive, mark=_mark(topic, given))


def _mark(topic: Topic, given: Any) -> int:
    """Where a new subscription begins: a message id, "earliest" or "latest"; nothing before it comes."""
    if given in ("earliest", "latest"):
        return -1 if given == "earliest" else topic.end - 1
    if not isinstance(given, dict) or not isinstance(given.get("ledgerId"), int):
        raise RestError(400, f"a position is a message id, not {given!r}")
    if given["ledgerId"] < 0:
        return -1
    if given["ledgerId"] >= LATEST:
        return topic.end - 1
    return max(-1, topic.entry_of(given["ledgerId"], int(given.get("entryId", 0))) - 1)


def drop(call: Call) -> Any:
    for subscription in _each(call):
        if subscription.consumers and not call.flag("force"):
            raise RestError(412, "Subscription has active connected consumers")
        life.close_consumers(subscription)
        subscription.topic.subscriptions.pop(subscription.name, None)


def skip_all(call: Call) -> Any:
    for subscription in _each(call):
        _move(subscription, subscription.topic.end - 1)


def skip(call: Call) -> Any:
    count = _number(call, "count")
    for subscription in [_one(call)]:
        mark = subscription.cursor.mark
        for _, entry in zip(range(count), _left(subscription), strict=False):
            mark = entry
        _move(subscription, mark, forward=True)


def reset_to_time(call: Call) -> Any:
    when = _number(call, "time")
    for subscription in _each(call):
        _move(subscription, subscription.topic.log.at_or_after(when) - 1)


def reset_to_id(call: Call) -> Any:
    given = call.object()
    for subscription in _each(call):
        _move(subscription, _mark(subscription.topic, given))


def peek(call: Call) -> Any:
    """The stored message at a position of the backlog, counted from 1."""
    subscription, position = _one(call), _number(call, "position")
    entry = next((entry for index, entry in enumerate(_left(subscription), 1) if index == position), None)
    if entry is None:
        raise RestError(404, "Message not found")
    topic, impl = subscription.topic, call.door.house.impl
    stored = impl.pulsar.Entry.from_stored(topic.log.record(entry))
    headers = {"X-Pulsar-Message-ID": f"{topic.ledger}:{entry}", "X-Pulsar-publish-time": str(stored.published_at)}
    if stored.batched:
        headers["X-Pulsar-num-batch-message"] = str(stored.num_messages)
    for name, value in stored.properties.items():
        text = f"{name}{value}"
        if text.isascii() and text.isprintable():  # anything else does not fit into a header line
            headers[f"X-Pulsar-PROPERTY-{name}"] = value
    return Answer(200, bytes(stored.payload), headers)


def _left(subscription: Subscription) -> Iterable[int]:
    """Entries that are not acknowledged, in order."""
    cursor = subscription.cursor
    return (entry for entry in range(cursor.mark + 1, subscription.topic.end) if not cursor.acked(entry))


def _move(subscription: Subscription, mark: int, *, forward: bool = False) -> None:
    life.close_consumers(subscription)
    if forward:
        subscription.ack_up_to(mark, None)
    else:
        subscription.reset(mark)


def _number(call: Call, part: str) -> int:
    text = call.parts[part]
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise RestError(400, f"{part} is a number, not {text!r}")
    return int(text)


def _each(call: Call) -> list[Subscription]:
    name = call.parts["subscription"]
    found = [known for topic in call.stored() if (known := topic.subscriptions.get(name)) is not None]
    if not found:
        raise RestError(404, f"Subscription {name} not found")
    return found


def _one(call: Call) -> Subscription:
    call.one()
    return _each(call)[0]


SUBSCRIPTION = f"{TOPIC}/subscription/{{subscription}}"
ROUTES: dict[str, Callable[[Call], Any]] = {
    f"GET {TOPIC}/subscriptions": names,
    f"PUT {SUBSCRIPTION}": make,
    f"DELETE {SUBSCRIPTION}": drop,
    f"POST {SUBSCRIPTION}/skip_all": skip_all,
    f"POST {SUBSCRIPTION}/skip/{{count}}": skip,
    f"POST {SUBSCRIPTION}/resetcursor": reset_to_id,
    f"POST {SUBSCRIPTION}/resetcursor/{{time}}": reset_to_time,
    f"GET {SUBSCRIPTION}/position/{{position}}": peek,
}
