"""Owns moving to another cluster while the first is away, and back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mqclient.config import TLS
from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, run_steps
from mqclient.core.timers import Timer
from mqclient.errors import ConfigError, MQError, RemoteError
from mqclient.pulsar.auth import Authentication
from mqclient.pulsar.names import ServiceUrl

if TYPE_CHECKING:
    from mqclient.pulsar.client import ClientEngine

log = logging.getLogger("mqclient.pulsar")


@dataclass(frozen=True)
class Cluster:
    """Where else to go, and what is shown there, if that is something else than the client shows at home."""

    url: str
    auth: Authentication | None = None
    tls: TLS | None = None


@dataclass(frozen=True)
class Failover:
    """In place of a service URL: `primary`, and where to go, in this order, while it does not answer: URLs, or each a
    `Cluster` with its own credentials.

    Every `check_interval` seconds the present cluster is asked for a handshake. When it has not answered for
    `failover_delay` seconds, the client moves to the first other one that does; when the primary has answered again for
    `switch_back_delay` seconds, it moves back. Producers and consumers move along; messages do not: what a cluster
    holds stays there.
    """

    primary: str
    secondaries: Sequence[str | Cluster]
    check_interval: float = 10.0
    failover_delay: float = 30.0
    switch_back_delay: float = 30.0

    def __post_init__(self) -> None:
        if isinstance(self.secondaries, str) or not self.secondaries:
            raise ConfigError(f"secondaries={self.secondaries!r}: a list of one or more service URLs")
        if self.check_interval <= 0 or self.failover_delay < 0 or self.switch_back_delay < 0:
            raise ConfigError(
                "check_interval is above 0, failover_delay and switch_back_delay not negative; in seconds"
            )
        if len({ServiceUrl.parse(url).encrypted for url in self.urls}) > 1:
            raise ConfigError("either all clusters are reached by encrypted connections, or none")
        if len({ServiceUrl.parse(url).web for url in self.urls}) > 1:
            raise ConfigError("either all clusters are looked up over HTTP, or none")
        parsed = ServiceUrl.parse(self.primary)
        if any(cluster.tls is not None for cluster in self.clusters) and (parsed.web or not parsed.encrypted):
            raise ConfigError("a Cluster has tls of its own where all URLs begin with pulsar+ssl://")

    @property
    def clusters(self) -> list[Cluster]:
        """The primary first; without what the client itself shows."""
        return [Cluster(one) if isinstance(one, str) else one for one in (self.primary, *self.secondaries)]

    @property
    def urls(self) -> list[str]:
        return [cluster.url for cluster in self.clusters]


class Shown(NamedTuple):
    """What a client shows in one cluster."""

    auth: Authentication
    tls: object | None


def shown(url: str | Failover, home: Shown, seal: Callable[[TLS], object]) -> dict[str, Shown]:
    """By the text of each URL what is shown there."""
    if not isinstance(url, Failover):
        return {}
    return {
        cluster.url: Shown(cluster.auth or home.auth, home.tls if cluster.tls is None else seal(cluster.tls))
        for cluster in url.clusters
    }


class Watch:
    """Of one client, from its first connection on. Inside entries only."""

    def __init__(self, client: ClientEngine, failover: Failover) -> None:
        self._client = client
        self._failover = failover
        self._urls = [ServiceUrl.parse(url) for url in failover.urls]
        self._timer: Timer | None = None
        self._lost_at: float | None = None
        self._back_at: float | None = None

    def start(self) -> None:
        if self._timer is None and not self._client.closed:
            self._timer = self._client.timers.after(self._failover.check_interval, self._on_timer)

    def restart(self) -> None:
        """In a forked child, whose timers are gone."""
        self._timer = self._lost_at = self._back_at = None

    def _on_timer(self, now: Any) -> None:
        run_steps(self._check_steps()).then(self._checked)

    def _checked(self, slot: Slot[None]) -> None:
        self._timer = None
        if slot.error is not None:
            log.error("checking the clusters failed", exc_info=slot.error)
        self.start()

    def _check_steps(self) -> Steps[None]:
        now = self._client.driver.now.mono
        if (yield run_steps(self._answers_steps(self._client.url))):
            self._lost_at = None
        elif self._lost_at is None:
            self._lost_at = now
        if self._lost_at is not None and self._client.driver.now.mono - self._lost_at >= self._failover.failover_delay:
            yield run_steps(self._leave_steps())
        elif self._client.url != self._urls[0]:
            yield run_steps(self._return_steps())

    def _leave_steps(self) -> Steps[None]:
        """To the first that answers."""
        for url in self._urls:
            if url != self._client.url and (yield run_steps(self._answers_steps(url))):
                self._move(url)
                return
        log.warning("%s does not answer, and neither does any other cluster", self._client.url.text)

    def _return_steps(self) -> Steps[None]:
        if not (yield run_steps(self._answers_steps(self._urls[0]))):
            self._back_at = None
            return
        now = self._client.driver.now.mono
        self._back_at = now if self._back_at is None else self._back_at
        if now - self._back_at >= self._failover.switch_back_delay:
            self._move(self._urls[0])

    def _move(self, url: ServiceUrl) -> None:
        log.warning("moving from %s to %s", self._client.url.text, url.text)
        self._lost_at = self._back_at = None
        self._client.move(url)

    def _answers_steps(self, url: ServiceUrl) -> Steps[bool]:
        """A refusal is an answer, too."""
        try:
            yield run_steps(self._client.probe_steps(url))
        except RemoteError:
            return True
        except MQError as error:
            log.info("%s does not answer: %s", url.text, error)
            return False
        return True
