"""The third driver: a virtual clock, wires in memory, and the checks that the real drivers have no time for.

    world = World()
    client = SomeEngine(world.driver())          # its links connect to whoever listens at the address
    world.listen(("broker", 10911), peer)        # an object with on_open(wire), on_bytes(wire, data), on_lost(wire)
    world.run()                                  # until nothing is left to do at this time
    world.advance(30)                            # ... and with all timers of the next 30 virtual seconds

Nothing happens but inside `run`, `advance` and `wait`, in one thread, in the order in which it was asked for: so a
failure comes again. A scenario costs microseconds, no sleep and no socket.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random
from types import TracebackType
from typing import Any, Protocol, TypeVar

from mqclient.core.driver import Address, Alarmed, Now
from mqclient.core.link import Buffer, Link
from mqclient.core.slot import Slot
from mqclient.errors import ClosedError, DeadlineError

T = TypeVar("T")
WALL = 1_700_000_000_000


class Peer(Protocol):
    """The other end of wires: scripted, or an adapter around an embedded broker's session."""

    def on_open(self, wire: Wire) -> None: ...

    def on_bytes(self, wire: Wire, data: bytes) -> None: ...

    def on_lost(self, wire: Wire) -> None: ...


class Script:
    """A peer made of one function: `answer(wire, data)`; it keeps its wires and all that came over them."""

    def __init__(self, answer: Callable[[Wire, bytes], None] | None = None) -> None:
        self.answer = answer
        self.wires: list[Wire] = []
        self.received = bytearray()

    @property
    def wire(self) -> Wire:
        """The newest connection."""
        return self.wires[-1]

    def on_open(self, wire: Wire) -> None:
        self.wires.append(wire)

    def on_bytes(self, wire: Wire, data: bytes) -> None:
        self.received += data
        if self.answer is not None:
            self.answer(wire, data)

    def on_lost(self, wire: Wire) -> None:
        """The wire itself tells: `open` is False."""


class Wire:
    """One connection in memory, as its peer sees it. `sent` is all that the client wrote."""

    def __init__(self, world: World, peer: Peer, link: Link, driver: FakeDriver) -> None:
        self.world = world
        self.peer = peer
        self.link: Link | None = link
        self.driver = driver
        self.open = True
        self.sent = bytearray()
        self.cut_at: int | None = None
        """Deliver bytes to the client in pieces of at most this many."""

    def send(self, data: Buffer) -> None:
        """To the client, in this order, at this virtual time."""
        data = bytes(data)
        step = self.cut_at or len(data) or 1
        for start in range(0, len(data), step):
            self.world.soon(partial(self._arrive, data[start : start + step]))

    def lose(self, cause: BaseException | None = None) -> None:
        """The connection breaks, after what was sent before."""
        self.world.soon(lambda: self._end(cause))

    def _arrive(self, data: bytes) -> None:
        if self.link is not None:
            with self.driver.enter():
                self.link.on_bytes(data)

    def _end(self, cause: BaseException | None) -> None:
        link, self.link = self.link, None
        if self.open:
            self.open = False
            self.peer.on_lost(self)
        if link is not None:
            link.handle = None
            with self.driver.enter():
                link.on_lost(cause)


