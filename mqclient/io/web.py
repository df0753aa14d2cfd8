"""Owns questions to a broker's web service: one GET, redirects followed, the answer as JSON, everything bounded."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Awaitable, Mapping
from typing import Any, NamedTuple

from mqclient.errors import LinkError, ProtocolError

LARGEST = 16 << 20


class Reply(NamedTuple):
    """What came back: its status, and JSON, or text where the status is that of an error."""

    status: int
    content: Any


class Web:
    """Asks at once, or under asyncio by a thread, to be awaited."""

    def __init__(self, context: ssl.SSLContext | None, timeout: float) -> None:
        self._context = context
        self._timeout = timeout

    def get(self, url: str, headers: Mapping[str, str]) -> Reply | Awaitable[Reply]:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self.ask(url, headers)
        return asyncio.to_thread(self.ask, url, headers)

    def ask(self, url: str, headers: Mapping[str, str]) -> Reply:
        """Blocks. LinkError: nobody there, or nobody who speaks HTTP; ProtocolError: no JSON."""
        request = urllib.request.Request(url, headers={"Accept": "application/json", **headers})
        try:
            with urllib.request.urlopen(request, timeout=self._timeout, context=self._context) as reply:
                return Reply(reply.status, json.loads(reply.read(LARGEST)))
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, _reason(error))
        except http.client.HTTPException as error:
            text = f"{url}: no web service answers there ({error!r}): is that the port of the binary protocol?"
            raise LinkError(text) from error
        except OSError as error:
            said = getattr(error, "reason", error)
            raise LinkError(f"{url}: {said} (is the web service there? It has port 8080, or 8443 by https)") from error
        except ValueError as error:
            raise ProtocolError(f"{url} answered no JSON: {error}") from error


def _reason(error: urllib.error.HTTPError) -> str:
    """What a broker says in its body, else the status' own name."""
    said = error.read(2000).decode(errors="replace").strip()
    try:
        return str(json.loads(said)["reason"])
    except (ValueError, KeyError, TypeError):
        return said or str(error.reason)
