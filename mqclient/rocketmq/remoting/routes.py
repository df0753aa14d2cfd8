"""Owns the routes of topics: which brokers have which queues, kept fresh, and which queue a message takes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from random import Random
from typing import Any, Final

from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, run_steps
from mqclient.errors import ConfigError, MQError
from mqclient.rocketmq.codes import BrokerError, Request, Response
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.bodies import read_body

LOG = logging.getLogger("mqclient.remoting")

MASTER: Final = 0
READ: Final = 4
WRITE: Final = 2
TEMPLATE: Final = "TBW102"
TEMPLATE_QUEUES: Final = 4
WATCH: Final = 0.5
"""A route that lost a broker is asked for so often: a broker that was restarted is used soon after it is there."""
WATCHED: Final = 300.0
"""For so long; who stays away longer is found by the regular refresh."""


class Route:
    """One topic's brokers and queues; writable ones need a master, all in Java's order."""

    __slots__ = ("brokers", "readable", "several", "topic", "writable")

    def __init__(
        self,
        topic: str,
        brokers: dict[str, dict[int, str]],
        readable: list[MessageQueue],
        writable: list[MessageQueue],
    ) -> None:
        self.topic = topic
        self.brokers = brokers
        self.readable = readable
        self.writable = writable
        self.several = len({queue.broker_name for queue in writable}) > 1
        """Whether more than one broker takes messages."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Route):
            return NotImplemented
        return (self.brokers, self.readable, self.writable) == (other.brokers, other.readable, other.writable)

    __hash__ = None  # type: ignore[assignment]


def parse_route(topic: str, body: Any, queues: int | None = None, rewrite: Callable[[str], str] | None = None) -> Route:
    """A route out of its body; `queues`: at most so many a broker, for a topic that the template stands in for."""
    turn = rewrite or str
    brokers = {
        str(data["brokerName"]): {int(number): turn(str(address)) for number, address in data["brokerAddrs"].items()}
        for data in body.get("brokerDatas", ())
    }
    readable, writable = [], []
    for data in body.get("queueDatas", ()):
        name, perm = str(data["brokerName"]), int(data["perm"])
        counts = int(data["readQueueNums"]), int(data["writeQueueNums"])
        if queues is not None:
            counts = (min(queues, counts[0]),) * 2
        if perm & READ:
            readable += [MessageQueue(topic, name, number) for number in range(counts[0])]
        if perm & WRITE and MASTER in brokers.get(name, {}):
            writable += [MessageQueue(topic, name, number) for number in range(counts[1])]
    return Route(topic, brokers, sorted(readable), sorted(writable))


