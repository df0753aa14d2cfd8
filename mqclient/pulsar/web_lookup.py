"""Owns lookups over HTTP: which broker serves a topic, how many partitions it has."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, urlencode

from mqclient.core.driver import Address
from mqclient.core.steps import Steps
from mqclient.errors import ConfigError, DeadlineError, LinkError, MQError, ProtocolError
from mqclient.pulsar.auth import Authentication, BasicAuthentication
from mqclient.pulsar.codes import BrokerError, ServerError
from mqclient.pulsar.names import TopicName

if TYPE_CHECKING:
    from mqclient.pulsar.client import ClientEngine

REFUSALS: Mapping[int, ServerError] = {
    401: ServerError.AuthenticationError,
    403: ServerError.AuthorizationError,
    404: ServerError.TopicNotFound,
    412: ServerError.NotAllowedError,
}
"""What a status means; that of any other error passes."""


class Reply(Protocol):
    status: int
    content: Any


class Web(Protocol):
    """Who asks: `mqclient.io.web.Web`."""

    def get(self, url: str, headers: Mapping[str, str]) -> Any | Awaitable[Any]: ...


class WebLookup:
    """For service URLs that begin with http. Whatever else there is to ask is asked of the broker that was found."""

    def __init__(self, client: ClientEngine, web: Web) -> None:
        self._client = client
        self._web = web

    def broker_steps(self, topic: TopicName, listener: str | None, deadline: float) -> Steps[Address]:
        """The broker that serves a topic, or will when it is there."""
        query = {"listenerName": listener} if listener else {}
        found = yield from self._get_steps(f"lookup/v2/topic/{_path(topic)}", query, deadline)
        encrypted = self._client.url.encrypted
        url = found.get("brokerUrlTls" if encrypted else "brokerUrl")
        if not isinstance(url, str) or not url:
            kind = "encrypted" if encrypted else "plain"
            text = f"the broker of {topic} names no address for {kind} connections: use the other kind of URL"
            raise ConfigError(text)
        return self._client.broker_address(url)

    def partitions_steps(self, topic: TopicName, deadline: float) -> Steps[int]:
        query = {"checkAllowAutoCreation": "true"}
        found = yield from self._get_steps(f"admin/v2/{_path(topic)}/partitions", query, deadline)
        number = found.get("partitions")
        if not isinstance(number, int) or number < 0:
            raise ProtocolError(f"{self._client.url.text} tells no number of partitions of {topic}")
        return number

    def probe_steps(self, base: str, auth: Authentication) -> Steps[None]:
        """Whether a web service answers there, be it with a refusal."""
        try:
            limit = self._client.driver.now.mono + self._client.connect_timeout
            yield from self._get_steps("lookup/v2/topic/persistent/public/default/any", {}, limit, base, auth)
        except BrokerError as error:
            if error.code == ServerError.ServiceNotReady:
                raise LinkError(str(error)) from error

    def _get_steps(
        self,
        path: str,
        query: Mapping[str, str],
        deadline: float,
        base: str = "",
        auth: Authentication | None = None,
    ) -> Steps[dict[str, Any]]:
        base = base or self._client.next_base()
        headers = yield from self._header_steps(auth or self._client.auth)
        url = f"{base}/{path}" + (f"?{urlencode(query)}" if query else "")
        asked = self._client.ask_user(partial(self._web.get, url, headers))
        late = DeadlineError(f"{url} did not answer in time (is the web service there?)").about(remote=base)
        alarm = self._client.timers.at(deadline, lambda _: asked.fail(late))
        try:
            reply = yield asked
        except MQError:
            raise
        except Exception as error:
            raise LinkError(f"{url}: {error!r}") from error
        finally:
            alarm.cancel()
        if reply.status >= 400:
            code = _meaning(reply)
            raise BrokerError(code, f"HTTP {reply.status}: {reply.content}", remote=base, request=path)
        if not isinstance(reply.content, dict):
            raise ProtocolError(f"{url} answered no JSON object")
        return reply.content

    def _header_steps(self, auth: Authentication) -> Steps[dict[str, str]]:
        data = yield self._client.credentials(auth)
        if data is None:
            return {}
        if isinstance(auth, BasicAuthentication):
            shown = "Basic " + b64encode(data).decode()
            return {"Authorization": shown, "X-Pulsar-Auth-Method-Name": auth.method}
        return {"Authorization": f"Bearer {data.decode()}"}


def _meaning(reply: Reply) -> ServerError:
    """A real broker says 401 also to who is known and may not."""
    if reply.status == 401 and str(reply.content).startswith("Unauthorized to "):
        return ServerError.AuthorizationError
    return REFUSALS.get(reply.status, ServerError.ServiceNotReady)


def _path(topic: TopicName) -> str:
    """A topic in a URL; its own name may have any sign."""
    return f"{topic.domain}/{topic.tenant}/{topic.namespace}/{quote(topic.local, safe='')}"
