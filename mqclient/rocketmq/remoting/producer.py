"""Owns sending: preparing outside the lock, choosing a queue, trying another broker within the deadline, batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, gather, run_steps
from mqclient.errors import ClosedError, ConfigError, DeadlineError, MQError
from mqclient.rocketmq.codes import BrokerError, Request, Response
from mqclient.rocketmq.model import (
    RETRY_PREFIX,
    Message,
    MessageQueue,
    PartialSendError,
    Receipt,
    check_group,
    check_message,
)
from mqclient.rocketmq.remoting import requests
from mqclient.rocketmq.remoting.client import ClientEngine
from mqclient.rocketmq.remoting.routes import Route

if TYPE_CHECKING:
    from mqclient._native.handover import SendFuture

STORED: Final = frozenset(
    {
        Response.SUCCESS,
        Response.FLUSH_DISK_TIMEOUT,
        Response.FLUSH_SLAVE_TIMEOUT,
        Response.SLAVE_NOT_AVAILABLE,
    }
)
DEFAULT_TIMEOUT: Final = 3.0
TRIES: Final = 3
MAX_BATCH_BYTES: Final = 1 << 20
MAX_BATCH: Final = 4096


R = TypeVar("R", bound=Any)


class Prepared(NamedTuple):
    """A message as it goes over the wire, made before the engine is entered."""

    topic: str
    body: bytes | bytearray | memoryview
    properties: bytes
    flag: int
    message_id: str
    key: str | None
    alone: bool
    """May not travel in a batch: delayed, or for a retry topic."""


class Sending:
    """One request until it is answered for good: a message or a batch, its tries, its slot."""

    __slots__ = ("_avoid", "_engine", "_queue", "_tries", "batch", "body", "deadline", "messages", "properties", "slot")

    def __init__(
        self, engine: ProducerEngine, messages: Sequence[Prepared], deadline: float, queue: MessageQueue | None
    ) -> None:
        self._engine = engine
        self._avoid: str | None = None
        self._tries = 0
        self._queue = queue
        self.messages = messages
        self.batch = len(messages) > 1
        self.deadline = deadline
        self.slot: Slot[list[Receipt]] = Slot()
        first = messages[0]
        self.body, self.properties = first.body, first.properties
        if self.batch:
            builder = engine.remoting.BatchBuilder()
            for message in messages:
                builder.add(message.body, message.properties, message.flag)
            self.body = builder.seal()
            self.properties = engine.remoting.encode_properties({"WAIT": "true"})

    def attempt(self) -> None:
        """Send it, as soon as the route is known; every way out completes the slot or comes back here."""
        client, topic = self._engine.client, self.messages[0].topic
        try:
            route = client.routes.get(topic)
            if route is None or not route.writable:
                client.routes.publish(topic).then(self._on_route)
                return
            queue = self._queue or self._engine.choose(route, self.messages[0].key, self._avoid)
            address = client.broker_address(queue.broker_name)
            left = self.deadline - client.driver.now.mono
            if left <= 0:
                raise DeadlineError(f"no time left to send to {topic}").about(request="SEND_MESSAGE")
            self._send(queue, address, left)
        except MQError as error:
            self.slot.fail(error)

    def _send(self, queue: MessageQueue, address: str, left: float) -> None:
        client, many = self._engine.client, self.batch
        code = Request.SEND_BATCH_MESSAGE if many else Request.SEND_MESSAGE_V2
        opaque = client.opaque()
        frame = self._engine.remoting.encode_send(
            opaque,
            self._engine.group,
            queue.topic,
            queue.queue_id,
            self.properties,
            self.body,
            born_at=client.driver.now.wall_ms,
            code=int(code),
            flag=0 if many else self.messages[0].flag,
            batch=many,
            broker=queue.broker_name,
        )
        self._tries += 1
        # A silent broker may take half of what is left, so that another one gets its chance.
        timeout = left / 2 if self._tries < TRIES and self._engine.other_broker(queue) else left
        client.send(address, opaque, frame, code.name, timeout=timeout).then(
            lambda slot: self._on_reply(slot, queue, address)
        )

    def _on_route(self, slot: Slot[Route]) -> None:
        if slot.error is not None:
            self.slot.fail(slot.error)
        else:
            self.attempt()

    def _on_reply(self, slot: Slot[Any], queue: MessageQueue, address: str) -> None:
        error = slot.error
        if error is None:
            frame = slot.result()
            if frame.code in STORED:
                self.slot.complete(self._receipts(frame, queue))
                return
            error = BrokerError(frame.code, frame.remark or "", remote=address, request="SEND_MESSAGE")
        self._failed(error, queue)

    def _failed(self, error: BaseException, queue: MessageQueue) -> None:
        client = self._engine.client
        advice = isinstance(error, MQError) and error.retriable and not isinstance(error, ClosedError)
        if isinstance(error, MQError) and error.refresh_route and not client.closed:
            client.routes.fetch(queue.topic)
        if advice and self._tries < TRIES and client.driver.now.mono < self.deadline:
            self._avoid = queue.broker_name
            self.attempt()
        else:
            self.slot.fail(error)

    def _receipts(self, frame: Any, queue: MessageQueue) -> list[Receipt]:
        """One for each message: the answer to a batch names the first offset and all offset ids."""
        stored_in = queue._replace(queue_id=int(frame.field("queueId", str(queue.queue_id))))
        first = int(frame.field("queueOffset", "-1"))
        ids = frame.field("msgId", "").split(",")
        status = "SEND_OK" if frame.code == Response.SUCCESS else Response(frame.code).name
        single = len(self.messages) == 1
        return [
            Receipt(
                stored_in,
                first + index,
                message.message_id,
                ids[index] if index < len(ids) else "",
                status,
                frame.field("transactionId") if single else None,
                frame.field("recallHandle") if single else None,
            )
            for index, message in enumerate(self.messages)
        ]


class Submitted:
    """What the future of one submitted message looks at."""

    __slots__ = ("_client", "_slot")

    def __init__(self, client: ClientEngine, slot: Slot[list[Receipt]]) -> None:
        self._client = client
        self._slot = slot

    @property
    def done(self) -> bool:
        return self._slot.done

    def outcome(self, index: int, /) -> Receipt | BaseException:
        return self._slot.error or self._slot.result()[index]

    def wait(self, timeout: float | None, /) -> bool:
        """Block until done; only a driver whose `wait` blocks can, so under asyncio this raises."""
        if not self._client.blocking:
            raise MQError("a future of an asyncio producer cannot block: use `await producer.send(…)` or a callback")
        driver: Any = self._client.driver
        try:
            driver.wait(self._slot, driver.deadline(timeout))
        except DeadlineError:
            return self._slot.done
        except Exception:
            if not self._slot.done:  # else it is the message's own error, which `outcome` tells
                raise
        return True

    def on_done(self, callback: Callable[[Any], object], index: int, /) -> None:
        """Call back with the future where user code may run, at once if it is done."""
        driver, future = self._client.driver, self._client.impl.handover.SendFuture
        with driver.enter():
            self._slot.then(lambda _: driver.run_user(callback, future(self, index)))


class ProducerEngine:
    """One producer group's sending side."""

    def __init__(self, client: ClientEngine, group: str) -> None:
        check_group(group)
        if group in client.producers:
            raise ConfigError(f"group {group!r} has a producer in this client already")
        self.client = client
        self.group = group
        self.remoting = client.impl.remoting
        self.closed = False
        self._hash = client.impl.digest.java_string_hash
        client.producers[group] = self

    def on_route(self, topic: str) -> None:
        """Routes are looked up for each send."""

    def prepare(self, message: Message, key: str | None = None) -> Prepared:
        """Checks and bytes, outside of the engine."""
        check_message(message)
        # The time of the last entry is good enough for an id.
        message_id = self.client.keys.next(self.client.driver.now.wall_ms)
        properties = {"UNIQ_KEY": message_id, "WAIT": "true"}
        if message.tag:
            properties["TAGS"] = message.tag
        if message.keys:
            properties["KEYS"] = " ".join(message.keys)
        if message.delay_level > 0:
            properties["DELAY"] = str(message.delay_level)
        properties.update(message.properties)
        text = self.remoting.encode_properties(properties)
        alone = message.delay_level > 0 or message.topic.startswith(RETRY_PREFIX)
        return Prepared(message.topic, message.body, text, message.flag, message_id, key, alone)

    def prepare_many(self, messages: Iterable[Message], key: Callable[[Message], str | None] | None) -> list[Prepared]:
        """As `prepare`, for each with the key that the callable gives."""
        return [self.prepare(message, None if key is None else key(message)) for message in messages]

    def submit(
        self, prepared: Prepared, deadline: float | None, queue: MessageQueue | None = None
    ) -> Slot[list[Receipt]]:
        """Send one message; the slot gets a list with its receipt."""
        self.check_open()
        sending = Sending(self, [prepared], self.deadline(deadline), queue)
        sending.attempt()
        return sending.slot

    def submit_future(self, prepared: Prepared) -> SendFuture:
        """Send one message; a future of its receipt."""
        submitted = Submitted(self.client, self.submit(prepared, None))
        future: SendFuture = self.client.impl.handover.SendFuture(submitted, 0)
        return future

    def submit_many(self, messages: Sequence[Prepared], deadline: float | None) -> Slot[list[Receipt | MQError]]:
        """Send many, in batches where that is legal; the value holds a receipt or an error for each, in order."""
        self.check_open()
        return run_steps(self._many_steps(messages, self.deadline(deadline)))

    def submit_oneway(self, prepared: Prepared) -> Slot[None]:
        """Send without an answer; done when it is written."""
        self.check_open()
        return run_steps(self._oneway_steps(prepared))

    def choose(self, route: Route, key: str | None, avoid: str | None) -> MessageQueue:
        """The key's own queue, as Java's selector by hash has it; else the next in turn."""
        if key is None:
            return self.client.routes.pick(route, avoid)
        # Java's remainder keeps the sign of the hash; its absolute value is what counts.
        index: int = abs(self._hash(key)) % len(route.writable)
        return route.writable[index]

    def other_broker(self, queue: MessageQueue) -> bool:
        route = self.client.routes.get(queue.topic)
        return route is not None and any(other.broker_name != queue.broker_name for other in route.writable)

    def close(self) -> Slot[None]:
        """Tell the brokers; what is in flight ends by itself."""
        return run_steps(self.close_steps())

    def close_steps(self) -> Steps[None]:
        if self.closed:
            return
        self.closed = True
        self.client.producers.pop(self.group, None)
        if self.client.closed:
            return
        farewells = []
        for name, address in self.client.routes.masters().items():
            fields = requests.unregister(self.client.client_id, producer=self.group, broker=name)
            farewells.append(self.client.ask(address, Request.UNREGISTER_CLIENT, fields))
        yield gather(farewells)

    def _many_steps(self, messages: Sequence[Prepared], deadline: float) -> Steps[list[Receipt | MQError]]:
        results: list[Any] = [None] * len(messages)
        sent = []
        for indexes in self._batches(messages):
            sending = Sending(self, [messages[index] for index in indexes], deadline, None)
            sending.attempt()
            sent.append((indexes, sending.slot))
        yield gather([slot for _, slot in sent])
        for indexes, slot in sent:
            outcome = [slot.error] * len(indexes) if slot.error is not None else slot.result()
            for index, result in zip(indexes, outcome, strict=True):
                results[index] = result
        return results

    def _batches(self, messages: Sequence[Prepared]) -> list[list[int]]:
        """Indexes that travel together: one topic, one key, up to a size; what may not be batched goes alone."""
        batches: list[list[int]] = []
        growing: dict[tuple[str, str | None], tuple[list[int], int]] = {}
        for index, message in enumerate(messages):
            if message.alone:
                batches.append([index])
                continue
            place = (message.topic, message.key)
            batch, size = growing.get(place, ([], 0))
            size += len(message.body) + len(message.properties) + 22
            if not batch or size > MAX_BATCH_BYTES or len(batch) >= MAX_BATCH:
                batch, size = [], size if not batch else len(message.body) + len(message.properties) + 22
                batches.append(batch)
            batch.append(index)
            growing[place] = (batch, size)
        return batches

    def _oneway_steps(self, prepared: Prepared) -> Steps[None]:
        route = self.client.routes.get(prepared.topic)
        if route is None or not route.writable:
            route = yield self.client.routes.publish(prepared.topic)
        queue = self.choose(route, prepared.key, None)
        frame = self.remoting.encode_send(
            self.client.opaque(),
            self.group,
            queue.topic,
            queue.queue_id,
            prepared.properties,
            prepared.body,
            born_at=self.client.driver.now.wall_ms,
            flag=prepared.flag,
            broker=queue.broker_name,
            oneway=True,
        )
        self.client.link(self.client.broker_address(queue.broker_name)).write(frame)

    def deadline(self, deadline: float | None) -> float:
        return self.client.driver.now.mono + DEFAULT_TIMEOUT if deadline is None else deadline

    def check_open(self) -> None:
        if self.closed or self.client.closed:
            raise ClosedError(f"the producer {self.group!r} is closed")


def checked(results: list[R], raise_on_error: bool) -> list[R]:
    """The results of a `send_many`, raised as one error if that was asked for and one of them failed."""
    if raise_on_error and not all(result.ok for result in results):
        raise PartialSendError(results)
    return results
