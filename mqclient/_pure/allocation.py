"""Which queues are mine: the allocation rules in plain Python, the twin of `_native/allocation`."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import md5
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from mqclient.errors import ConfigError

__all__ = ["RULES", "allocate", "repeated"]

_Queue = TypeVar("_Queue", bound=tuple[object, ...])
_Room = Callable[[Any], "str | None"] | Mapping[str, str]

MASK_64: Final = 0xFFFFFFFFFFFFFFFF


class _Options(NamedTuple):
    queues: Sequence[Any] | None
    rooms: Collection[str] | None
    inner: str
    broker_room: _Room | None
    member_room: _Room | None
    virtual_nodes: int
    hash: Callable[[str], int] | None
    current: Mapping[str, Iterable[Any]] | None


class _Ring(NamedTuple):
    points: list[int]
    owners: list[str]


class _Members:
    """A checked member list with what was worked out from it."""

    __slots__ = ("_rings", "_scores", "_standing", "ids")

    def __init__(self, ids: tuple[str, ...]) -> None:
        for member in ids:
            if type(member) is not str:
                raise TypeError(f"member ids are str, not {type(member).__name__}")
        self.ids = ids
        self._standing: dict[str, int] | None = None
        self._rings: dict[int, _Ring] = {}
        self._scores: list[int] | None = None

    def index(self, own: str) -> int:
        """Of the first occurrence; -1 if `own` is no member."""
        if self._standing is None:
            last_to_first = range(len(self.ids) - 1, -1, -1)
            self._standing = dict(zip(reversed(self.ids), last_to_first, strict=True))
        return self._standing.get(own, -1)

    def ring(self, virtual_nodes: int) -> _Ring:
        ring = self._rings.get(virtual_nodes)
        if ring is None:
            ring = _ring(self.ids, virtual_nodes, _md5_point)
            self._rings = {virtual_nodes: ring}
        return ring

    def scores(self) -> list[int]:
        """The 64-bit hash of each id, for rendezvous."""
        if self._scores is None:
            self._scores = [_md5_score(member) for member in self.ids]
        return self._scores


_known = lru_cache(maxsize=16)(_Members)


def allocate(
    rule: str,
    own: str,
    available: Sequence[_Queue],
    members: Sequence[str],
    /,
    *,
    queues: Sequence[_Queue] | None = None,
    rooms: Collection[str] | None = None,
    inner: str = "averagely",
    broker_room: Callable[[_Queue], str | None] | Mapping[str, str] | None = None,
    member_room: Callable[[str], str | None] | Mapping[str, str] | None = None,
    virtual_nodes: int = 10,
    hash: Callable[[str], int] | None = None,
    current: Mapping[str, Iterable[_Queue]] | None = None,
) -> list[_Queue]:
    """The share of `own` in the available queues; see `mqclient/_native/allocation.pyi`."""
    options = _Options(queues, rooms, inner, broker_room, member_room, virtual_nodes, hash, current)
    _check(rule, options)
    return _share(rule, own, available, members, options)


def _check(rule: str, options: _Options) -> None:
    """As far as the arguments alone can tell; Java does it in the constructors of its rules."""
    if rule not in RULES:
        raise ConfigError(f"no allocation rule is called {rule!r}; there are {', '.join(RULES)}")
    for option in _NEEDED.get(rule, ()):
        if getattr(options, option) is None:
            raise ConfigError(f"the rule {rule} needs the option {option}")
    if rule == "consistent_hash" and options.virtual_nodes < 0:
        raise ConfigError(f"virtual_nodes is {options.virtual_nodes}; it cannot be negative")
    if rule == "machine_room_nearby":
        if options.inner == rule:
            raise ConfigError(f"the inner rule of {rule} must be another one")
        _check(options.inner, options)


def _share(rule: str, own: str, available: Sequence[Any], members: Sequence[str], options: _Options) -> list[Any]:
    """Java's checks in Java's order, then the rule."""
    if rule == "by_config":
        return list(options.queues or ())
    if type(own) is not str:
        raise TypeError(f"the own id is a str, not {type(own).__name__}")
    if not own:
        raise ConfigError("the own client id is empty")
    if not available:
        raise ConfigError("there are no queues to share")
    if not members:
        raise ConfigError("there are no members to share the queues")
    known = _known(tuple(members))
    index = known.index(own)
    return _RULES[rule](available, known, index, options) if index >= 0 else []


def _averagely(available: Sequence[Any], known: _Members, index: int, _: _Options) -> list[Any]:
    size, more = divmod(len(available), len(known.ids))
    start = index * size + min(index, more)
    return list(available[start : start + size + (index < more)])


def _by_circle(available: Sequence[Any], known: _Members, index: int, _: _Options) -> list[Any]:
    return list(available[index :: len(known.ids)])


def _machine_room(available: Sequence[Any], known: _Members, index: int, options: _Options) -> list[Any]:
    rooms = options.rooms or ()
    kept = [queue for queue in available if _room_in_name(queue[1]) in rooms]
    size, more = divmod(len(kept), len(known.ids))
    rest = kept[size * len(known.ids) :]
    return kept[index * size : (index + 1) * size] + rest[index : index + 1 if index < more else index]


def _room_in_name(broker: str) -> str | None:
    """`room@name`, split as Java does: empty parts at the end do not count."""
    parts = broker.split("@")
    while parts and not parts[-1]:
        parts.pop()
    return parts[0] if len(parts) == 2 else None


def _machine_room_nearby(available: Sequence[Any], known: _Members, index: int, options: _Options) -> list[Any]:
    own = known.ids[index]
    queues_in = _by_room(available, _queue_room(options.broker_room), "queue")
    member_room = _asked(options.member_room)
    members_in = _by_room(known.ids, member_room, "member")
    home = member_room(own)
    assert home is not None
    share: list[Any] = []
    if home in queues_in:
        share += _share(options.inner, own, queues_in[home], members_in[home], options)
    for room in sorted(queues_in, key=_java_order):
        if room not in members_in:
            share += _share(options.inner, own, queues_in[room], known.ids, options)
    return share


def _by_room(items: Iterable[Any], room_of: Callable[[Any], str | None], kind: str) -> dict[str, list[Any]]:
    rooms: dict[str, list[Any]] = {}
    for item in items:
        room = room_of(item)
        if not room:
            raise ConfigError(f"no machine room is known for the {kind} {item!r}")
        rooms.setdefault(room, []).append(item)
    return rooms


def _asked(room: _Room | None) -> Callable[[Any], str | None]:
    return room.get if isinstance(room, Mapping) else room  # type: ignore[return-value]  # checked: not None


def _queue_room(room: _Room | None) -> Callable[[Any], str | None]:
    if isinstance(room, Mapping):
        return lambda queue: room.get(queue[1])
    return _asked(room)


def _java_order(text: str) -> bytes:
    """Java compares UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def _consistent_hash(available: Sequence[Any], known: _Members, index: int, options: _Options) -> list[Any]:
    point = options.hash or _md5_point
    ring = _ring(known.ids, options.virtual_nodes, point) if options.hash else known.ring(options.virtual_nodes)
    own, points, owners = known.ids[index], ring.points, ring.owners
    count = len(points)
    if not count:
        return []
    return [queue for queue in available if owners[bisect_left(points, point(_text(queue))) % count] == own]


