"""Owns what a role may do: everything as a superuser, all of a tenant as its administrator, else what is granted.

Settings: `authorizationEnabled`, and `superUserRoles` (a list, or names separated by commas). A tenant names its
`adminRoles`, a namespace grants "produce" and "consume" to roles (`permissions` over HTTP). Without the first of these
settings everybody may do everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from mqclient.broker.pulsar.policies import Policies
from mqclient.broker.pulsar.refused import Refused
from mqclient.broker.pulsar.transactions import ASSIGN
from mqclient.pulsar.codes import ServerError
from mqclient.pulsar.names import TopicName, without_partition

if TYPE_CHECKING:
    from mqclient.broker.pulsar.session import Session

ACTIONS: Final = ("produce", "consume", "functions", "sources", "sinks", "packages")
PRODUCE: Final = ("produce",)
CONSUME: Final = ("consume",)
EITHER: Final = (*PRODUCE, *CONSUME)
"""Whoever has one of these finds out where a topic is."""


def check(session: Session, topic: TopicName, actions: Sequence[str], what: str) -> None:
    """Refused, with what was wanted, if the client's role may do none of these on the topic's namespace."""
    if str(without_partition(topic)) != ASSIGN:  # where coordinators are is nobody's secret
        check_namespace(session, f"{topic.tenant}/{topic.namespace}", actions, what)


def check_namespace(session: Session, namespace: str, actions: Sequence[str], what: str) -> None:
    if not allowed(session.topics.policies, session.principal.role, namespace, actions):
        raise Refused(ServerError.AuthorizationError, f"Client is not authorized to {what}")


def allowed(policies: Policies, role: str, namespace: str, actions: Sequence[str]) -> bool:
    tenant = namespace.partition("/")[0]
    if _everything(policies, role) or role in policies.tenants.get(tenant, {}).get("adminRoles", ()):
        return True
    granted = policies.of_namespace.get(namespace, {}).get("permissions", {})
    return any(action in granted.get(role, ()) for action in actions)


def may_call(policies: Policies, role: str, method: str, path: Sequence[str]) -> bool:
    """Over HTTP: clients find topics; the rest is for administrators, of a tenant or of all."""
    if _everything(policies, role):
        return True
    kind, place = (path[2], path[3:]) if path[0] == "admin" and len(path) > 2 else (path[0], path[4:])
    if not place or kind not in ("lookup", "namespaces", "schemas", "persistent", "non-persistent"):
        return False
    asks = method in ("GET", "HEAD") and (kind in ("lookup", "schemas") or path[-1] in ("partitions", "topics"))
    return allowed(policies, role, "/".join(place[:2]), EITHER if asks else ())


def _everything(policies: Policies, role: str) -> bool:
    if not policies.setting("authorizationEnabled", False):
        return True
    given = policies.setting("superUserRoles", ())
    roles = given.split(",") if isinstance(given, str) else given
    return bool(role) and role in {one.strip() for one in roles}
