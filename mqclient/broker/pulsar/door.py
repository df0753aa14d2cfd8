"""Owns the Pulsar entrance of the embedded broker: its port, its topics, the sessions of its clients."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator

from mqclient.broker.broker import House
from mqclient.broker.log_retention import Trim
from mqclient.broker.overview import TopicRow
from mqclient.broker.pulsar import connect, life, migration
from mqclient.broker.pulsar.auth import Authentication
from mqclient.broker.pulsar.data import Keeper
from mqclient.broker.pulsar.http import Answer, HttpSession, Request
from mqclient.broker.pulsar.overview import rows
from mqclient.broker.pulsar.rest import Rest
from mqclient.broker.pulsar.session import Session
from mqclient.broker.pulsar.topics import Topic, Topics
from mqclient.broker.store import Log
from mqclient.broker.tls import server_context


class PulsarDoor:
    """Two listening ports, for the binary protocol and for REST: `pulsar_port` and `pulsar_rest_port` of the settings,
    or free ones.

    With `tlsCertificateFilePath` and `tlsKeyFilePath` there are two more, for TLS; with `tlsTrustCertsFilePath` clients
    may show certificates there.
    """

    def __init__(self, house: House) -> None:
        self.house = house
        self.topics = Topics(house)
        self.topics.listeners.append(self._tell_watchers)
        self._keeper = None if house.data is None else Keeper(house.data, self.topics)
        self.sessions: set[Session] = set()
        self.visitors: set[HttpSession] = set()
        self.authentication = Authentication(house.settings, house.clock)
        self.rest = Rest(self)
        self.url = ""
        self.rest_url = ""
        self.tls_url = ""
        self.tls_rest_url = ""
        self._servers: list[asyncio.Server] = []
        house.control.unloads.append(self.unload)
        house.control.migrations.append(self.migrate)

    def addresses(self) -> dict[str, str]:
        named = {
            "pulsar_url": self.url,
            "pulsar_rest": self.rest_url,
            "pulsar_tls_url": self.tls_url,
            "pulsar_tls_rest": self.tls_rest_url,
        }
        return {name: address for name, address in named.items() if address}

    def overview(self) -> Iterator[TopicRow]:
        return rows(self.topics)

    def logs(self) -> Iterator[tuple[Log, Trim]]:
        for topic in self.topics.each():
            yield topic.log, topic.trim

    async def start(self, host: str) -> None:
        port = await self._listen(lambda: Session(self), host, "pulsar_port")
        rest = await self._listen(lambda: HttpSession(self._administer, self.visitors), host, "pulsar_rest_port")
        if self._keeper is not None:
            self._keeper.start()
        self.url, self.rest_url = f"pulsar://{host}:{port}", f"http://{host}:{rest}"

        tls = server_context(self.house.settings)
        if tls is not None:
            port = await self._listen(lambda: Session(self), host, "pulsar_tls_port", tls)
            rest = await self._listen(lambda: HttpSession(self._administer, self.visitors), host, "", tls)
            self.tls_url, self.tls_rest_url = f"pulsar+ssl://{host}:{port}", f"https://{host}:{rest}"

    async def _listen(
        self,
        make: Callable[[], asyncio.BaseProtocol],
        host: str,
        setting: str,
        tls: ssl.SSLContext | None = None,
    ) -> int:
        name = setting.removesuffix("_port") or "pulsar_rest_tls"
        server = await self.house.listen(name, make, host, tls)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    def _administer(self, request: Request) -> Answer:
        """Answered when what was decided is kept."""
        answer = self.rest.answer(request)
        if self._keeper is not None and request.method != "GET":
            self._keeper.look_at_policies()
        return answer if self.house.save() else Answer(500, {"reason": "it could not be written to the data folder"})

    async def stop(self) -> None:
        for server in self._servers:
            server.close()
        for session in list(self.sessions):
            session.close("the broker stops")
        for visitor in list(self.visitors):
            visitor.close()

    def _tell_watchers(self, topic: Topic, there: bool) -> None:
        for session in self.sessions:
            for watcher in session.watchers.values():
                watcher.tell(topic, there)

    def soon(self, call: Callable[[], None]) -> None:
        """When the loop has done what it is doing."""
        asyncio.get_running_loop().call_soon(call)

    def ask_for_credentials(self) -> None:
        """As when they had expired: AUTH_CHALLENGE to everybody."""
        for session in list(self.sessions):
            if session.connected:
                connect.challenge(session)

    def unload(self, name: str) -> None:
        """As when the topic moves: everybody is told to come again."""
        life.unload(self.topics.make(name))

    def migrate(self, name: str, url: str, url_tls: str) -> None:
        """As when the topic goes to another cluster."""
        migration.migrate(self.topics.make(name), url, url_tls)


def make(house: House) -> PulsarDoor:
    return PulsarDoor(house)
