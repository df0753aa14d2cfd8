"""Owns the form in which messages are sent: checked, and turned into tuples outside of any entry."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mqclient.errors import ConfigError
from mqclient.pulsar.batch import Batch
from mqclient.pulsar.schema.base import Schema, SchemaInfo, SchemaType

if TYPE_CHECKING:
    from mqclient.pulsar.transactions import Transaction

Item = tuple[Any, str | None, Mapping[str, str] | None, int, bytes | None, int, bool]
"""A message as the batch builder takes it: body, key, properties, event time, ordering key, sequence id (-1: the next
one), whether the key is base64. In bulk a message that is nothing but a body may stand there as its bytes."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NEVER: Final = 0
_MOST: Final = (1 << 63) - 1
_LONGEST: Final = 1e14  # seconds; with the present time still a number of milliseconds that can be written
LOCAL_ONLY = ("__local__",)
"""As clusters to replicate to: none."""


class Special(NamedTuple):
    """A message that says what only an entry can say: it travels alone, or with those that say the same."""

    item: Item
    deliver_at: int | None = None
    """Milliseconds since the epoch."""
    deliver_after: int | None = None
    """Milliseconds from when it is taken."""
    replicate_to: tuple[str, ...] = ()
    txn: Transaction | None = None
    schema: SchemaInfo | None = None
    """Another one than the producer's."""

    @property
    def joins(self) -> bool:
        """Whether it may share an entry."""
        return self.deliver_at is None and self.deliver_after is None and not self.replicate_to


class Mixed(list[Any]):
    """Messages for `send_many` of which some cannot go through the builder in bulk."""

    __slots__ = ()


def prepare(
    body: Any,
    key: str | bytes | None = None,
    properties: Mapping[str, str] | None = None,
    event_time: int | datetime = 0,
    ordering_key: bytes | None = None,
    sequence_id: int | None = None,
    deliver_at: int | datetime | None = None,
    deliver_after: float | timedelta | None = None,
    replicate_to: Sequence[str] | None = None,
    txn: Any = None,
    schema: SchemaInfo | None = None,
) -> Any:
    """Check a message and put it in the builder's form; outside of any entry. A body of None is a null value."""
    if body is not None and not isinstance(body, (bytes, bytearray, memoryview)):
        cure = ".encode() it" if isinstance(body, str) else "turn it into bytes, e.g. json.dumps(body).encode()"
        raise TypeError(f"a body is bytes-like, not {type(body).__name__}: {cure}, or give the producer a schema")
    if ordering_key is not None and not isinstance(ordering_key, bytes):
        raise TypeError(f"an ordering key is bytes, not {type(ordering_key).__name__}")
    number = -1 if sequence_id is None else _not_negative("sequence_id", sequence_id)
    when = 0 if event_time is _NEVER else _event_time(event_time)
    if properties is not None:
        _check_properties(properties)
    if isinstance(key, bytes):
        item: Item = (body, b64encode(key).decode(), properties, when, ordering_key, number, True)
    elif key is None or isinstance(key, str):
        if key is not None and not key.isascii():
            _check_text("the key", key)
        item = (body, key, properties, when, ordering_key, number, False)
    else:
        raise TypeError(f"a key is str or bytes, not {type(key).__name__}")
    if deliver_at is None and deliver_after is None and replicate_to is None and txn is None and schema is None:
        return item
    return _special(item, deliver_at, deliver_after, replicate_to, txn, schema)


def valued(schema: Schema[Any], make: Any = prepare) -> Any:
    """`prepare` for values of a schema; a pair whose key stands apart gives the message's key, too."""
    if schema.info.type == SchemaType.AUTO_CONSUME:
        raise ConfigError("AUTO_CONSUME is for consumers: a producer says which schema it has")

    def prepare_value(body: Any, key: str | bytes | None = None, *rest: Any, **named: Any) -> Any:
        encoded, own = schema.outgoing(body)
        if own is not None and key is not None:
            raise ConfigError("the key is that of the value: give no other one")
        return make(encoded, key if own is None else own, *rest, **named)

    prepare_value.pairs = schema.pairs  # type: ignore[attr-defined]
    return prepare_value


def preparing(own: Schema[Any] | None, schema: Schema[Any] | None) -> Any:
    """`prepare` for values of this schema, by a producer that has its own, or none."""
    if schema is None:
        return prepare
    if own is None or own.info != schema.info:
        return valued(schema, partial(prepare, schema=schema.info))
    return valued(schema)


def within(make: Any, txn: Any) -> Any:
    """`prepare` for messages of a transaction."""

    def prepare_within(*given: Any, **named: Any) -> Any:
        return make(*given, **{"txn": txn, **named})

    prepare_within.pairs = getattr(make, "pairs", False)  # type: ignore[attr-defined]
    return make if txn is None else prepare_within


