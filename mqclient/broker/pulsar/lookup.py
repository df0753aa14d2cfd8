"""Who serves a topic, and which topics there are.

| command | answer |
|---|---|
| PARTITIONED_METADATA | 0 partitions; a missing topic is made, unless the client says not to: TopicNotFound |
| LOOKUP | Connect, this broker |
| GET_TOPICS_OF_NAMESPACE | all names, unfiltered: the client applies its pattern |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqclient.broker.pulsar.topics import Topic
from mqclient.errors import ConfigError
from mqclient.pulsar.codes import LookupType, ServerError
from mqclient.pulsar.names import TopicName

if TYPE_CHECKING:
    from mqclient.broker.pulsar.session import Session

NAMESPACES = frozenset(("public/default",))


def refuse_topic(session: Session, name: str) -> tuple[ServerError, str] | None:
    """Why a topic cannot be served, if it cannot."""
    try:
        topic = TopicName.parse(name)
    except ConfigError as error:
        return ServerError.InvalidTopicName, str(error)
    if not topic.persistent:
        return ServerError.NotAllowedError, "non-persistent topics are not supported by mqclient's embedded broker"
    if f"{topic.tenant}/{topic.namespace}" not in NAMESPACES:
        return ServerError.TopicNotFound, f"Namespace not found: {topic.tenant}/{topic.namespace}"
    return None


def on_partitions(session: Session, request: Any) -> None:
    refusal = refuse_topic(session, request.topic)
    if refusal is None and session.topics.get(request.topic) is None:
        if request.metadata_auto_creation_enabled:
            session.topics.make(request.topic)
        else:
            refusal = ServerError.TopicNotFound, f"Topic not found: {request.topic}"
    fields: dict[str, Any] = {"response": 0, "partitions": 0}
    if refusal is not None:
        fields = {"response": 1, "error": refusal[0], "message": refusal[1]}
    session.send(22, "CommandPartitionedTopicMetadataResponse", request_id=request.request_id, **fields)


def on_lookup(session: Session, request: Any) -> None:
    refusal = refuse_topic(session, request.topic)
    fields: dict[str, Any] = {
        "response": LookupType.Connect,
        "brokerServiceUrl": session.door.url,
        "authoritative": True,
    }
    if refusal is not None:
        fields = {"response": LookupType.Failed, "error": refusal[0], "message": refusal[1]}
    session.send(24, "CommandLookupTopicResponse", request_id=request.request_id, **fields)


def on_topics(session: Session, request: Any) -> None:
    def wanted(topic: Topic) -> bool:
        return bool(request.mode == 2 or topic.name.persistent == (request.mode == 0))

    topics = session.topics.in_namespace(request.namespace, wanted)
    session.send(33, "CommandGetTopicsOfNamespaceResponse", request_id=request.request_id, topics=topics, changed=True)


HANDLERS = {21: on_partitions, 23: on_lookup, 32: on_topics}
