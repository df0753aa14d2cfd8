"""Owns the choice of a partition: by the key's hash, in turn, always the same one, or as the user's function says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from mqclient.errors import ConfigError
from mqclient.pulsar.outgoing import plain, prepare

Route = Callable[[str | None, Mapping[str, str] | None, int], int]
"""The user's: key, properties, number of partitions -> a partition."""

MASK: Final = 0x7FFFFFFF


class Routed(NamedTuple):
    """A message whose partition the user's function has chosen."""

    message: Any
    partition: int


def key_hash(digest: Any, name: str) -> Callable[[str], int]:
    """Key -> a number that is not negative, as the other clients have it.

    Java's clients use "java" by default; C++ and Python "boost", which is not the same in all their releases.
    """
    if name == "java":
        return lambda key: digest.java_string_hash(key) & MASK
    if name == "murmur3":
        return lambda key: digest.murmur3_32(key.encode()) & MASK
    return lambda key: digest.boost_hash(key.encode()) & MASK


def router(route: Route, partitions: Callable[[], int], make: Callable[..., Any] = prepare) -> Callable[..., Any]:
    """`prepare` with the user's function asked for each message: outside of any entry, for it is user code."""

    def prepare_routed(*given: Any, **named: Any) -> Routed:
        message = make(*given, **named)
        item = plain(message)
        count = partitions()
        chosen = route(item[1], item[2], count)
        if not isinstance(chosen, int) or not 0 <= chosen < count:
            raise ConfigError(f"routing returned {chosen!r}: with {count} partitions it is 0 to {count - 1}")
        return Routed(message, chosen)

    prepare_routed.pairs = getattr(make, "pairs", False)  # type: ignore[attr-defined]
    return prepare_routed
