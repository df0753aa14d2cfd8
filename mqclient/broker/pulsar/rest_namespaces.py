"""Tenants and namespaces over HTTP, and what is decided for all topics of a namespace."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mqclient.broker.pulsar import life
from mqclient.broker.pulsar.compatibility import NAMES as STRATEGIES
from mqclient.broker.pulsar.permissions import ACTIONS
from mqclient.broker.pulsar.rest_call import Call, RestError
from mqclient.broker.pulsar.topics import Topic

NAMESPACE = "admin/v2/namespaces/{tenant}/{namespace}"
MODES: dict[str, Callable[[Topic], bool]] = {
    "PERSISTENT": lambda topic: topic.name.persistent,
    "NON_PERSISTENT": lambda topic: not topic.name.persistent,
    "ALL": lambda topic: True,
}


def tenants(call: Call) -> Any:
    return sorted(call.topics.policies.tenants)


def tenant(call: Call) -> Any:
    return _tenant(call)


def _tenant(call: Call) -> dict[str, Any]:
    found = call.topics.policies.tenants.get(call.parts["tenant"])
    if found is None:
        raise RestError(404, "Tenant does not exist")
    return found


def make_tenant(call: Call) -> Any:
    known = call.topics.policies.tenants
    if call.parts["tenant"] in known:
        raise RestError(409, "Tenant already exist")
    known[call.parts["tenant"]] = {"adminRoles": [], "allowedClusters": ["standalone"], **call.object()}


def change_tenant(call: Call) -> Any:
    _tenant(call).update(call.object())


def drop_tenant(call: Call) -> Any:
    _tenant(call)
    mine = call.parts["tenant"] + "/"
    inside = [name for name in call.topics.policies.of_namespace if name.startswith(mine)]
    if inside and not call.flag("force"):
        raise RestError(409, "The tenant still has active namespaces")
    for name in inside:
        _drop(call, name, True)
    del call.topics.policies.tenants[call.parts["tenant"]]


def namespaces(call: Call) -> Any:
    _tenant(call)
    mine = call.parts["tenant"] + "/"
    return sorted(name for name in call.topics.policies.of_namespace if name.startswith(mine))


def namespace(call: Call) -> Any:
    return call.topics.policies.of_namespace[call.namespace]


def make_namespace(call: Call) -> Any:
    _tenant(call)
    name = f"{call.parts['tenant']}/{call.parts['namespace']}"
    if name in call.topics.policies.of_namespace:
        raise RestError(409, "Namespace already exists")
    call.topics.policies.of_namespace[name] = {}


def drop_namespace(call: Call) -> Any:
    _drop(call, call.namespace, call.flag("force"))


def _drop(call: Call, name: str, force: bool) -> None:
    inside = _topics(call, name, MODES["ALL"])
    if inside and not force:
        raise RestError(409, f"Cannot delete non empty namespace {name}")
    for topic in inside:
        life.delete(call.topics, topic)
    known = call.topics.partitions
    for text in [text for text in known if f"://{name}/" in text]:
        del known[text]
    del call.topics.policies.of_namespace[name]


def _topics(call: Call, name: str, wanted: Callable[[Topic], bool]) -> list[Topic]:
    texts = call.topics.in_namespace(name, wanted)
    return [topic for text in texts if (topic := call.topics.get(text)) is not None]


def topics(call: Call) -> Any:
    mode = call.request.query.get("mode", "PERSISTENT")
    if mode not in MODES:
        raise RestError(400, f"mode {mode!r} is none of {', '.join(MODES)}")
    return call.topics.in_namespace(call.namespace, MODES[mode])


def unload(call: Call) -> Any:
    for topic in _topics(call, call.namespace, MODES["ALL"]):
        life.unload(topic)


def permissions(call: Call) -> Any:
    return call.topics.policies.of_namespace[call.namespace].get("permissions", {})


def grant(call: Call) -> Any:
    actions = call.json([])
    if not isinstance(actions, list) or not set(map(str, actions)) <= set(ACTIONS):
        raise RestError(400, f"a list of actions is needed, of {', '.join(ACTIONS)}")
    _grant(call, {**permissions(call), call.parts["role"]: sorted(actions)})


def revoke(call: Call) -> Any:
    _grant(call, {role: actions for role, actions in permissions(call).items() if role != call.parts["role"]})


def _grant(call: Call, granted: dict[str, list[str]]) -> None:
    policies = call.topics.policies
    policies.decide(policies.of_namespace[call.namespace], "permissions", granted)


def told(policy: str, call: Call) -> Any:
    return call.topics.policies.of_namespace[call.namespace].get(policy)


def given_value(policy: str, kind: type, call: Call) -> Any:
    """The body, if it is what the policy takes."""
    given = call.json()
    if not isinstance(given, kind) or (kind is int and isinstance(given, bool)):
        raise RestError(400, f"{policy} is a {kind.__name__}, not {given!r}")
    if policy == "schemaCompatibilityStrategy" and given not in STRATEGIES:
        raise RestError(400, f"{policy} is one of {', '.join(sorted(STRATEGIES))}, not {given!r}")
    return given


def decide(policy: str, kind: type, call: Call) -> Any:
    given = given_value(policy, kind, call)
    call.topics.policies.decide(call.topics.policies.of_namespace[call.namespace], policy, given)


def undecide(policy: str, call: Call) -> Any:
    call.topics.policies.decide(call.topics.policies.of_namespace[call.namespace], policy, None)


POLICIES: dict[str, tuple[str, type]] = {
    "deduplication": ("deduplicationEnabled", bool),
    "schemaCompatibilityStrategy": ("schemaCompatibilityStrategy", str),
    "schemaValidationEnforced": ("schemaValidationEnforced", bool),
    "isAllowAutoUpdateSchema": ("isAllowAutoUpdateSchema", bool),
    "encryptionRequired": ("encryptionRequired", bool),
    "autoTopicCreation": ("autoTopicCreation", dict),
    "autoSubscriptionCreation": ("autoSubscriptionCreation", dict),
    "maxConsumersPerTopic": ("maxConsumers", int),
    "maxProducersPerTopic": ("maxProducers", int),
    "maxUnackedMessagesPerConsumer": ("maxUnackedMessagesOnConsumer", int),
    "maxUnackedMessagesPerSubscription": ("maxUnackedMessagesOnSubscription", int),
}
"""The word in the address to the policy and the type of its value."""


def policy_routes(place: str, policies: dict[str, tuple[str, type]], *handlers: Callable[..., Any]) -> dict[str, Any]:
    """GET, POST and PUT, DELETE of each policy."""
    ask, say, drop = handlers
    routes: dict[str, Any] = {}
    for word, (policy, kind) in policies.items():
        routes[f"GET {place}/{word}"] = partial(ask, policy)
        routes[f"POST {place}/{word}"] = routes[f"PUT {place}/{word}"] = partial(say, policy, kind)
        routes[f"DELETE {place}/{word}"] = partial(drop, policy)
    return routes


ROUTES: dict[str, Callable[[Call], Any]] = {
    "GET admin/v2/tenants": tenants,
    "GET admin/v2/tenants/{tenant}": tenant,
    "PUT admin/v2/tenants/{tenant}": make_tenant,
    "POST admin/v2/tenants/{tenant}": change_tenant,
    "DELETE admin/v2/tenants/{tenant}": drop_tenant,
    "GET admin/v2/namespaces/{tenant}": namespaces,
    f"GET {NAMESPACE}": namespace,
    f"PUT {NAMESPACE}": make_namespace,
    f"DELETE {NAMESPACE}": drop_namespace,
    f"GET {NAMESPACE}/topics": topics,
    f"PUT {NAMESPACE}/unload": unload,
    f"GET {NAMESPACE}/permissions": permissions,
    f"POST {NAMESPACE}/permissions/{{role}}": grant,
    f"DELETE {NAMESPACE}/permissions/{{role}}": revoke,
    **policy_routes(NAMESPACE, POLICIES, told, decide, undecide),
}
