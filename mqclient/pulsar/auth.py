"""Owns credentials: what a client shows in CONNECT and when it is challenged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from mqclient.errors import ConfigError


class Authentication(Protocol):
    """Asked anew for every connection and every challenge, on the thread that runs user code."""

    method: str

    def data(self) -> bytes | None:
        """What goes into `auth_data`; None leaves the field out."""


class NoAuthentication:
    """The method `none`."""

    __slots__ = ()
    method = "none"

    def data(self) -> bytes | None:
        return None


class TokenAuthentication:
    """The method `token`: a fixed text, or a callable that gives the present one."""

    __slots__ = ("_token",)
    method = "token"

    def __init__(self, token: str | Callable[[], str]) -> None:
        if not callable(token) and not isinstance(token, str):
            raise ConfigError(f"a token is a str or a callable that returns one, not {type(token).__name__}")
        self._token = token

    def data(self) -> bytes | None:
        token = self._token() if callable(self._token) else self._token
        return token.strip().encode()

    def __repr__(self) -> str:
        return "token(…)"


def token(value: str | Callable[[], str]) -> TokenAuthentication:
    """Authenticate by a JSON web token; a callable is asked again whenever the broker wants a fresh one."""
    return TokenAuthentication(value)