def _ring(ids: Sequence[str], virtual_nodes: int, point: Callable[[str], int]) -> _Ring:
    """Later points take the place of equal earlier ones; an id that comes again counts on from those it still has."""
    owner_at: dict[int, str] = {}
    seen = set()
    for member in ids:
        first = sum(owner == member for owner in owner_at.values()) if member in seen else 0
        seen.add(member)
        for number in range(first, first + virtual_nodes):
            owner_at[point(f"{member}-{number}")] = member
    points = sorted(owner_at)
    return _Ring(points, [owner_at[at] for at in points])


def _text(queue: Any) -> str:
    """Java's toString of a queue."""
    return "MessageQueue [topic=" + queue[0] + ", brokerName=" + queue[1] + f", queueId={queue[2]:d}]"  # type: ignore[no-any-return]


def _md5(text: str) -> bytes:
    return md5(text.encode("utf-8", "replace"), usedforsecurity=False).digest()


def _md5_point(text: str) -> int:
    return int.from_bytes(_md5(text)[:4], "big")


def _md5_score(text: str) -> int:
    return int.from_bytes(_md5(text)[:8], "big")


def _rendezvous(available: Sequence[Any], known: _Members, index: int, _: _Options) -> list[Any]:
    scores = known.scores()
    return [queue for queue in available if _wins(index, scores, _md5_score(_text(queue)))]


def _wins(index: int, scores: list[int], queue: int) -> bool:
    """Nobody has a higher score for the queue, nor an equal one further to the front."""
    own = _mixed(scores[index] ^ queue)
    for place, score in enumerate(scores):
        other = _mixed(score ^ queue)
        if other > own or (other == own and place < index):
            return False
    return True


def _mixed(value: int) -> int:
    """The finalizer of SplitMix64: every bit of the input moves half of the output."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK_64
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK_64
    return value ^ value >> 31


def _sticky(available: Sequence[Any], known: _Members, index: int, options: _Options) -> list[Any]:
    own = known.ids[index]
    held = _held(available, dict.fromkeys(known.ids), options.current or {})
    quota = _quotas(held, len(available))
    kept = {member: places[: quota[member]] for member, places in held.items()}
    taken = {place for places in kept.values() for place in places}
    free = (place for place in range(len(available)) if place not in taken)
    for member, places in kept.items():
        new = list(islice(free, quota[member] - len(places)))
        if member == own:
            return [available[place] for place in sorted(places + new)]
    raise AssertionError("the own id is one of the members")


def _held(
    available: Sequence[Any], members: Iterable[str], current: Mapping[str, Iterable[Any]]
) -> dict[str, list[int]]:
    """By member the places of its queues, in order; of two who claim one queue, the first has it."""
    place_of = dict(zip(reversed(available), range(len(available) - 1, -1, -1), strict=True))
    held = {member: [place_of.pop(q) for q in current.get(member, ()) if q in place_of] for member in members}
    for places in held.values():
        places.sort()
    return held


def _quotas(held: dict[str, list[int]], count: int) -> dict[str, int]:
    """Who holds more than the smaller share gets the larger one first, so that nothing moves without need."""
    size, more = divmod(count, len(held))
    largest_first = sorted(held, key=lambda member: len(held[member]) <= size)
    return {member: size + (place < more) for place, member in enumerate(largest_first)}


def repeated(members: Iterable[str], /) -> list[str]:
    """The ids that occur more than once, each once, in the order of their first occurrence."""
    return [member for member, count in Counter(members).items() if count > 1]


_Rule = Callable[[Sequence[Any], _Members, int, _Options], list[Any]]
_RULES: Final[dict[str, _Rule]] = {
    "averagely": _averagely,
    "averagely_by_circle": _by_circle,
    "machine_room": _machine_room,
    "machine_room_nearby": _machine_room_nearby,
    "consistent_hash": _consistent_hash,
    "rendezvous": _rendezvous,
    "sticky": _sticky,
}
_NEEDED: Final = {
    "by_config": ("queues",),
    "machine_room": ("rooms",),
    "machine_room_nearby": ("broker_room", "member_room"),
}
RULES: Final[tuple[str, ...]] = (*_RULES, "by_config")