class World:
    """The virtual time, and what is to happen in it."""

    def __init__(self, seed: int = 0, *, latency: float = 0.0) -> None:
        self.random = Random(seed)
        """For scripts; whoever fails prints the seed."""
        self.mono = 1000.0
        self.wall_offset = WALL - 1_000_000
        self.latency = latency
        self.drivers: list[FakeDriver] = []
        self.peers: dict[tuple[str, int], Peer] = {}
        self._soon: deque[Callable[[], None]] = deque()
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    @property
    def wall_ms(self) -> int:
        return int(self.mono * 1000) + self.wall_offset

    def move_wall_clock(self, seconds: float) -> None:
        """Somebody set the clock: deadlines must not notice."""
        self.wall_offset += int(seconds * 1000)

    def driver(self, *, per_turn: bool = False) -> FakeDriver:
        """A driver for one client; `per_turn` writes like asyncio, at the end of the turn, else on leaving."""
        driver = FakeDriver(self, per_turn)
        self.drivers.append(driver)
        return driver

    def listen(self, address: tuple[str, int], peer: Peer) -> None:
        self.peers[address] = peer

    def refuse(self, address: tuple[str, int]) -> None:
        """From now on nobody listens there; open wires stay."""
        self.peers.pop(address, None)

    def soon(self, call: Callable[[], None]) -> None:
        """At this virtual time (or after the latency), after what was asked for before."""
        if self.latency:
            self.at(self.mono + self.latency, call)
        else:
            self._soon.append(call)

    def at(self, when: float, call: Callable[[], None]) -> None:
        heappush(self._later, (when, next(self._order), call))

    # ---- moving on

    def run(self, limit: int = 1_000_000) -> None:
        """All that is to happen at this time. A limit, as two engines may answer each other for ever."""
        for _ in range(limit):
            if self._soon:
                self._soon.popleft()()
            elif self._later and self._later[0][0] <= self.mono:
                heappop(self._later)[2]()
            elif not any(driver.turn() for driver in self.drivers):
                return
        raise AssertionError(f"still busy after {limit} steps at one time")

    def advance(self, seconds: float) -> None:
        """Let this time pass, with everything that is due in it, each at its time."""
        end = self.mono + seconds
        self.run()
        while (due := self._next()) <= end:
            self.mono = max(self.mono, due)
            self.run()
        self.mono = end

    def until(self, done: Callable[[], bool], within: float = 60.0) -> None:
        """Let time pass until this is so; an AssertionError if it is not within so many virtual seconds."""
        end = self.mono + within
        self.run()
        while not done():
            due = self._next()
            assert due <= end, f"not so within {within} virtual seconds"
            self.mono = max(self.mono, due)
            self.run()

    def result(self, slot: Slot[T], within: float = 60.0) -> T:
        """The slot's outcome, letting time pass until it is there."""
        self.until(lambda: slot.done, within)
        return slot.result()

    def _next(self) -> float:
        alarms = [driver.alarm for driver in self.drivers]
        later = [self._later[0][0]] if self._later else []
        return min([*alarms, *later], default=float("inf"))