class Routes:
    """The routes of all topics that this client has to do with."""

    def __init__(self, client: Any, random: Random) -> None:
        self._client = client
        self._random = random
        self._routes: dict[str, Route] = {}
        self._found: dict[tuple[str, int], str] = {}
        """Addresses that were looked up since a route changed."""
        self._asked: dict[str, Slot[Route]] = {}
        self._published: dict[str, Slot[Route]] = {}
        self._missing: dict[str, tuple[set[str], float]] = {}
        """By topic: the brokers that its route lost, and until when they are looked for."""
        self.turns: dict[str, int] = {}
        """By topic, the number of the queue that was used last."""
        self.on_change: list[Callable[[str], None]] = []
        """Told the topic whose route changed."""

    def get(self, topic: str) -> Route | None:
        return self._routes.get(topic)

    def known(self) -> Iterable[Route]:
        return list(self._routes.values())

    def address(self, broker_name: str, number: int = MASTER) -> str | None:
        """Where a broker listens: the number asked for, else its master, else any."""
        found = self._found.get((broker_name, number))
        if found is not None:
            return found
        for route in self._routes.values():
            addresses = route.brokers.get(broker_name)
            if addresses:
                found = addresses.get(number) or addresses.get(MASTER) or next(iter(addresses.values()))
                self._found[broker_name, number] = found
                return found
        return None

    def masters(self) -> dict[str, str]:
        """Broker name to the address that heartbeats go to, of every route."""
        names = {name for route in self._routes.values() for name in route.brokers}
        return {name: address for name in sorted(names) if (address := self.address(name)) is not None}

    def fetch(self, topic: str) -> Slot[Route]:
        """Ask a name server, once at a time for each topic; the slot fails if there is no route at all."""
        asked = self._asked.get(topic)
        if asked is None:
            asked = self._asked[topic] = run_steps(self._fetch_steps(topic))
            asked.then(lambda _: _forget(self._asked, topic))
        return asked

    def publish(self, topic: str) -> Slot[Route]:
        """The route to send by; an unknown topic gets its brokers from the template that makes topics."""
        asked = self._published.get(topic)
        if asked is None:
            asked = self._published[topic] = run_steps(self._publish_steps(topic))
            asked.then(lambda _: _forget(self._published, topic))
        return asked

    def _publish_steps(self, topic: str) -> Steps[Route]:
        try:
            route: Route = yield self.fetch(topic)
        except BrokerError as error:
            if error.code != Response.TOPIC_NOT_EXIST:
                raise
            route = yield from self._template_steps(topic, error)
        if not route.writable:
            raise ConfigError(f"topic {topic!r} has no queue that may be written to")
        return route

    def _template_steps(self, topic: str, missing: BrokerError) -> Steps[Route]:
        """The route of a topic that the first message will make; where brokers make none, the topic is missing."""
        fields = {"topic": TEMPLATE}
        try:
            body = yield from self._client.ask_name_server_steps(Request.GET_ROUTEINFO_BY_TOPIC, fields)
        except BrokerError as error:
            raise missing if error.code == Response.TOPIC_NOT_EXIST else error from None
        route = parse_route(topic, read_body(body), TEMPLATE_QUEUES, self._client.options.rewrite_address)
        self._keep(route)
        return route

    def pick(self, route: Route, avoid: str | None, ailing: Collection[str] = ()) -> MessageQueue:
        """The next queue in turn: of a broker that is not ailing, if not of another than the one that just failed."""
        turn, queues = self.turn(route), route.writable
        for _ in queues:
            turn += 1
            queue = queues[turn % len(queues)]
            if queue.broker_name != avoid and queue.broker_name not in ailing:
                break
        else:
            if ailing:
                return self.pick(route, avoid)
        self.turns[route.topic] = turn
        return queue

    def turn(self, route: Route) -> int:
        """The number of the queue that was used last; at first any."""
        turn = self.turns.get(route.topic)
        if turn is None:
            turn = self.turns[route.topic] = self._random.randrange(1 << 16)
        return turn

    def _look_out(self, route: Route, lost: set[str]) -> None:
        """Name servers forget a broker with its connection, and learn of it again when it is back."""
        missing, until = self._missing.get(route.topic, (set(), 0.0))
        watched = bool(missing)
        missing = (missing | lost) - set(route.brokers)
        if not missing:
            self._missing.pop(route.topic, None)
            return
        self._missing[route.topic] = missing, self._client.driver.now.mono + WATCHED if lost else until
        if not watched:
            self._client.timers.after(WATCH, lambda now: self._look_again(route.topic, now.mono))

    def _look_again(self, topic: str, now: float) -> None:
        if topic not in self._missing:
            return
        if now >= self._missing[topic][1] or topic not in self._routes:
            del self._missing[topic]
            return
        self.fetch(topic)
        self._client.timers.after(WATCH, lambda later: self._look_again(topic, later.mono))

    def refresh(self) -> None:
        """Ask for every route again; failures leave what we have."""
        for topic in list(self._routes):
            self.fetch(topic)

    def _fetch_steps(self, topic: str) -> Steps[Route]:
        try:
            body = yield from self._client.ask_name_server_steps(Request.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
            route = parse_route(topic, read_body(body), rewrite=self._client.options.rewrite_address)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, MQError):
                raise
            raise ConfigError(f"the name server's route of {topic!r} cannot be read: {error!r}") from error
        self._keep(route)
        return self._routes[topic]

    def _keep(self, route: Route) -> None:
        """A good route is never dropped for an empty one: a name server that just started knows no brokers."""
        old = self._routes.get(route.topic)
        if old is not None and old.readable and not route.readable and not route.writable:
            LOG.info("kept the route of %s: the name server knows no queue of it just now", route.topic)
            return
        self._routes[route.topic] = route
        self._found.clear()
        if old is not None:
            self._look_out(route, set(old.brokers) - set(route.brokers))
        if old is not None and old != route:
            for told in self.on_change:
                told(route.topic)


def _forget(asked: dict[str, Slot[Route]], topic: str) -> None:
    asked.pop(topic, None)
