"""Topics over HTTP: making, growing, deleting, lookup, unload, termination, what is decided for one, statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from mqclient.broker.pulsar import life
from mqclient.broker.pulsar.lookup import partitions as partitions_of
from mqclient.broker.pulsar.policies import whole
from mqclient.broker.pulsar.rest_call import Call, RestError
from mqclient.broker.pulsar.rest_namespaces import given_value, policy_routes
from mqclient.broker.pulsar.stats import partitioned_stats, topic_stats
from mqclient.pulsar.names import TopicName

MOST = 10_000
"""Partitions of one topic."""
TOPIC = "admin/v2/{domain}/{tenant}/{namespace}/{topic}"


def lookup(call: Call) -> Any:
    call.topics.check(str(call.name))
    rest, broker = call.door.rest_url, call.door.url
    return {
        "brokerUrl": broker,
        "brokerUrlTls": call.door.tls_url,
        "httpUrl": rest,
        "httpUrlTls": call.door.tls_rest_url,
        "nativeUrl": broker,
        "brokerUrlSsl": "",
        "brokerId": urlsplit(rest).netloc,
    }


def topics(call: Call) -> Any:
    wanted = call.parts["domain"] == "persistent"
    return call.topics.in_namespace(call.namespace, lambda topic: topic.name.persistent == wanted)


def partitioned(call: Call) -> Any:
    start = f"{call.parts['domain']}://{call.namespace}/"
    return sorted(name for name in call.topics.partitions if name.startswith(start))


def partitions(call: Call) -> Any:
    name = call.name
    if call.flag("checkAllowAutoCreation"):
        return {"partitions": partitions_of(call.topics, name, True)}
    if not call.topics.is_there(name):
        raise RestError(404, f"Topic {name} not found")
    return {"partitions": call.topics.partitions.get(str(name), 0)}


def make_partitioned(call: Call) -> Any:
    name, number = call.name, _count(call)
    if name.partition >= 0:
        raise RestError(412, "Partitioned Topic Name should not contain '-partition-'")
    if call.topics.is_there(name):
        raise RestError(409, "This topic already exists")
    call.topics.partition(name, number)


def _count(call: Call) -> int:
    number = call.number(0)
    if not 0 < number <= MOST:
        raise RestError(406, f"Number of partitions should be more than 0 and at most {MOST}")
    return number


def grow(call: Call) -> Any:
    name, number = call.name, _count(call)
    before = _partitioned(call, name)
    if number < before:
        raise RestError(422, f"Desired partitions {number} can't be less than the current partitions {before}.")
    call.topics.partition(name, number)


def drop_partitioned(call: Call) -> Any:
    name = call.name
    _partitioned(call, name)
    _drop(call)
    del call.topics.partitions[str(name)]
    call.topics.schemas.forget(name)
    call.topics.policies.of_topic.pop(str(name), None)


def _partitioned(call: Call, name: TopicName) -> int:
    number = call.topics.partitions.get(str(name), 0)
    if not number:
        raise RestError(404, f"Partitioned topic {name} does not exist")
    return number


def make(call: Call) -> Any:
    name = call.name
    if call.topics.is_there(name):
        raise RestError(409, "This topic already exists")
    call.topics.make(str(name))


def drop(call: Call) -> Any:
    name = str(call.one().name)
    _drop(call)
    call.topics.policies.of_topic.pop(name, None)


def _drop(call: Call) -> None:
    found = call.topics.parts(call.name)
    used = any(topic.producers or any(known.consumers for known in topic.subscriptions.values()) for topic in found)
    if used and not call.flag("force"):
        raise RestError(412, f"Topic {call.name} has active producers/subscriptions")
    for topic in found:
        life.delete(call.topics, topic)


def unload(call: Call) -> Any:
    for topic in call.stored():
        life.unload(topic)


def terminate(call: Call) -> Any:
    topic = call.one()
    life.terminate(topic)
    return {"ledgerId": topic.ledger, "entryId": topic.end - 1, "partitionIndex": topic.partition}


def terminate_partitions(call: Call) -> Any:
    _partitioned(call, call.name)
    found = call.stored()
    for topic in found:
        life.terminate(topic)
    return {str(topic.partition): {"ledgerId": topic.ledger, "entryId": topic.end - 1} for topic in found}


def stats(call: Call) -> Any:
    return topic_stats(call.topics, call.one())


def all_stats(call: Call) -> Any:
    number = _partitioned(call, call.name)
    return partitioned_stats(call.topics, call.stored(), number)


def internal_stats(call: Call) -> Any:
    topic = call.one()
    return {
        "entriesAddedCounter": topic.end,
        "numberOfEntries": len(topic.log),
        "totalSize": topic.log.bytes,
        "lastConfirmedEntry": f"{topic.ledger}:{topic.end - 1}",
        "state": "Terminated" if topic.terminated else "LedgerOpened",
        "cursors": {
            name: {"markDeletePosition": f"{topic.ledger}:{subscription.cursor.mark}"}
            for name, subscription in topic.subscriptions.items()
            if subscription.durable
        },
    }


def last(call: Call) -> Any:
    topic = call.one()
    ledger = topic.ledger if topic.end else -1
    return {"ledgerId": ledger, "entryId": topic.end - 1, "partitionIndex": topic.partition}


def compact(call: Call) -> Any:
    door = call.door
    started = [topic.compaction.start(topic, door.house.impl, door.soon) for topic in call.stored()]
    if not any(started):
        raise RestError(409, "Compaction already in progress")


def compaction(call: Call) -> Any:
    topic = call.one()
    return {"status": topic.compaction.status, "lastError": topic.compaction.error}


def told(policy: str, call: Call) -> Any:
    return call.topics.policies.of_topic.get(_policy_name(call), {}).get(policy)


def decide(policy: str, kind: type, call: Call) -> Any:
    given = given_value(policy, kind, call)
    call.topics.policies.decide(call.topics.policies.of_topic.setdefault(_policy_name(call), {}), policy, given)


def undecide(policy: str, call: Call) -> Any:
    call.topics.policies.decide(call.topics.policies.of_topic.get(_policy_name(call), {}), policy, None)


def _policy_name(call: Call) -> str:
    name = whole(call.name)
    if not call.topics.is_there(name) and not call.topics.is_there(call.name):
        raise RestError(404, "Topic not found")
    return str(name)


POLICIES: dict[str, tuple[str, type]] = {
    "deduplicationEnabled": ("deduplicationEnabled", bool),
    "schemaCompatibilityStrategy": ("schemaCompatibilityStrategy", str),
    "schemaValidationEnforced": ("schemaValidationEnforced", bool),
    "maxConsumers": ("maxConsumers", int),
    "maxProducers": ("maxProducers", int),
    "maxUnackedMessagesOnConsumer": ("maxUnackedMessagesOnConsumer", int),
    "maxUnackedMessagesOnSubscription": ("maxUnackedMessagesOnSubscription", int),
}

ROUTES: dict[str, Callable[[Call], Any]] = {
    "GET lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}": lookup,
    "GET admin/v2/{domain}/{tenant}/{namespace}": topics,
    "GET admin/v2/{domain}/{tenant}/{namespace}/partitioned": partitioned,
    f"GET {TOPIC}/partitions": partitions,
    f"PUT {TOPIC}/partitions": make_partitioned,
    f"POST {TOPIC}/partitions": grow,
    f"DELETE {TOPIC}/partitions": drop_partitioned,
    f"PUT {TOPIC}": make,
    f"DELETE {TOPIC}": drop,
    f"PUT {TOPIC}/unload": unload,
    f"POST {TOPIC}/terminate": terminate,
    f"POST {TOPIC}/terminate/partitions": terminate_partitions,
    f"GET {TOPIC}/stats": stats,
    f"GET {TOPIC}/partitioned-stats": all_stats,
    f"GET {TOPIC}/internalStats": internal_stats,
    f"GET {TOPIC}/lastMessageId": last,
    f"PUT {TOPIC}/compaction": compact,
    f"GET {TOPIC}/compaction": compaction,
    **policy_routes(TOPIC, POLICIES, told, decide, undecide),
}
