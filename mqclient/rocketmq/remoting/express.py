"""Owns the short way of a producer: a thread that sends and waits has its receipt without an entry, in one call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mqclient.core.slot import Slot
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import RESERVED_PROPERTIES, Message, MessageQueue, Receipt
from mqclient.rocketmq.remoting.many import Lone, Part, results
from mqclient.rocketmq.remoting.outgoing import Prepared
from mqclient.rocketmq.remoting.sending import LARGE, NAMES, Sending

if TYPE_CHECKING:
    from mqclient._native.remoting import Berth, Crossing
    from mqclient.rocketmq.remoting.producer import ProducerEngine

TIMELY: Final = 0.2
"""Seconds; who has less time goes the long way, where deadlines are kept to the millisecond."""
MOST_COURSES: Final = 1024
ALONE: Final = Request.SEND_MESSAGE_V2
TOGETHER: Final = Request.SEND_BATCH_MESSAGE


class Terms(NamedTuple):
    """What a `Ferry` has to know of its producer."""

    keys: Any
    prepare: Any
    """Makes what travels of a message that needs other care, or says what is wrong with it."""
    opaques: Iterator[int]
    turns: dict[str, int]
    faults: dict[str, float]
    """Where brokers ail, they are chosen with more care than by turns."""
    batch_properties: bytes
    most_plain: int
    most_together: int
    send_timeout: float
    decorates: bool
    """Hooks add to each message."""
    timely: float = TIMELY
    reserved: frozenset[str] = RESERVED_PROPERTIES
    codes: tuple[Request, Request] = (ALONE, TOGETHER)
    kind: type[Message] = Message
    content: type[Prepared] = Prepared
    receipt: type[Receipt] = Receipt


def express(engine: ProducerEngine) -> Express | None:
    """None where each send has more to it than a request and its answer, or where threads do not wait."""
    driver: Any = engine.client.driver
    if not hasattr(driver, "passage") or not engine.client.blocking or not engine.remoting.Lane.able:
        return None
    return Express(engine, driver.passage)


class Express:
    """One producer's. What is unusual becomes a `Sending` as on the long way, with a try behind it.

    Race: a thread waits outside of any entry, and another one flushes or closes. It gives what is under way a slot,
    inside its entry, *then* waits for the slots; who reads an answer looks for the slot first, GIL held.
    """

    def __init__(self, engine: ProducerEngine, passage: Any) -> None:
        self._engine = engine
        self._client = client = engine.client
        self._new_passage = passage
        self._passages: dict[str, Any] = {}
        """By address."""
        remoting, preparer = engine.remoting, engine.preparer
        self.lane = remoting.Lane(self._late)
        terms = Terms(
            client.keys,
            engine.prepare,
            client.opaques,
            client.routes.turns,
            engine.faults.until,
            preparer.batch_properties,
            preparer.most_plain,
            min(preparer.most_together, LARGE),
            engine.options.send_timeout,
            preparer.hooks.adds,
        )
        self.ferry = remoting.Ferry(self, terms)

    @property
    def landed(self) -> int:
        """Messages that went this way, and were stored as safely as was wanted."""
        count: int = self.lane.landed
        return count

    @property
    def pending(self) -> int:
        """Messages under way here."""
        return sum(len(one.what[0].ids) for one in list(self.lane.under_way) if one.slot is None and not one.answered)

    def on_route(self) -> None:
        """Inside an entry: queues and brokers may be others now."""
        self.ferry.courses.clear()

    def close(self) -> None:
        self.ferry.closed = True

    # ---- what the ferry calls, outside of any entry

    def chart(self, topic: str) -> list[Berth] | None:
        """The queues of a topic that was sent to before, so that name and route are good."""
        engine, client, courses = self._engine, self._client, self.ferry.courses
        if topic not in engine.preparer.topics:
            return None
        with client.driver.enter():  # where no route changes between the look and the note
            route = client.routes.get(topic)
            if route is None or not route.writable:
                return None
            client.routes.turn(route)  # the ferry counts on there being one
            self.ferry.keys = client.keys  # a forked child has its own
            addresses = {name: client.sending_address(name) for name in {queue.broker_name for queue in route.writable}}
            course = [self._berth(queue, addresses[queue.broker_name]) for queue in route.writable]
            if len(courses) >= MOST_COURSES:
                courses.clear()
            courses[topic] = course
        return course

    def _berth(self, queue: MessageQueue, address: str) -> Berth:
        head = self._engine.head
        berth: Berth = self._engine.remoting.Berth(queue, address, head(queue, ALONE), head(queue, TOGETHER))
        return berth

    def board(self, address: str) -> Any:
        """None while others read the connection, or there is none."""
        passage, link = self._passages.get(address), self._client.links.get(address)
        if passage is None or passage.link is not link or passage.connection.link is not link:
            passage = None if link is None else self._new_passage(link)
            self._passages[address] = passage
        return passage

    def settle(self, crossing: Crossing, slot: Slot[Any]) -> list[Any]:
        """What became of each, by the long way."""
        driver: Any = self._client.driver
        _, _, _, deadline, _, many = crossing.what
        return results(driver.wait(slot)) if many else [driver.wait(slot, deadline)[0]]

    def _late(self, crossing: Crossing) -> Any:
        """Outside of any entry: its answer takes its time, or is another than usual."""
        with self._client.driver.enter():
            return self._slot_of(crossing)

    # ---- inside

    def give_slots(self) -> None:
        """What is under way is among the producer's sendings now."""
        for crossing in list(self.lane.under_way):
            self._slot_of(crossing)

    def _slot_of(self, crossing: Crossing) -> Any:
        if crossing.slot is None and not crossing.answered:
            engine = self._engine
            prepared, queue, address, deadline, began, many = crossing.what
            part = Part(prepared, range(len(prepared.ids))) if many else None
            sending = Sending(engine, prepared, deadline) if part is None else Lone(engine, part, deadline)
            until = sending.went(queue, address, began)
            if crossing.take(sending):
                engine.sendings[sending] = None
                passage = crossing.passage
                passage.link.expect(crossing.opaque, sending, until, NAMES[prepared.code], passage.connection)
        return crossing.slot
