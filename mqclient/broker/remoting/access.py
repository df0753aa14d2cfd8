"""Owns who may do what: signatures by access key, and what each account may do with topics and groups (ACL 1.0).

`accounts`: a list as in upstream's plain_acl.yml, each `accessKey`, `secretKey`, and perhaps `admin`,
`defaultTopicPerm`, `defaultGroupPerm`, `topicPerms` and `groupPerms` (`["orders=PUB|SUB", ...]`). With `aclEnable`
requests are checked and refused as 4.9 does it, with code 1; with `authenticationEnabled` as 5.x does, with 16 and
without permissions.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from mqclient.broker.remoting.server import Ask, Refused
from mqclient.errors import ConfigError, ProtocolError
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.model import RETRY_PREFIX
from mqclient.rocketmq.remoting.bodies import read_body
from mqclient.rocketmq.signing import ACL

PUB: Final = 1
SUB: Final = 2
WORDS: Final = {"DENY": 0, "PUB": PUB, "SUB": SUB, "PUB|SUB": PUB | SUB, "SUB|PUB": PUB | SUB, "ANY": PUB | SUB}
ADMIN_ONLY: Final = frozenset(
    {
        Request.UPDATE_AND_CREATE_TOPIC,
        Request.UPDATE_AND_CREATE_TOPIC_LIST,
        Request.UPDATE_BROKER_CONFIG,
        Request.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        Request.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
        Request.DELETE_SUBSCRIPTIONGROUP,
        Request.DELETE_TOPIC_IN_BROKER,
    }
)
UNSIGNED_FLAG: Final = "_UNIQUE_KEY_QUERY"
SIGNS_FLAG: Final = 400
"""Older clients leave that flag out of what they sign."""


class Need(NamedTuple):
    """What a request does with a topic, or with the group that a retry topic stands for."""

    resource: str
    permission: int

    @property
    def is_group(self) -> bool:
        return self.resource.startswith(RETRY_PREFIX)


@dataclass(slots=True)
class Account:
    """One access key and what it may do."""

    credentials: ACL
    admin: bool
    topic_default: int
    group_default: int
    granted: dict[str, int]

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Account:
        granted = dict(_grant(line) for line in entry.get("topicPerms", ()))
        granted |= {RETRY_PREFIX + name: perm for name, perm in map(_grant, entry.get("groupPerms", ()))}
        return cls(
            ACL(str(entry.get("accessKey") or ""), str(entry.get("secretKey") or "")),
            bool(entry.get("admin", False)),
            _permission(entry.get("defaultTopicPerm", "DENY")),
            _permission(entry.get("defaultGroupPerm", "DENY")),
            granted,
        )

    def may(self, need: Need) -> bool:
        default = self.group_default if need.is_group else self.topic_default
        return bool(self.granted.get(need.resource, default) & need.permission)


class Access:
    """Lets requests pass or refuses them."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._permissions = bool(settings.get("aclEnable"))
        self._accounts: dict[str, Account] = {}
        for entry in settings.get("accounts") or ():
            account = Account.of(entry)
            self._accounts[account.credentials.access_key] = account
        if not self._accounts:
            raise ConfigError("accounts= is missing: somebody must be allowed to come in")

    def check(self, ask: Ask) -> None:
        key = ask.text("AccessKey", "")
        account = self._accounts.get(key)
        if not key:
            raise self._refused("No accessKey is configured", "username cannot be null.")
        if account is None:
            raise self._refused(f"No acl config for {key}", f"User:{key} is not found.")
        if not self._signed(ask, account):
            raise self._refused(f"Check signature failed for accessKey={key}", "check signature failed.")
        if self._permissions and not account.admin:
            self._check_permissions(ask, account)

    def _check_permissions(self, ask: Ask, account: Account) -> None:
        if ask.frame.code in ADMIN_ONLY:
            key = account.credentials.access_key
            remark = f"Need admin permission for request code={ask.frame.code}, but accessKey={key} is not"
            raise self._refused(remark, remark)
        for need in needs(ask):
            if not account.may(need):
                shown = f"group:{need.resource[len(RETRY_PREFIX) :]}" if need.is_group else f"topic:{need.resource}"
                remark = f"No default permission for {shown}"
                raise self._refused(remark, remark)

    def _signed(self, ask: Ask, account: Account) -> bool:
        fields = ask.frame.fields
        if ask.frame.version < SIGNS_FLAG:
            fields = {name: value for name, value in fields.items() if name != UNSIGNED_FLAG}
        expected = account.credentials.sign(fields, ask.body)
        return hmac.compare_digest(expected.encode(), ask.text("Signature", "").encode())

    def _refused(self, old: str, new: str) -> Refused:
        if self._permissions:
            return Refused(Response.SYSTEM_ERROR, f"org.apache.rocketmq.acl.common.AclException: {old}")
        return Refused(Response.NO_PERMISSION, new)


