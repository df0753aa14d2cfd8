"""Owns one call of the administration: its parts, its body, and what it names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mqclient.broker.pulsar.http import Request
from mqclient.broker.pulsar.topics import Topic, Topics
from mqclient.errors import ConfigError
from mqclient.pulsar.names import TopicName

if TYPE_CHECKING:
    from mqclient.broker.pulsar.door import PulsarDoor


class RestError(Exception):
    """The call is answered with this status and reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Call:
    """What a handler gets."""

    __slots__ = ("door", "parts", "request", "topics")

    def __init__(self, door: PulsarDoor, request: Request, parts: Mapping[str, str]) -> None:
        self.door = door
        self.request = request
        self.parts = parts
        self.topics: Topics = door.topics

    def flag(self, name: str) -> bool:
        return self.request.query.get(name, "false").lower() == "true"

    def json(self, default: Any = None) -> Any:
        """The body; `default` if there is none."""
        return json.loads(self.request.body) if self.request.body.strip() else default

    def number(self, lowest: int) -> int:
        """The body as a count."""
        given = self.json()
        if isinstance(given, bool) or not isinstance(given, int) or given < lowest:
            raise RestError(400, f"the body is a number from {lowest} up, not {given!r}")
        return given

    def object(self) -> dict[str, Any]:
        given = self.json({})
        if not isinstance(given, dict):
            raise RestError(400, "the body is a JSON object")
        return given

    @property
    def namespace(self) -> str:
        """The namespace named, which exists."""
        name = f"{self.parts['tenant']}/{self.parts['namespace']}"
        if name not in self.topics.policies.of_namespace:
            raise RestError(404, "Namespace does not exist")
        return name

    @property
    def name(self) -> TopicName:
        """The topic named, there or not; its namespace exists."""
        self.namespace  # noqa: B018 - it refuses
        domain = self.parts["domain"]
        text = f"{domain}://{self.parts['tenant']}/{self.parts['namespace']}/{self.parts['topic']}"
        try:
            name = TopicName.parse(text)
        except ConfigError as error:
            raise RestError(412, f"Topic name is not valid: {error}") from None
        return self.topics.check(str(name))

    def stored(self) -> list[Topic]:
        """What is stored under the topic's name; of a partitioned topic all its partitions."""
        name = self.name
        found = self.topics.parts(name)
        if not found:
            raise RestError(404, f"Topic {name} not found")
        return found

    def one(self) -> Topic:
        """The one topic of this name."""
        if str(self.name) in self.topics.partitions:
            raise RestError(405, f"{self.name} is a partitioned topic: this is asked of one partition")
        return self.stored()[0]
