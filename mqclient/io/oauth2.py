"""Owns OAuth 2.0 client credentials: tokens are asked for when needed, and kept until shortly before they end."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable
from typing import Any

from mqclient.errors import ConfigError, LinkError, ProtocolError

WELL_KNOWN = "/.well-known/openid-configuration"
LARGEST = 1 << 20


class ClientCredentials:
    """`credentials()` gives a token that is valid for a while: at once, or under asyncio to be awaited.

    A token is asked for again when four fifths of its time are over, so it is fresh when a broker looks.
    """

    def __init__(
        self,
        issuer_url: str,
        client_id: str,
        client_secret: str | None = None,
        *,
        audience: str | None = None,
        scope: str | None = None,
        context: ssl.SSLContext | None = None,
        timeout: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not issuer_url.startswith(("https://", "http://")):
            raise ConfigError(f"issuer_url={issuer_url!r}: it begins with https://")
        self._issuer = issuer_url.rstrip("/")
        form = {"client_id": client_id, "client_secret": client_secret, "audience": audience, "scope": scope}
        self._form = {"grant_type": "client_credentials", **{name: text for name, text in form.items() if text}}
        self._context = context
        self._timeout = timeout
        self._clock = clock
        self._lock = threading.Lock()
        self._token = ""
        self._until = float("-inf")

    def __call__(self) -> str | Awaitable[str]:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self.token()
        return asyncio.to_thread(self.token)

    def token(self) -> str:
        """Blocks while a new one is asked for; whoever comes meanwhile gets the same."""
        with self._lock:
            if self._clock() >= self._until:
                self._renew()
            return self._token

    def __repr__(self) -> str:
        return f"ClientCredentials({self._issuer!r}, {self._form['client_id']!r}, …)"

    def _renew(self) -> None:
        where = self._ask(self._issuer + WELL_KNOWN, None).get("token_endpoint")
        if not isinstance(where, str):
            raise ProtocolError(f"{self._issuer}{WELL_KNOWN} names no token_endpoint")
        answer = self._ask(where, urllib.parse.urlencode(self._form).encode())
        found, seconds = answer.get("access_token"), answer.get("expires_in", 3600)
        if not isinstance(found, str) or not isinstance(seconds, int | float) or seconds <= 0:
            raise ProtocolError(f"{where} gave no access_token with a time that it is valid")
        self._token, self._until = found, self._clock() + 0.8 * seconds

    def _ask(self, url: str, form: bytes | None) -> dict[str, Any]:
        request = urllib.request.Request(url, form, {"Accept": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=self._timeout, context=self._context) as reply:
                found = json.loads(reply.read(LARGEST))
        except urllib.error.HTTPError as error:
            said = error.read(500).decode(errors="replace").strip()
            raise ConfigError(f"{url} refuses these credentials: {error.code} {error.reason}: {said}") from error
        except (OSError, urllib.error.URLError) as error:
            raise LinkError(f"{url}: {getattr(error, 'reason', error)}") from error
        except ValueError as error:
            raise ProtocolError(f"{url} answered no JSON: {error}") from error
        if not isinstance(found, dict):
            raise ProtocolError(f"{url} answered no JSON object")
        return found


def read_private_key(text: str) -> dict[str, str]:
    """The JSON with client_id and client_secret: a path, a file: URL, or a data: URL with base64.

    >>> read_private_key("data:application/json;base64,eyJjbGllbnRfaWQiOiAiYSJ9")
    {'client_id': 'a'}
    """
    try:
        if text.startswith("data:"):
            content = base64.b64decode(text.partition(",")[2]).decode()
        else:
            path = urllib.parse.unquote(urllib.parse.urlsplit(text).path) if text.startswith("file:") else text
            with open(path, encoding="utf-8") as file:
                content = file.read()
        found = json.loads(content)
        return {str(name): str(value) for name, value in found.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise ConfigError(f"private_key: no JSON with client_id and client_secret there: {error}") from error
