"""Owns the compacted view of a topic: of each key the last message, keyless ones gone, ids as they were."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqclient.broker.store import Log


@dataclass(slots=True)
class Compacted:
    """What a topic was compacted to: up to the horizon only these entries are left, some of them with messages gone."""

    horizon: int
    """The last entry that was looked at."""
    entries: dict[int, bytes] = field(default_factory=dict)
    """What is left, in order; empty bytes: as it is in the log."""

    def leaves_out(self, entry: int) -> bool:
        return entry <= self.horizon and entry not in self.entries

    def record(self, entry: int, log: Log) -> bytes | memoryview:
        """The bytes of an entry that is left, or lies behind the horizon."""
        return self.entries.get(entry) or log.record(entry)