class FakeDriver:
    """One client's driver in the world; both faces' `wait` drive the world until the slot is done."""

    def __init__(self, world: World, per_turn: bool) -> None:
        self.world = world
        self.now = Now(world.mono, world.wall_ms)
        self.alarm = float("inf")
        self.wires: list[Wire] = []
        self.entries = 0
        self.user_errors: list[BaseException] = []
        self._per_turn = per_turn
        self._alarmed: Alarmed | None = None
        self._inside = False
        self._closed = False
        self._dirty: list[Link] = []
        self._turn_ends: list[Callable[[], None]] = []
        self._deliveries: list[tuple[Callable[[Any], None], Any]] = []

    # ---- entering and leaving

    def enter(self) -> FakeDriver:
        return self

    def __enter__(self) -> Now:
        assert not self._inside, "entered twice: a callback ran inside the engine"
        self._inside = True
        self.entries += 1
        self.now = Now(self.world.mono, self.world.wall_ms)
        return self.now

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._per_turn:
            while self._turn_ends:
                self._end_turn()
        self._inside = False
        if not self._per_turn:
            self._flush()
        deliveries, self._deliveries = self._deliveries, []
        for call, argument in deliveries:
            call(argument)

    def outside(self, what: str) -> None:
        """For code that must not run inside an entry: user functions, blocking waits, native calls that tell."""
        assert not self._inside, f"{what} inside an entry"

    def _end_turn(self) -> None:
        calls, self._turn_ends = self._turn_ends, []
        for call in calls:
            call()

    def _flush(self) -> None:
        dirty, self._dirty = self._dirty, []
        for link in dirty:
            wire: Wire | None = link.handle
            out, link.outbox = link.outbox, []
            link.outbox_bytes = 0
            data = b"".join(out)
            if wire is not None and data:
                self._transfer(wire, data)

    def _transfer(self, wire: Wire, data: bytes) -> None:
        wire.sent += data

        def arrive() -> None:
            if wire.open:
                wire.peer.on_bytes(wire, data)

        self.world.soon(arrive)

    def turn(self) -> bool:
        """The end of a turn, or a due alarm; False if there was neither."""
        if self.alarm <= self.world.mono:
            self.alarm = float("inf")
            assert self._alarmed is not None
            with self.enter() as now:
                self._alarmed.on_timer(now)
            return True
        if self._turn_ends:
            with self.enter():
                self._end_turn()
        elif not self._dirty:
            return False
        self._flush()
        return True

    # ---- what links and engines call, inside an entry

    def attach(self, alarmed: Alarmed) -> None:
        self._alarmed = alarmed

    def connect(self, address: Address, link: Link, deadline: float) -> None:
        self._must_be_inside("connect")
        if self._closed:
            raise ClosedError("the client is closed")
        link.handle = None
        epoch = link.epoch

        def arrive() -> None:
            if link.epoch != epoch or link.state != "connecting":
                return  # closed or connecting anew meanwhile
            peer = self.world.peers.get((address.host, address.port))
            if peer is None:
                with self.enter():
                    link.on_lost(ConnectionRefusedError("nobody listens"))
                return
            wire = link.handle = Wire(self.world, peer, link, self)
            self.wires.append(wire)
            peer.on_open(wire)
            with self.enter():
                link.on_open("client:1", f"{address.host}:{address.port}")

        self.world.soon(arrive)

    def disconnect(self, link: Link) -> None:
        self._must_be_inside("disconnect")
        wire: Wire | None = link.handle
        if wire is None:
            return
        link.handle = None
        wire.link = None
        out, link.outbox = link.outbox, []
        link.outbox_bytes = 0
        if out:
            self._transfer(wire, b"".join(out))
        self.world.soon(lambda: wire._end(None))

    def wants_write(self, link: Link) -> None:
        self._must_be_inside("wants_write")
        self._dirty.append(link)

    def arm(self, when: float) -> None:
        self.alarm = min(self.alarm, when)

    def end_of_turn(self, call: Callable[[], None]) -> None:
        self._must_be_inside("end_of_turn")
        self._turn_ends.append(call)

    def deliver(self, call: Callable[[Any], None], argument: Any) -> None:
        self._must_be_inside("deliver")
        self._deliveries.append((call, argument))

    def run_user(self, call: Callable[[Any], Any], argument: Any) -> None:
        self._must_be_inside("run_user")
        self._deliveries.append((self._ask_user, (call, argument)))

    def _ask_user(self, job: tuple[Callable[[Any], Any], Any]) -> None:
        self.world.soon(lambda: self._run_user(*job))

    def _run_user(self, call: Callable[[Any], Any], argument: Any) -> None:
        self.outside("user code")
        try:
            outcome = call(argument)
            if isinstance(outcome, Coroutine):
                drive(outcome)
        except Exception as error:
            self.user_errors.append(error)

    def _must_be_inside(self, what: str) -> None:
        assert self._inside, f"{what} outside of an entry"

    # ---- what the faces call

    def deadline(self, timeout: float | None) -> float | None:
        return None if timeout is None else self.world.mono + timeout

    def wait(self, slot: Slot[T], deadline: float | None = None) -> T:
        """The sync face's wait: the world goes on until the slot is done, or to the deadline."""
        self.outside("a blocking wait")
        end = float("inf") if deadline is None else deadline
        self.world.run()
        while not slot.done:
            due = self.world._next()
            if due > end:
                self.world.mono = max(self.world.mono, end)
                raise DeadlineError("the time given ran out")
            if due == float("inf"):
                raise AssertionError("nothing will ever happen that could complete the slot")
            self.world.mono = max(self.world.mono, due)
            self.world.run()
        return slot.result()

    def close(self) -> None:
        """As the real ones: connections end, waits fail."""
        self._closed = True
        self.alarm = float("inf")
        for wire in self.wires:
            if wire.link is not None:
                wire.link.handle = None
                wire.link = None
                wire._end(None)


class AsyncFace:
    """A fake driver as the asyncio face sees it: the same, but `wait` and `close` are awaited. Run with `drive`."""

    def __init__(self, driver: FakeDriver) -> None:
        self._driver = driver

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    async def wait(self, slot: Slot[T], deadline: float | None = None) -> T:
        return self._driver.wait(slot, deadline)

    async def close(self) -> None:
        self._driver.close()


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits for a loop: everything it awaits drives the world itself."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        value: T = stop.value
        return value
    raise AssertionError("the coroutine waits for something outside of the fake world")
