"""Which queues are mine: the RocketMQ allocation rules with Java's results, and two more.

A queue is a tuple that starts with (topic, broker name, queue id); the very objects handed in are given back.
Results follow the order of `queues` and `members` as they are: callers sort both, so that all members agree.
What depends only on the member list is kept for the lists seen last; a list changed in place is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

_Queue = TypeVar("_Queue", bound=tuple[object, ...])

RULES: tuple[str, ...]
"""The names that `allocate` knows."""

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
    """The share of `own` in the available queues. Nothing is logged and no argument is changed.

    averagely              one run of queues; the first n mod m members get one more
    averagely_by_circle    every m-th queue from the own index
    by_config              `queues`, unchecked
    machine_room           of the brokers called `room@...` with a room in `rooms`: one run, the rest one each
    machine_room_nearby    own room's queues by rule `inner` among its members, then rooms without members among all;
                           `broker_room`, `member_room`, and the options of `inner`
    consistent_hash        ring of `virtual_nodes` points a member, by MD5 unless `hash` is given
    rendezvous             the member with the highest score for a queue owns it
    sticky                 sizes differ by at most one, as few moves from `current` as that allows

    An id that occurs twice counts with the index of its first occurrence (that is the pile-up; see `repeated`), and
    on the ring it gets more points. rendezvous and sticky count it once.
    A mapping `broker_room` is asked for the broker name, a callable gets the queue.
    `current` maps members to the queues they hold: all members must be given the same; unknown ids are ignored.

    ConfigError: `own` is empty, no queues, no members, an unknown rule, an option that the rule needs is missing, or no
    machine room for a queue or member. TypeError: ids that are no str, queues that are no such tuples.
    `own` not among `members` gives [] (except by_config, which looks at nothing); an empty share can also be
    legitimate, so whoever must warn asks `own in members` after an empty result.
    """

def repeated(members: Iterable[str], /) -> list[str]:
    """The ids that occur more than once, each once, in the order of their first occurrence."""
