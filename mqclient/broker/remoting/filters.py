"""Owns which messages a subscription wants: by tag, or by an expression over their properties."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from mqclient.broker.remoting.conditions import SqlError
from mqclient.broker.remoting.server import Refused
from mqclient.broker.remoting.sql import selector
from mqclient.broker.remoting.state import Broker, Queue
from mqclient.rocketmq.codes import Response

LOG = logging.getLogger("mqclient.broker")
TAG = "TAG"


class Filter(Protocol):
    """Says of one message whether it is wanted."""

    def wants(self, queue: Queue, offset: int) -> bool: ...


class Tags:
    """Messages whose tag has one of these hashes; consumers compare the text."""

    __slots__ = ("_codes",)

    def __init__(self, codes: frozenset[int]) -> None:
        self._codes = codes

    def wants(self, queue: Queue, offset: int) -> bool:
        return queue.tag(offset) in self._codes


class Expression:
    """Messages whose properties an SQL92 expression selects."""

    __slots__ = ("_remoting", "_selects")

    def __init__(self, broker: Broker, selects: Callable[[Mapping[str, str]], bool]) -> None:
        self._remoting = broker.house.impl.remoting
        self._selects = selects

    def wants(self, queue: Queue, offset: int) -> bool:
        return self._selects(self._remoting.decode_messages(queue.log.record(offset))[0].properties)


def check(broker: Broker, kind: str, expression: str) -> None:
    """Refuse what cannot be a filter here."""
    if kind == TAG:
        return
    _check_kind(broker, kind)
    try:
        selector(expression)
    except SqlError as error:
        raise Refused(Response.SUBSCRIPTION_PARSE_FAILED, str(error)) from None


def of_request(broker: Broker, kind: str, expression: str) -> Filter | None:
    """The filter that a request brings along; None wants everything, and so does, as upstream has it, a wrong one."""
    if kind == TAG:
        return _of_tags(broker, expression)
    if not expression:
        raise Refused(Response.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed")
    _check_kind(broker, kind)
    try:
        return Expression(broker, selector(expression))
    except SqlError as error:
        LOG.warning("the filter %r filters nothing: %s", expression, error)
        return None


def of_heartbeat(broker: Broker, subscription: Mapping[str, object]) -> Filter | None:
    """The filter of a subscription that came by heartbeat."""
    kind, expression = str(subscription.get("expressionType") or TAG), str(subscription.get("subString") or "")
    if kind == TAG:
        codes = subscription.get("codeSet")
        if expression == "*" or not isinstance(codes, list) or not codes:
            return None
        return Tags(frozenset(map(int, codes)))
    _check_kind(broker, kind)
    try:
        return Expression(broker, selector(expression))
    except SqlError:
        remark = "The broker's consumer filter data is not exist!Your expression may be wrong!"
        raise Refused(Response.FILTER_DATA_NOT_EXIST, remark) from None


def _check_kind(broker: Broker, kind: str) -> None:
    if kind != "SQL92" or not broker.setting("enablePropertyFilter"):
        remark = f"The broker does not support consumer to filter message by {kind}"
        raise Refused(Response.SYSTEM_ERROR, remark)


def _of_tags(broker: Broker, expression: str) -> Filter | None:
    if not expression or expression == "*":
        return None
    tags = [tag.strip() for tag in expression.split("||") if tag.strip()]
    if not tags:
        raise Refused(Response.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed")
    return Tags(frozenset(broker.house.impl.digest.java_string_hash(tag) for tag in tags))
