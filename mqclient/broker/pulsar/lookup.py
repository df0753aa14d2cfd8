"""Who serves a topic, and which topics there are.

| command | answer |
|---|---|
| PARTITIONED_METADATA | how many partitions; of a missing topic as many as the policy gives it, or TopicNotFound |
| LOOKUP | Connect, this broker |
| GET_TOPICS_OF_NAMESPACE | names, filtered by the pattern if it is a plain one; nothing if the hash is the same |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mqclient.broker.pulsar import permissions
from mqclient.broker.pulsar.refused import Refused
from mqclient.broker.pulsar.topics import Topic, Topics
from mqclient.broker.pulsar.transactions import ASSIGN, COORDINATORS
from mqclient.pulsar.codes import LookupType, ServerError
from mqclient.pulsar.names import TopicName

if TYPE_CHECKING:
    from mqclient.broker.pulsar.session import Session

PATTERN_LENGTH = 50
"""Longer ones are left to the client, as upstream (`subscriptionPatternMaxLength`)."""
QUANTIFIERS = 2
ALL, NON_PERSISTENT = 2, 1


def partitions(topics: Topics, name: TopicName, create: bool) -> int:
    """How many partitions a topic has, or will have when it is used; Refused if there will be none such."""
    known = COORDINATORS if str(name) == ASSIGN else topics.partitions.get(str(name))
    if known is not None or topics.is_there(name):
        return known or 0
    policy = topics.policies.auto_creation(name)
    if not (create and policy.allowed):
        raise Refused(ServerError.TopicNotFound, f"Topic not found: {name}")
    if policy.partitions and name.partition < 0:
        topics.partition(name, policy.partitions)
        return policy.partitions
    return 0


def on_partitions(session: Session, request: Any) -> None:
    fields: dict[str, Any] = {"response": 1}
    try:
        name = session.topics.check(request.topic)
        permissions.check(session, name, permissions.EITHER, "Get Partition Metadata")
        number = partitions(session.topics, name, request.metadata_auto_creation_enabled)
        fields = {"response": 0, "partitions": number}
    except Refused as refused:
        fields |= {"error": refused.code, "message": str(refused)}
    session.send(22, "CommandPartitionedTopicMetadataResponse", request_id=request.request_id, **fields)


def on_lookup(session: Session, request: Any) -> None:
    fields: dict[str, Any] = {
        "response": LookupType.Connect,
        "brokerServiceUrl": session.door.url,
        "brokerServiceUrlTls": session.door.tls_url or None,
        "authoritative": True,
    }
    try:
        name = session.topics.check(request.topic)
        permissions.check(session, name, permissions.EITHER, "Lookup")
        if request.advertised_listener_name:
            fields |= listener(session, request.advertised_listener_name)
    except Refused as refused:
        fields = {"response": LookupType.Failed, "error": refused.code, "message": str(refused)}
    session.send(24, "CommandLookupTopicResponse", request_id=request.request_id, **fields)


def listener(session: Session, name: str) -> dict[str, str]:
    """The address by the name of a listener: `advertisedListeners`, `name:url` separated by commas."""
    given = str(session.house.settings.get("advertisedListeners", ""))
    known = dict(part.strip().split(":", 1) for part in given.split(",") if ":" in part)
    if name not in known:
        raise Refused(ServerError.ServiceNotReady, f"the broker do not have {name} listener")
    return {"brokerServiceUrl": known[name]}


def plain_pattern(pattern: str) -> Callable[[str], bool] | None:
    """Whether a name matches; None for a pattern that might cost too much, which is left to the client.

    Python's engine goes back over what it tried: without groups and with two open ends that stays quadratic.

    >>> matches = plain_pattern("public/default/orders-.*")
    >>> matches("persistent://public/default/orders-1"), matches("persistent://public/default/other")
    (True, False)
    >>> plain_pattern("(a+)+")
    """
    open_ends = sum(pattern.count(sign) for sign in "*+?{")
    if len(pattern) > PATTERN_LENGTH or "(" in pattern or open_ends > QUANTIFIERS:
        return None
    try:
        compiled = re.compile(pattern.partition("://")[2] or pattern)
    except re.error:
        return None
    return lambda name: compiled.fullmatch(name.partition("://")[2]) is not None


def topics_hash(session: Session, names: Sequence[str]) -> str:
    """CRC-32C of the sorted names joined by a comma, its little-endian bytes in hex."""
    crc = session.impl.digest.crc32c(",".join(sorted(names)).encode()) if names else 0
    return int(crc).to_bytes(4, "little").hex()


def on_topics(session: Session, request: Any) -> None:
    permissions.check_namespace(session, request.namespace, permissions.EITHER, "GetTopicsOfNamespace")

    def wanted(topic: Topic) -> bool:
        return bool(request.mode == ALL or topic.name.persistent == (request.mode != NON_PERSISTENT))

    names = session.topics.in_namespace(request.namespace, wanted)
    matches = plain_pattern(request.topics_pattern) if request.topics_pattern else None
    if matches is not None:
        names = [name for name in names if matches(name)]
    told = topics_hash(session, names)
    changed = not request.topics_hash or told != request.topics_hash
    session.send(
        33,
        "CommandGetTopicsOfNamespaceResponse",
        request_id=request.request_id,
        topics=names if changed else [],
        filtered=matches is not None,
        topics_hash=told,
        changed=changed,
    )


HANDLERS = {21: on_partitions, 23: on_lookup, 32: on_topics}