def guard(settings: Mapping[str, Any]) -> Callable[[Ask], None] | None:
    """What checks each request, if that is wanted."""
    if settings.get("aclEnable") or settings.get("authenticationEnabled"):
        return Access(settings).check
    return None


def needs(ask: Ask) -> Iterable[Need]:
    """What upstream asks permissions for; requests that are not named here need none."""
    find = NEEDS.get(ask.frame.code)
    return () if find is None else find(ask)


def _sends(name: str) -> Callable[[Ask], Iterable[Need]]:
    def find(ask: Ask) -> Iterable[Need]:
        topic = ask.text(name, "")
        return (Need(topic, SUB if topic.startswith(RETRY_PREFIX) else PUB),)

    return find


def _reads(*names: str) -> Callable[[Ask], Iterable[Need]]:
    def find(ask: Ask) -> Iterable[Need]:
        for name in names:
            value = ask.text(name, "")
            if value:
                yield Need(value if name == "topic" else RETRY_PREFIX + value, SUB)

    return find


def _sends_back(ask: Ask) -> Iterable[Need]:
    yield Need(ask.text("originTopic", ""), PUB)
    yield Need(RETRY_PREFIX + ask.text("group", ""), SUB)


def _beats(ask: Ask) -> Iterator[Need]:
    """Consumers need their groups and what they subscribe to; producers nothing."""
    try:
        entries = read_body(ask.body).get("consumerDataSet") or ()
        for entry in entries:
            yield Need(RETRY_PREFIX + str(entry["groupName"]), SUB)
            for subscription in entry.get("subscriptionDataSet") or ():
                yield Need(str(subscription["topic"]), SUB)
    except (AttributeError, KeyError, TypeError) as error:
        raise ProtocolError(f"a heartbeat that cannot be read: {error!r}") from error


NEEDS: Final[Mapping[int, Callable[[Ask], Iterable[Need]]]] = {
    Request.SEND_MESSAGE: _sends("topic"),
    Request.SEND_MESSAGE_V2: _sends("b"),
    Request.SEND_BATCH_MESSAGE: _sends("b"),
    Request.CONSUMER_SEND_MSG_BACK: _sends_back,
    Request.PULL_MESSAGE: _reads("topic", "consumerGroup"),
    Request.LITE_PULL_MESSAGE: _reads("topic", "consumerGroup"),
    Request.POP_MESSAGE: _reads("topic", "consumerGroup"),
    Request.QUERY_MESSAGE: _reads("topic"),
    Request.HEART_BEAT: _beats,
    Request.UNREGISTER_CLIENT: _reads("consumerGroup"),
    Request.GET_CONSUMER_LIST_BY_GROUP: _reads("consumerGroup"),
    Request.UPDATE_CONSUMER_OFFSET: _reads("topic", "consumerGroup"),
}


def _grant(line: str) -> tuple[str, int]:
    name, equals, words = line.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"accounts: {line!r} is no permission: name=PUB|SUB is one")
    return name.strip(), _permission(words)


def _permission(words: str) -> int:
    try:
        return WORDS[words.replace(" ", "").upper()]
    except KeyError:
        raise ConfigError(f"accounts: {words!r} is no permission: {', '.join(WORDS)} are") from None
