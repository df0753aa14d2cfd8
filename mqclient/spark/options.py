"""Owns the options of the Spark formats: their names and aliases, their checks, and errors that name the cure."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime, timezone
from difflib import get_close_matches
from socket import gethostname
from typing import Any, Final, NamedTuple

from mqclient.errors import ConfigError

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
Position = str | dict[str, Any]
"""`earliest`, `latest`, or offsets by topic as the format writes them."""


class Option(NamedTuple):
    """One option: its name as documented, the spellings that mean the same, its default."""

    name: str
    aliases: tuple[str, ...] = ()
    default: str | None = None


NAME_SERVER: Final = Option("nameServer", ("namesrv", "name.server"))
SERVICE_URL: Final = Option("serviceUrl", ("service.url",))
TOPIC: Final = Option("topic", ("subscribe", "topics", "path"))
SPARKS_OWN: Final = frozenset({"checkpointlocation", "queryname"})
"""What Spark passes on although it is meant for itself."""


class Secret:
    """A credential, or where to find one: never shown, and looked up only where a connection is made."""

    __slots__ = ("_kind", "_text")

    def __init__(self, kind: str, text: str) -> None:
        self._kind = kind
        self._text = text

    def reveal(self, name: str) -> str:
        """`name`: of the option, without what says where its value is."""
        if self._kind == "File":
            try:
                with open(self._text, encoding="utf-8") as file:
                    return file.read().strip()
            except OSError as error:
                raise ConfigError(
                    f"option {name}File: it is read where a connection is made, here on {gethostname()}: {error}"
                ) from None
        if self._kind == "Env":
            value = os.environ.get(self._text)
            if value is None:
                raise ConfigError(
                    f"option {name}Env: it is looked up where a connection is made, and here on {gethostname()} there "
                    f"is no variable {self._text!r}. Of executors: .config('spark.executorEnv.{self._text}', …)."
                )
            return value
        return self._text

    def __repr__(self) -> str:
        return "Secret(***)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and (self._kind, self._text) == (other._kind, other._text)

    def __hash__(self) -> int:
        return hash((self._kind, self._text))


class Values:
    """Options by their documented names; Spark lower-cases keys, so case does not count."""

    def __init__(self, given: Mapping[str, str], table: tuple[Option, ...], format: str) -> None:
        self._format = format
        self._values = {option.name: option.default for option in table}
        names = {spelling.lower(): option.name for option in table for spelling in (option.name, *option.aliases)}
        for key, value in given.items():
            name = names.get(key.lower())
            if key.lower() in SPARKS_OWN:
                continue
            if name is None:
                spellings = {option.name.lower(): option.name for option in table}
                near = get_close_matches(key.lower(), spellings, 1)
                hint = f" Did you mean {spellings[near[0]]!r}?" if near else ""
                known = ", ".join(option.name for option in table)
                raise ConfigError(f"format {format} has no option {key!r}.{hint} It has: {known}.")
            self._values[name] = value

    def __contains__(self, name: object) -> bool:
        """Whether there is such an option, given or not."""
        return name in self._values

    def get(self, name: str) -> str | None:
        return self._values.get(name) or None

    def address(self, table: tuple[Option, ...]) -> str:
        name = table[0].name
        value = self.get(name)
        if value is None:
            raise ConfigError(f'format {self._format} needs .option("{name}", …).')
        return value

    def names(self, name: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in (self.get(name) or "").split(",") if part.strip())

    def number(self, name: str, least: int = 1) -> int | None:
        text = self.get(name)
        if text is None:
            return None
        number = int(text) if text.strip().isdecimal() else -1
        if number < least:
            raise ConfigError(f"option {name}={text!r} is not a whole number{' above 0' if least else ''}.")
        return number

    def flag(self, name: str) -> bool:
        text = (self.get(name) or "false").lower()
        if text not in ("true", "false"):
            raise ConfigError(f"option {name}={text!r} is neither true nor false.")
        return text == "true"

    def position(self, name: str) -> Position | None:
        """`earliest`, `latest`, or a JSON object of offsets."""
        text = self.get(name)
        if text is None or text.lower() in (EARLIEST, LATEST):
            return None if text is None else text.lower()
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise ConfigError(f'option {name}={text!r} is neither "earliest", "latest" nor a JSON object of offsets.')
        return value

    def time(self, name: str) -> int | None:
        """Milliseconds since 1970: given so, or as a date and time, of UTC where they name no zone."""
        text = self.get(name)
        return None if text is None else milliseconds(text.strip(), f"option {name}")

    def secret(self, name: str = "token") -> Secret | None:
        """Given itself, as a file or as a variable of the environment."""
        given = [(kind, value) for kind in ("", "File", "Env") if (value := self.get(name + kind)) is not None]
        if len(given) > 1:
            raise ConfigError(f"of {name}, {name}File and {name}Env one is enough.")
        return Secret(*given[0]) if given else None


def milliseconds(value: Any, what: str) -> int:
    """
    >>> milliseconds("1970-01-01T00:00:01Z", "")
    1000
    """
    text = str(value)
    if text.isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        cure = "milliseconds since 1970, or 2026-01-31T09:30:00Z"
        raise ConfigError(f"{what}: {value!r} is no time: {cure}.") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp() * 1000)
