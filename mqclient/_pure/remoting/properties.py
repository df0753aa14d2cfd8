"""The property text of a message: name 0x01 value 0x02, again and again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from mqclient.errors import ConfigError

from .header import utf8

if TYPE_CHECKING:
    from typing_extensions import Buffer

NAME_END: Final = "\x01"
VALUE_END: Final = "\x02"
MAX_TEXT: Final = 32767


def decode_properties(text: Buffer) -> dict[str, str]:
    """Entries with an empty name or value are passed over, bad UTF-8 is replaced."""
    properties: dict[str, str] = {}
    for entry in bytes(text).decode("utf-8", "replace").split(VALUE_END):
        name, _, value = entry.partition(NAME_END)
        if name and value:
            properties[name] = value
    return properties


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """The property text, with the final separator that all but a few releases write."""
    text = "".join(f"{_checked(name)}{NAME_END}{_checked(value)}{VALUE_END}" for name, value in properties.items())
    return checked_size(utf8(text))


def _checked(text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"property names and values are str, not {type(text).__name__}")
    if not text or NAME_END in text or VALUE_END in text:
        raise ConfigError("a property name or value is empty or holds the separator 0x01 or 0x02")
    return text


def checked_size(text: bytes) -> bytes:
    if len(text) > MAX_TEXT:
        raise ConfigError(f"properties of {len(text)} bytes; {MAX_TEXT} fit")
    return text
