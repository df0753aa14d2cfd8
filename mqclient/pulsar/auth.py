"""Owns credentials: what a client shows in CONNECT and when it is challenged."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from typing import Protocol
from urllib.parse import unquote, urlsplit

from mqclient.errors import ConfigError

Shown = bytes | None
Token = str | Callable[[], "str | Awaitable[str]"]


class Authentication(Protocol):
    """Asked anew for every connection and every challenge, where user code runs. Data may be awaited for."""

    method: str

    def data(self) -> Shown | Awaitable[Shown]:
        """What goes into `auth_data`; None leaves the field out."""


class NoAuthentication:
    """The method `none`."""

    __slots__ = ()
    method = "none"

    def data(self) -> bytes | None:
        return None


class TlsAuthentication:
    """The method `tls`: the certificate of the encrypted connection says who we are."""

    __slots__ = ()
    method = "tls"

    def data(self) -> bytes | None:
        return None


class BasicAuthentication:
    """The method `basic`: user and password; the broker may call it otherwise."""

    __slots__ = ("_shown", "method")

    def __init__(self, user: str, password: str, method: str = "basic") -> None:
        if not user or ":" in user:
            raise ConfigError(f"user={user!r}: a name without a colon is needed, for one stands behind it")
        self._shown = f"{user}:{password}".encode()
        self.method = method

    def data(self) -> bytes | None:
        return self._shown

    def __repr__(self) -> str:
        return "basic(…)"


class TokenAuthentication:
    """The method `token`: a text, where it stands, or a callable that gives the present one, at once or awaited for."""

    __slots__ = ("_supplier",)
    method = "token"

    def __init__(self, token: Token) -> None:
        if callable(token):
            self._supplier = token
        elif isinstance(token, str):
            self._supplier = _written(token)
        else:
            raise ConfigError(f"a token is a str or a callable that returns one, not {type(token).__name__}")

    def data(self) -> Shown | Awaitable[Shown]:
        found = self._supplier()
        return _awaited(found) if isawaitable(found) else _checked(found)

    def __repr__(self) -> str:
        return "token(…)"


async def _awaited(found: Awaitable[str]) -> bytes:
    return _checked(await found)


def _checked(found: object) -> bytes:
    if not isinstance(found, str):
        raise ConfigError(f"a token is a str, not {type(found).__name__}")
    return found.strip().encode()


def _written(token: str) -> Callable[[], str]:
    """By its prefix: `token:`, `file:` (read each time: it may be replaced), `env:`; else the token itself. It can be
    pickled, as what is a lambda cannot."""
    kind, _, rest = token.partition(":")
    if kind == "file":
        path = unquote(urlsplit(token).path) if rest.startswith("//") else rest
        return partial(_read, path)
    if kind == "env":
        return partial(_environment, rest)
    return partial(str, rest if kind == "token" else token)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise ConfigError(f"the token's file cannot be read: {error}") from error


def _environment(name: str) -> str:
    try:
        return os.environ[name]
    except KeyError:
        raise ConfigError(f"the token should stand in the environment variable {name}, which is not set") from None


def token(value: Token) -> TokenAuthentication:
    """Authenticate by a JSON web token: itself, "file:/path", "env:NAME", or a function (plain or async) that gives it.

    Files and functions are asked again for every connection, and whenever the broker wants a fresh one.
    """
    return TokenAuthentication(value)


def basic(user: str, password: str, method: str = "basic") -> BasicAuthentication:
    """Authenticate by user and password; `method` is the name that the broker has for it."""
    return BasicAuthentication(user, password, method)


def mutual_tls() -> TlsAuthentication:
    """Authenticate by the certificate in the client's TLS options."""
    return TlsAuthentication()
