"""Owns pop consumption: brokers lend messages for a while to whoever asks; who is done with one says so.

No queue belongs to anybody: as many as like share a topic, and a slow one holds nobody up. Nothing is asked for ahead:
the time of what was lent runs from then on, so brokers are asked while somebody waits, one question each at a time.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mqclient.core.slot import Slot, Wake
from mqclient.core.steps import Steps, gather, run_steps
from mqclient.core.waiters import Waiters
from mqclient.errors import ClosedError, ConfigError, LinkError, MQError
from mqclient.rocketmq.codes import BrokerError, Request, Response
from mqclient.rocketmq.model import MessageQueue, check_group, check_topic
from mqclient.rocketmq.remoting.client import ClientEngine, check_options
from mqclient.rocketmq.remoting.handles import Handle, handles_of
from mqclient.rocketmq.remoting.pull import DECOMPRESS, EXCEPTION_DELAY, FLOW_CONTROL_DELAY, Folds
from mqclient.rocketmq.remoting.subscription import Subscription

if TYPE_CHECKING:
    from mqclient._native.remoting import Message

LOG = logging.getLogger("mqclient.remoting")

MOST: Final = 32
"""What a broker lends at once."""
POLL_MS: Final = 15000
POLL_TIMEOUT: Final = 25.0
ACK_TIMEOUT: Final = 3.0
SOON: Final = 0.001
"""As good as given back."""
NOTHING: Final = (Response.PULL_NOT_FOUND, Response.POLLING_TIMEOUT)


@dataclass(frozen=True, slots=True)
class PopOptions:
    """How messages are lent; times in seconds."""

    expression: str = "*"
    """Tags, or `Sql(…)`."""
    invisible: float = 60.0
    """For how long nobody else gets a message; 5 to 300."""
    batch: int = MOST
    start: str = "first"
    """Where a group without offsets begins: "first" or "last"."""
    orderly: bool = False
    """Each queue lends its next messages when the ones before were acknowledged."""

    def __post_init__(self) -> None:
        if not 5 <= self.invisible <= 300:
            raise ConfigError(f"invisible={self.invisible}: 5 to 300 seconds")
        if not 1 <= self.batch <= MOST:
            raise ConfigError(f"batch={self.batch}: 1 to {MOST}")
        if self.start not in ("first", "last"):
            raise ConfigError(f"start={self.start!r}: 'first' or 'last'")


def pop_options(options: Mapping[str, Any]) -> PopOptions:
    """A face's keyword options; an unknown one names the nearest."""
    check_options(options, PopOptions.__slots__)
    return PopOptions(**options)


class Popped:
    """A message that was lent: everything that a message has, and the handle by which it is given back."""

    __slots__ = ("handle", "message")

    def __init__(self, message: Message, handle: Handle) -> None:
        self.message = message
        self.handle = handle

    def __getattr__(self, name: str) -> Any:
        if name in Popped.__slots__:  # half made, as by copy.copy
            raise AttributeError(name)
        return getattr(self.message, name)

    def __repr__(self) -> str:
        return f"Popped({self.message!r}, expires_ms={self.handle.expires_ms})"

    @property
    def expires_ms(self) -> int:
        """Wall time in milliseconds: from then on somebody else may get it."""
        return self.handle.expires_ms


