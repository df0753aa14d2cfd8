"""Owns the names of the allocation rules and what is checked before the native allocator is asked."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mqclient.errors import ConfigError
from mqclient.rocketmq.model import MessageQueue

LOG = logging.getLogger("mqclient.remoting")

JAVA_NAMES = {
    "AVG": "averagely",
    "AVG_BY_CIRCLE": "averagely_by_circle",
    "CONFIG": "by_config",
    "MACHINE_ROOM": "machine_room",
    "MACHINE_ROOM_NEARBY": "machine_room_nearby",
    "CONSISTENT_HASH": "consistent_hash",
}

Rule = str | Callable[[str, str, list[MessageQueue], list[str]], Sequence[MessageQueue]]
"""A name, or a callable of group, own id, all queues and all ids."""


class Assignment:
    """One group's rule: gives our share, and says once when we are not among the members."""

    def __init__(self, allocation: Any, rule: Rule, options: Mapping[str, Any] | None = None) -> None:
        if isinstance(rule, str):
            rule = JAVA_NAMES.get(rule, rule)
            if rule not in allocation.RULES:
                raise ConfigError(
                    f"allocation rule {rule!r} is not known: {', '.join(allocation.RULES)}, or a callable"
                )
        self._allocation = allocation
        self._rule = rule
        self._options = dict(options or {})
        self._absent: set[str] = set()

    def share(self, group: str, own: str, queues: list[MessageQueue], members: list[str]) -> list[MessageQueue]:
        """Our queues; queues and members are sorted here, so that all members agree."""
        queues, members = sorted(queues), sorted(members, key=lambda member: member.encode("utf-16-be"))
        if own not in members and self._rule != "by_config":
            self._warn_absent(group, own)
            return []
        self._absent.discard(group)
        if callable(self._rule):
            return self._asked(self._rule, group, own, queues, members)
        return list(self._allocation.allocate(self._rule, own, queues, members, **self._options))

    def _asked(self, rule: Callable[..., Any], group: str, own: str, *given: Any) -> list[MessageQueue]:
        """What a rule of the user's says; what would end our thread becomes an error like another."""
        what = f"consumer:{group}: the allocation rule {getattr(rule, '__qualname__', rule)}"
        try:
            gave = rule(group, own, *given)
        except Exception:
            raise
        except BaseException as error:
            raise RuntimeError(f"{what} raised {error!r}") from error
        mine = list(gave) if isinstance(gave, Iterable) else [gave]
        if any(queue not in given[0] for queue in mine):
            raise ConfigError(f"{what} gave {gave!r}: some of the queues that it was given are wanted")
        return sorted(set(mine))

    def _warn_absent(self, group: str, own: str) -> None:
        if group not in self._absent:
            self._absent.add(group)
            LOG.warning("consumer:%s gets no queue: its id %s is not in the list of members", group, own)
