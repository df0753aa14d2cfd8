"""Owns the calling back of timed messages: the handle that a receipt holds, and the request to its broker."""

from __future__ import annotations

from typing import Any

from mqclient.core import base64url
from mqclient.core.steps import Steps
from mqclient.errors import ConfigError
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import Receipt


def recall_steps(client: Any, group: str, handle: str | Receipt) -> Steps[str]:
    """Take a timed message back before it is delivered; the value is its message id."""
    text = handle.recall_handle if isinstance(handle, Receipt) else handle
    if not text:
        raise ConfigError("this receipt has no recall handle: only messages with deliver_at or deliver_after have one")
    topic, broker = place(text)
    if client.routes.address(broker) is None:
        yield client.routes.fetch(topic)
    fields = {"producerGroup": group, "topic": topic, "recallHandle": text, "bname": broker}
    frame = yield from client.ask_steps(client.broker_address(broker), Request.RECALL_MESSAGE, fields)
    return str(frame.field("msgId", ""))


def place(handle: str) -> tuple[str, str]:
    """Topic and broker of a handle: base64 of `v1 topic broker time id`."""
    try:
        version, topic, broker, _, _ = base64url.decode(handle).decode().split(" ")
    except ValueError as error:
        raise ConfigError(f"{handle[:80]!r} is no recall handle: a receipt's .recall_handle is one") from error
    if version != "v1":
        raise ConfigError(f"a recall handle of version {version!r}: v1 is known")
    return topic, broker