class PopEngine:
    """One consumer; `wait` has brokers asked, `take` gives what is there and has still time."""

    def __init__(self, client: ClientEngine, group: str, topic: str, options: PopOptions) -> None:
        check_group(group)
        check_topic(topic)
        self.group = group
        self.topic = topic
        self.options = options
        self.closed = False
        self.taker = self
        self.expired = 0
        """Messages whose time was over before anybody took them."""
        self._client = client
        self._folds = Folds(client)
        self._subscription = Subscription(topic, options.expression, 0, client.impl.digest.java_string_hash)
        self._ready: deque[Popped] = deque()
        self.waiters = Waiters(lambda: self._ready)
        self._asked: set[str] = set()
        """Brokers that have a question of ours."""

    def start(self) -> Slot[None]:
        return run_steps(self._start_steps())

    def _start_steps(self) -> Steps[None]:
        yield self._client.routes.fetch(self.topic)
        self._client.unjoined.append(self)

    def close(self) -> Slot[None]:
        return run_steps(self.close_steps())

    def close_steps(self) -> Steps[None]:
        """Nobody has to be told: what nobody took comes again when its time is over; what is at hand, at once."""
        if self.closed:
            return
        self.abandon()
        left, self._ready = list(self._ready), deque()
        yield gather([run_steps(self._change_steps(popped, SOON)) for popped in left])

    def abandon(self) -> None:
        self.closed = True
        if self in self._client.unjoined:
            self._client.unjoined.remove(self)
        self.waiters.close(ClosedError(f"the consumer of group {self.group!r} is closed"))

    def check_open(self) -> None:
        if self.closed or self._client.closed:
            raise ClosedError(f"the consumer of group {self.group!r} is closed")

    def diagnose(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "topic": self.topic,
            "waiting": len(self._ready),
            "asked": sorted(self._asked),
            "expired": self.expired,
        }

    # ---- asked by the faces, inside an entry

    def take(self, limit: int) -> list[Popped]:
        """What is there, at most so many; what is too late to be acknowledged is left out."""
        self.check_open()
        now = self._client.driver.now.wall_ms
        found: list[Popped] = []
        while self._ready and len(found) < limit:
            popped = self._ready.popleft()
            if popped.handle.expires_ms > now:
                found.append(popped)
            else:
                self.expired += 1
        return found

    def wait(self) -> Wake:
        """Done when something may be there."""
        self.check_open()
        wake = self.waiters.join()
        if wake.done:
            return wake
        route = self._client.routes.get(self.topic)
        for name in () if route is None else route.brokers:
            if name not in self._asked:
                self._begin(name)
        return wake

    def _begin(self, name: str) -> None:
        self._asked.add(name)
        run_steps(self._ask_steps(name)).then(lambda _: self._asked.discard(name))

    def ack_steps(self, messages: Popped | Iterable[Popped]) -> Steps[None]:
        """They are consumed; the first that a broker refused is raised when all are through."""
        wanted = [messages] if isinstance(messages, Popped) else _all_popped(messages)
        outcomes = yield gather([run_steps(self._ack_steps(popped)) for popped in wanted])
        for outcome in outcomes:
            outcome.result()

    def change_steps(self, popped: Popped, seconds: float) -> Steps[Popped]:
        """Ours for so long from now on, or, with little, soon somebody's; the message with its new handle."""
        if not 0 < seconds <= 43200:
            raise ConfigError(f"seconds={seconds}: more than 0, 12 hours at most")
        _all_popped((popped,))
        return (yield from self._change_steps(popped, seconds))

    # ---- towards brokers

    def _ask_steps(self, name: str) -> Steps[None]:
        """As long as somebody waits."""
        while self.waiters:
            try:
                delay = yield from self._pop_steps(name)
            except MQError as error:
                if self.closed or self._client.closed:
                    return
                self._folds.warn(("pop", name), f"consumer:{self.group} cannot pop {self.topic} of {name}: {error}")
                delay = EXCEPTION_DELAY
            if delay:
                yield self._client.timers.sleep(delay)

    def _pop_steps(self, name: str) -> Steps[float]:
        options = self.options
        fields = {
            "consumerGroup": self.group,
            "topic": self.topic,
            "queueId": "-1",
            "maxMsgNums": str(options.batch),
            "invisibleTime": str(int(options.invisible * 1000)),
            "pollTime": str(POLL_MS),
            "bornTime": str(self._client.driver.now.wall_ms),
            "initMode": "0" if options.start == "first" else "1",
            "expType": self._subscription.kind,
            "exp": self._subscription.expression,
            "order": "true" if options.orderly else "false",
            "bname": name,
        }
        address = self._client.routes.address(name)
        if address is None:
            yield self._client.routes.fetch(self.topic)
            raise LinkError(f"the route of {self.topic} names no broker {name}")
        frame = yield self._client.ask(address, Request.POP_MESSAGE, fields, timeout=POLL_TIMEOUT)
        if frame.code == Response.SUCCESS:
            self._found(frame, name)
            return 0.0
        if frame.code in NOTHING:
            return 0.0
        if frame.code == Response.FLOW_CONTROL:
            return FLOW_CONTROL_DELAY
        raise BrokerError(frame.code, frame.remark or "", remote=address, request=Request.POP_MESSAGE.name)

    def _found(self, frame: Any, name: str) -> None:
        decode = self._client.impl.remoting.decode_messages
        batch = decode(frame.body, decompress=DECOMPRESS)
        handles = handles_of(frame, batch, name, self.group, self.topic)
        by_queue = {
            queue_id: decode(
                frame.body,
                decompress=DECOMPRESS,
                queue=MessageQueue(self.topic, name, queue_id),
                retry_topic=True,
            )
            for queue_id in {message.queue_id for message in batch}
        }
        tags = self._subscription.tags
        for index, (message, handle) in enumerate(zip(batch, handles, strict=True)):
            popped = Popped(by_queue[message.queue_id][index], handle)
            if tags and message.tag not in tags:
                run_steps(self._ack_steps(popped)).then(self._passed_over)  # its tag only has the same hash
            elif self.closed:  # asked for before, and nobody is here any more
                run_steps(self._change_steps(popped, SOON)).then(self._passed_over)
            else:
                self._ready.append(popped)
        self.waiters.arrived(len(self._ready))

    def _passed_over(self, slot: Slot[Any]) -> None:
        if slot.error is not None:
            LOG.info("consumer:%s could not give a message back: %s", self.group, slot.error)

    def _fields(self, popped: Popped) -> dict[str, str]:
        handle = popped.handle
        return {
            "consumerGroup": self.group,
            "topic": handle.topic(self.group, self.topic),
            "queueId": handle.queue_id,
            "offset": handle.offset,
            "extraInfo": str(handle),
            "bname": handle.broker_name,
        }

    def _ack_steps(self, popped: Popped) -> Steps[None]:
        address = self._client.broker_address(popped.handle.broker_name)
        yield from self._client.ask_steps(address, Request.ACK_MESSAGE, self._fields(popped), timeout=ACK_TIMEOUT)

    def _change_steps(self, popped: Popped, seconds: float) -> Steps[Popped]:
        handle = popped.handle
        address = self._client.broker_address(handle.broker_name)
        fields = {**self._fields(popped), "invisibleTime": str(max(1, int(seconds * 1000)))}
        frame = yield from self._client.ask_steps(
            address, Request.CHANGE_MESSAGE_INVISIBLETIME, fields, timeout=ACK_TIMEOUT
        )
        anew = handle._replace(
            start=handle.offset,
            pop_time=frame.field("popTime", handle.pop_time),
            invisible=frame.field("invisibleTime", handle.invisible),
            revive_queue=frame.field("reviveQid", handle.revive_queue),
        )
        return Popped(popped.message, anew)


def _all_popped(given: Iterable[Popped]) -> list[Popped]:
    many = list(given) if isinstance(given, Iterable) else [given]
    wrong = [type(one).__name__ for one in many if not isinstance(one, Popped)]
    if wrong:
        raise TypeError(f"what a pop consumer received is acknowledged, not {', '.join(wrong)}")
    return many
