"""Owns what is sent of Arrow columns: which there are, and the outcome of rows that travelled together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mqclient.core.columns import Parts, columns_of
from mqclient.errors import ConfigError, MQError

if TYPE_CHECKING:
    from mqclient._native.pulsar import MessageId

COLUMNS: Final = ("body", "key", "ordering_key", "event_time", "properties")
NUMBERS: Final = {"event_time": "int64"}


@dataclass(frozen=True, slots=True)
class Rows:
    """The outcome of the rows of one entry, `start` to before `stop`: the id of its first message, or an MQError."""

    start: int
    stop: int
    outcome: MessageId | MQError

    @property
    def ok(self) -> bool:
        return self.outcome.ok


def prepare_rows(batch: Any, names: Mapping[str, str] | None) -> tuple[dict[str, Parts], int]:
    """Outside of any entry: the buffers of a record batch, and how many rows it has.

    Without `names` the columns called as the codec calls them; event times are milliseconds.
    """
    chosen = names or {name: name for name in COLUMNS if name in batch.schema.names}
    unknown = sorted(set(chosen) - set(COLUMNS))
    if unknown or "body" not in chosen:
        raise ConfigError(f"columns={dict(chosen)}: body is needed, and there are {', '.join(COLUMNS)}; not {unknown}")
    return columns_of(batch, chosen, NUMBERS), len(batch)