def prepare_many(messages: Sequence[Any], one: Any = prepare) -> Sequence[Any]:
    """Bodies stay as they are; a tuple holds the arguments of `send` in their order, a dict those with their names.

    Where values are pairs, a tuple is one of them.
    """
    if one is prepare and set(map(type, messages)) <= {bytes}:
        return messages
    items = [prepare_one(message, one) for message in messages]
    return as_run(items)


def as_run(items: list[Any]) -> list[Any]:
    """What can go through the builder in bulk stays as it is."""
    mixed = any(type(item) is not bytes and (type(item) is not tuple or item[5] != -1) for item in items)
    return Mixed(items) if mixed else items


def prepare_one(message: Any, one: Any = prepare) -> Any:
    if type(message) is tuple and not getattr(one, "pairs", False):
        return one(*message)
    if type(message) is dict:
        return one(**message)
    return one(message)


def as_item(message: Any) -> Any:
    return prepare(message) if isinstance(message, bytes) else message


def plain(message: Any) -> Item:
    """The part that every message has."""
    item: Item = message if type(message) is tuple else message.item
    return item


def size_of(item: Item) -> int:
    return 0 if item[0] is None else len(item[0])


def moment(what: str, given: Any) -> int:
    """A time as milliseconds since the epoch.

    >>> moment("deliver_at", datetime(1970, 1, 2, tzinfo=timezone.utc))
    86400000
    """
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise ConfigError(f"{what}: a datetime has a time zone, as in datetime(…, tzinfo=timezone.utc)")
        return (given - _EPOCH) // timedelta(milliseconds=1)
    return _not_negative(what, given)


def _special(
    item: Item, deliver_at: Any, deliver_after: Any, replicate_to: Any, txn: Any, schema: SchemaInfo | None
) -> Special:
    transaction = getattr(txn, "engine", None)
    if txn is not None and transaction is None:
        raise ConfigError(f"txn is what client.transaction() gave, not a {type(txn).__name__}")
    if deliver_at is not None and deliver_after is not None:
        raise ConfigError("deliver_at and deliver_after both say when: give one of them")
    if isinstance(deliver_after, timedelta):
        deliver_after = deliver_after.total_seconds()
    if deliver_after is not None and deliver_after < 0:
        raise ConfigError(f"deliver_after={deliver_after}: a message cannot be delivered before it is sent")
    if deliver_after is not None and not deliver_after < _LONGEST:
        raise ConfigError(f"deliver_after={deliver_after}: that is no number of seconds after which anybody is there")
    if isinstance(replicate_to, str):
        raise ConfigError(f"replicate_to={replicate_to!r}: a list of cluster names; [] means none")
    return Special(
        item,
        None if deliver_at is None else moment("deliver_at", deliver_at),
        None if deliver_after is None else round(deliver_after * 1000),
        () if replicate_to is None else tuple(replicate_to) or LOCAL_ONLY,
        transaction,
        schema,
    )


def _check_properties(properties: Mapping[str, str]) -> None:
    """Before anything of a call is taken."""
    if properties.__class__ is not dict and not isinstance(properties, Mapping):
        raise TypeError(f"properties are a mapping of str to str, not {type(properties).__name__}")
    for name, value in properties.items():
        if not isinstance(value, str) or not isinstance(name, str):
            raise TypeError(f"property {name!r}: names and values are text, not {type(value).__name__}: str() them")
        if not (name.isascii() and value.isascii()):
            _check_text("the name of a property", name)
            _check_text(f"the value of property {name!r}", value)


def _check_text(what: str, text: str) -> None:
    """Half of a surrogate pair, as of a file name that is no UTF-8, has no form on the wire."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{what} {text!r} is no text that can be written: {error.reason}") from error


def _event_time(given: Any) -> int:
    if given.__class__ is int and -_MOST <= given <= _MOST:
        when: int = given
        return when
    return moment("event_time", given)


def _not_negative(what: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int):
        raise ConfigError(f"{what} is a whole number, not a {type(given).__name__}")
    if given < 0:
        raise ConfigError(f"{what}={given}: it is not negative")
    if given > _MOST:
        raise ConfigError(f"{what}={given}: it is too large")
    return given


class Part(NamedTuple):
    """A run of messages in one batch: the batch, the first index, the index after the last."""

    batch: Batch
    start: int
    stop: int


class Scattered(NamedTuple):
    """Messages of one call that went different ways: of each way, which ones, and where they are."""

    total: int
    ways: list[tuple[Sequence[int], list[Part]]]


def results(parts: list[Part] | Scattered) -> list[Any]:
    """The outcome of each message, in order: an id or an error. Made outside of any entry."""
    if isinstance(parts, list):
        return [outcome for batch, start, stop in parts for outcome in batch.outcomes(start, stop)]
    found: list[Any] = [None] * parts.total
    for places, way in parts.ways:
        for place, outcome in zip(places, results(way), strict=True):
            found[place] = outcome
    return found
