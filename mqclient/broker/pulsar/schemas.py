"""Owns the schemas of topics, version by version; partitions share those of their topic.

| command | answer |
|---|---|
| GET_SCHEMA | the latest or the version asked for; TopicNotFound if there is none; empty version: IncompatibleSchema |
| GET_OR_CREATE_SCHEMA | its version, made if the strategy lets it follow; IncompatibleSchema |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqclient.broker.pulsar import compatibility
from mqclient.broker.pulsar.policies import Policies, whole
from mqclient.broker.pulsar.refused import Refused
from mqclient.broker.pulsar.schema import Schema
from mqclient.broker.watched import Watched
from mqclient.pulsar.codes import ServerError

if TYPE_CHECKING:
    from mqclient.broker.control import Clock
    from mqclient.broker.pulsar.session import Session
    from mqclient.broker.pulsar.topics import Topic
    from mqclient.pulsar.names import TopicName

MOST = 1000
"""Versions that one topic may have."""


class Schemas:
    """All schemas of a broker, by topic."""

    def __init__(self, policies: Policies, clock: Clock) -> None:
        self._policies = policies
        self._clock = clock
        self.of: Watched[str, list[Schema]] = Watched()

    def versions(self, topic: TopicName) -> list[Schema]:
        """All there were, the deletions among them; the version is the place in the list."""
        return self.of.get(str(whole(topic)), [])

    def living(self, topic: TopicName) -> list[Schema]:
        """Those since the last deletion."""
        found = self.versions(topic)
        after = max((index for index, schema in enumerate(found, 1) if schema.deleted), default=0)
        return found[after:]

    def get(self, topic: TopicName, version: int | None = None) -> tuple[int, Schema] | None:
        found = self.versions(topic)
        number = len(found) - 1 if version is None else version
        if not 0 <= number < len(found) or found[number].deleted or (version is not None and found[-1].deleted):
            return None
        return number, found[number]

    def version_of(self, topic: TopicName, schema: Schema) -> int | None:
        """The version of one that is there already."""
        living = self.living(topic)
        start = len(self.versions(topic)) - len(living)
        return next((start + index for index, old in enumerate(living) if compatibility.same(schema, old)), None)

    def add(self, topic: TopicName, schema: Schema, *, by_client: bool = True) -> int:
        """Its version, a new one if the strategy lets it follow; Refused if not."""
        compatibility.validate(schema)
        known = self.version_of(topic, schema)
        if known is not None:
            return known
        living = self.living(topic)
        if by_client and living and not self._policies.value("isAllowAutoUpdateSchema", topic):
            text = "Schema not found and schema auto updating is disabled."
            raise Refused(ServerError.IncompatibleSchema, text)
        compatibility.check(schema, living, self.strategy(topic))
        return self._append(topic, schema)

    def _append(self, topic: TopicName, schema: Schema) -> int:
        found = self.of.setdefault(str(whole(topic)), [])
        if len(found) >= MOST:
            raise Refused(ServerError.NotAllowedError, f"a topic may have {MOST} versions of its schema")
        schema.stored_at = self._clock.wall_ms()
        found.append(schema)
        return len(found) - 1

    def delete(self, topic: TopicName) -> int:
        """Mark the end of all there are; the version of the mark."""
        return self._append(topic, Schema(0, b"", deleted=True))

    def forget(self, topic: TopicName) -> None:
        self.of.pop(str(topic), None)

    def strategy(self, topic: TopicName) -> str:
        return str(self._policies.value("schemaCompatibilityStrategy", topic))

    def check_consumer(self, topic: Topic, schema: Schema) -> None:
        """A consumer's schema must read what is there; on a topic that nobody has used yet it is the first."""
        compatibility.validate(schema)
        living, used = self.living(topic.name), topic.end or topic.producers
        if not living and not used and not any(known.consumers for known in topic.subscriptions.values()):
            self.add(topic.name, schema)
            return
        if not living:
            raise Refused(ServerError.IncompatibleSchema, "Topic does not have schema to check")
        strategy = self.strategy(topic.name)
        compatibility.check(schema, living, compatibility.FOR_CONSUMERS.get(strategy, strategy))

    def check_producer(self, topic: Topic, request: Any) -> bytes:
        """The version in which a producer writes; none without a schema, where that is allowed."""
        if request.HasField("schema") and request.schema.type != 0:
            return wire(self.add(topic.name, Schema.of(request.schema)))
        if self.living(topic.name) and self._policies.value("schemaValidationEnforced", topic.name):
            text = "Producers cannot connect or send message without a schema to topics with a schema"
            raise Refused(ServerError.IncompatibleSchema, text)
        return b""


def wire(version: int) -> bytes:
    return version.to_bytes(8, "big")


def on_get(session: Session, request: Any) -> None:
    fields: dict[str, Any] = {}
    try:
        name, wanted = session.topics.check(request.topic), None
        if request.HasField("schema_version"):
            if not request.schema_version:
                raise Refused(ServerError.IncompatibleSchema, "Empty schema version")
            wanted = int.from_bytes(request.schema_version[:8], "big", signed=True)
        found = session.topics.schemas.get(name, wanted)
        if found is None:
            raise Refused(ServerError.TopicNotFound, f"Topic {name} has no such schema")
        number, schema = found
        fields = {"schema": _told(name, schema), "schema_version": wire(number)}
    except Refused as refused:
        fields = {"error_code": refused.code, "error_message": str(refused)}
    session.send(35, "CommandGetSchemaResponse", request_id=request.request_id, **fields)


def _told(name: TopicName, schema: Schema) -> dict[str, Any]:
    return {
        "name": f"{name.tenant}/{name.namespace}/{whole(name).local}",
        "type": schema.type,
        "schema_data": schema.data,
        "properties": [{"key": key, "value": value} for key, value in schema.properties.items()],
    }


def on_get_or_create(session: Session, request: Any) -> None:
    try:
        topic = session.topics.get(str(session.topics.check(request.topic)))
        if topic is None:
            raise Refused(ServerError.TopicNotFound, f"Topic not found: {request.topic}")
        fields: dict[str, Any] = {
            "schema_version": wire(session.topics.schemas.add(topic.name, Schema.of(request.schema)))
        }
    except Refused as refused:
        fields = {"error_code": refused.code, "error_message": str(refused)}
    session.send(40, "CommandGetOrCreateSchemaResponse", request_id=request.request_id, **fields)


HANDLERS = {34: on_get, 39: on_get_or_create}
