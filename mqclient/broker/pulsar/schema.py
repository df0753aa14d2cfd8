"""Owns one schema: its type, its definition as it was sent, its properties."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

NAMES = (
    "NONE STRING JSON PROTOBUF AVRO BOOLEAN INT8 INT16 INT32 INT64 FLOAT DOUBLE DATE TIME TIMESTAMP KEY_VALUE INSTANT "
    "LOCAL_DATE LOCAL_TIME LOCAL_DATE_TIME PROTOBUF_NATIVE AUTO_CONSUME EXTERNAL"
)
TYPES: Final = dict(enumerate(NAMES.split()))
"""Names by their number on the wire."""


@dataclass(slots=True)
class Schema:
    """One version; `data` is the definition as it was sent."""

    type: int
    data: bytes
    properties: dict[str, str] = field(default_factory=dict)
    stored_at: int = 0
    deleted: bool = False

    @classmethod
    def of(cls, given: Any) -> Schema:
        """Of the protocol's message."""
        return cls(given.type, given.schema_data, {pair.key: pair.value for pair in given.properties})

    @property
    def type_name(self) -> str:
        return TYPES.get(self.type, str(self.type))

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")
