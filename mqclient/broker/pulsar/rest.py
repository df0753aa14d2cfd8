"""Owns the administration over HTTP: which call is served by which family, and how refusals are told.

What is left out gets 501 with a reason. Families: rest_topics, rest_subscriptions, rest_namespaces, rest_schemas.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mqclient.broker.pulsar import rest_namespaces, rest_schemas, rest_subscriptions, rest_topics
from mqclient.broker.pulsar.auth import Denied, of_header
from mqclient.broker.pulsar.http import Answer, Request
from mqclient.broker.pulsar.permissions import may_call
from mqclient.broker.pulsar.refused import Refused
from mqclient.broker.pulsar.rest_call import Call, RestError
from mqclient.pulsar.codes import ServerError

if TYPE_CHECKING:
    from mqclient.broker.pulsar.door import PulsarDoor

log = logging.getLogger("mqclient.broker")

Handler = Callable[[Call], Any]
STATUS = {
    ServerError.TopicNotFound: 404,
    ServerError.SubscriptionNotFound: 404,
    ServerError.InvalidTopicName: 412,
    ServerError.NotAllowedError: 409,
    ServerError.IncompatibleSchema: 409,
}


def _hello(call: Call) -> Any:
    return b"OK"


def _clusters(call: Call) -> Any:
    return ["standalone"]


ROUTES: dict[str, Handler] = {
    "GET status.html": _hello,
    "GET admin/v2/brokers/health": _hello,
    "GET admin/v2/brokers/ready": _hello,
    "GET admin/v2/clusters": _clusters,
    **rest_namespaces.ROUTES,
    **rest_topics.ROUTES,
    **rest_subscriptions.ROUTES,
    **rest_schemas.ROUTES,
}
"""`METHOD path`; a part in braces takes any text. The first that fits, and of two the one with fewer braces."""


class Rest:
    """Answers requests; has no sockets."""

    def __init__(self, door: PulsarDoor) -> None:
        self._door = door
        self._routes = sorted(
            ((method, tuple(path.split("/")), handler) for method, path, handler in _split()),
            key=lambda route: sum(part.startswith("{") for part in route[1]),
        )

    def answer(self, request: Request) -> Answer:
        refused = self._refuse(request)
        if refused is not None:
            return refused
        method = "GET" if request.method == "HEAD" else request.method
        found = False
        for known, pattern, handler in self._routes:
            given = _fits(pattern, request.path)
            if given is not None and known == method:
                return _told(handler, Call(self._door, request, given))
            found = found or given is not None
        text = f"{request.method} /{'/'.join(request.path)} is not supported by mqclient's embedded broker"
        return Answer(405 if found else 501, {"reason": text})

    def _refuse(self, request: Request) -> Answer | None:
        """Health is told to anybody."""
        if request.path[-1:] in (("status.html",), ("health",), ("ready",)):
            return None
        try:
            principal = self._door.authentication.check(*of_header(request.headers.get("authorization", "")))
        except Denied as denied:
            log.info("REST /%s: %s", "/".join(request.path), denied)
            return Answer(401, {"reason": "Authentication required"})
        if not may_call(self._door.topics.policies, principal.role, request.method, request.path):
            return Answer(403, {"reason": f"Unauthorized: {principal.role or 'nobody'} has no permission for this"})
        return None


def _split() -> Iterator[tuple[str, str, Handler]]:
    for route, handler in ROUTES.items():
        method, _, path = route.partition(" ")
        yield method, path, handler


def _fits(pattern: tuple[str, ...], path: tuple[str, ...]) -> dict[str, str] | None:
    if len(pattern) != len(path):
        return None
    given: dict[str, str] = {}
    for wanted, part in zip(pattern, path, strict=True):
        if wanted == "{domain}" and part not in ("persistent", "non-persistent"):
            return None
        if wanted.startswith("{"):
            given[wanted[1:-1]] = part
        elif wanted != part:
            return None
    return given


def _told(handler: Handler, call: Call) -> Answer:
    try:
        content = handler(call)
    except RestError as error:
        return Answer(error.status, {"reason": str(error)})
    except Refused as refused:
        return Answer(STATUS.get(refused.code, 400), {"reason": str(refused)})
    except json.JSONDecodeError as error:
        return Answer(400, {"reason": f"the body is not JSON: {error}"})
    if isinstance(content, Answer):
        return content
    return Answer(204 if content is None else 200, content)
