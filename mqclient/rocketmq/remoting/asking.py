"""Owns request-reply from the senders' side: a message that somebody answers, and the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from mqclient.core.slot import Slot
from mqclient.core.steps import Steps
from mqclient.errors import ConfigError, DeadlineError
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import Message, MessageQueue, Receipt, Reply, check_key, check_queue
from mqclient.rocketmq.remoting.outgoing import Prepared
from mqclient.rocketmq.remoting.producer import ProducerEngine
from mqclient.rocketmq.remoting.sending import Sending


def prepare_request(engine: ProducerEngine, message: Message, timeout: float | None, key: str | None) -> Prepared:
    """Outside of any entry: the message with what the reply will find us by."""
    if message.timing is not None:
        raise ConfigError("a request cannot be delayed: somebody waits for the reply")
    if key is not None:
        check_key(key)
    client = engine.client
    seconds = engine.options.send_timeout if timeout is None else timeout
    more = {
        "CORRELATION_ID": str(uuid4()),
        "REPLY_TO_CLIENT": client.client_id,
        "TTL": str(max(1, round(seconds * 1000))),
    }
    prepared = engine.preparer.one(message, client.keys.next(client.driver.now.wall_ms), key, **more)
    return prepared._replace(alone=True, correlation=more["CORRELATION_ID"])


def request_steps(
    engine: ProducerEngine, prepared: Prepared, deadline: float | None, queue: MessageQueue | None
) -> Steps[Reply]:
    """Send it, and wait for its reply."""
    engine.check_open()
    if queue is not None:
        check_queue(queue, prepared.topic)
    client, until = engine.client, engine.deadline(deadline)
    route = client.routes.get(prepared.topic)
    if route is None or not route.writable:
        yield client.routes.publish(prepared.topic)
    yield from client.replies.announcer.tell_steps(client.routes.masters().values())
    slot: Slot[Reply] = Slot()
    client.replies.waiting[prepared.correlation] = slot
    text = f"the request {prepared.message_id} was sent to {prepared.topic}, and no reply came in time"
    late = DeadlineError(text).about(request="REQUEST")
    timer = client.timers.at(until, lambda _: slot.fail(late))
    try:
        yield Sending(engine, prepared, until, queue).start()
        reply: Reply = yield slot
        return reply
    finally:
        timer.cancel()
        client.replies.waiting.pop(prepared.correlation, None)


def prepare_reply(
    engine: ProducerEngine, request: Any, body: Any, properties: Mapping[str, str] | None, tag: str | None
) -> Prepared:
    """Outside of any entry: the answer to a message that was received."""
    cluster = request.property("CLUSTER")
    if not cluster:
        raise ConfigError("this message names no cluster, so no reply can be sent: is it one that was received?")
    more = {name: request.property(name) for name in ("CORRELATION_ID", "REPLY_TO_CLIENT", "TTL")}
    if not more["CORRELATION_ID"] or not more["REPLY_TO_CLIENT"]:
        raise ConfigError("this message is no request: nobody waits for a reply (it was sent by send, not by request)")
    message = Message(f"{cluster}_REPLY_TOPIC", body, properties=properties, tag=tag)
    client = engine.client
    told = {name: value for name, value in more.items() if value}
    message_id = client.keys.next(client.driver.now.wall_ms)
    prepared = engine.preparer.one(message, message_id, None, MSG_TYPE="reply", **told)
    return prepared._replace(alone=True, code=Request.SEND_REPLY_MESSAGE_V2)


def reply_steps(engine: ProducerEngine, prepared: Prepared, request: Any, deadline: float | None) -> Steps[Receipt]:
    """To the broker that had the request, for that one knows the requester; tried once: each try is stored."""
    engine.check_open()
    client = engine.client
    route = client.routes.get(prepared.topic) or (yield client.routes.publish(prepared.topic))
    queues = [queue for queue in route.writable if queue.broker_name == request.queue.broker_name]
    queue = queues[0] if queues else engine.choose(route, None, None)
    stored = yield Sending(engine, prepared, engine.deadline(deadline), queue, attempts=1).start()
    receipt: Receipt = stored[0]
    return receipt
