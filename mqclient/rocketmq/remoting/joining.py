"""Owns how a member begins: the routes of its topics, filters that brokers must take, where each queue starts."""

from __future__ import annotations

import logging
from typing import Any

from mqclient.core.steps import Steps
from mqclient.errors import MQError
from mqclient.rocketmq.codes import BrokerError, Request, Response
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting import requests
from mqclient.rocketmq.remoting.seeking import offset_at_steps

LOG = logging.getLogger("mqclient.remoting")


def route_steps(member: Any, topic: str) -> Steps[None]:
    """A topic may come to be with its first message; anything else that is wrong is told to the caller."""
    try:
        yield member.client.routes.fetch(topic)
    except MQError as error:
        if error.code != Response.TOPIC_NOT_EXIST:
            raise
        if not member.is_retry(topic):
            LOG.warning("consumer:%s subscribed to %s, which is not there yet: %s", member.group, topic, error)


def check_filter_steps(member: Any, topic: str) -> Steps[None]:
    """Ask a broker whether it takes an SQL expression: else no message would ever come, and nobody would say why."""
    subscription, route = member.subscriptions.get(topic), member.client.routes.get(topic)
    if subscription is None or not subscription.sql or route is None or not route.brokers:
        return
    body = requests.check_client_body(member.client.client_id, member.group, subscription.data())
    address = member.client.broker_address(min(route.brokers))
    try:
        yield from member.client.ask_steps(address, Request.CHECK_CLIENT_CONFIG, {}, body)
    except BrokerError as error:
        wrong = error.code == Response.SUBSCRIPTION_PARSE_FAILED
        cure = "" if wrong else " (brokers need enablePropertyFilter=true)"
        remark = f"{error.remark}: {subscription.expression}{cure}"
        raise BrokerError(error.code, remark, remote=address, request=error.request) from error


def start_offset_steps(member: Any, queue: MessageQueue) -> Steps[int]:
    """Where to begin with a queue: what is stored, else what `start` says; retries are never passed over."""
    stored = yield from member.offsets.read_steps(queue)
    if stored is not None and stored >= 0:
        return int(stored)
    start = member.options.start
    if member.is_retry(queue.topic):
        start = "last" if member.start_ms is not None else "first"
    return (yield from offset_at_steps(member.client, queue, start))
