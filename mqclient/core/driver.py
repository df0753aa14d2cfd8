"""What engines and links see of the world outside: the Driver protocol, the time of an entry, addresses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from mqclient.core.link import Link
    from mqclient.core.slot import Slot

T = TypeVar("T")


class Now(NamedTuple):
    """The time of one entry: deadlines in monotonic seconds; born times, ids and token expiry in wall milliseconds."""

    mono: float
    wall_ms: int


class Address(NamedTuple):
    """Where a link goes, and where we know that from (it stands in error messages)."""

    host: str
    port: int
    source: str = "given"
    tls: object | None = None
    """What the driver needs to encrypt the connection; made by `mqclient.io.tls`, opaque to engines."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Alarmed(Protocol):
    """Whoever owns the timers of a driver: told when the alarm that it armed is due."""

    def on_timer(self, now: Now) -> None: ...


class Driver(Protocol):
    """The only thing that differs between threads, asyncio and the tests' virtual world.

    Engines run between `enter()` and its end, one at a time. Inside, they may use everything below; they may not
    block, read a clock or call the user. On leaving, the driver writes what links hold in their outboxes, then makes
    the deliveries, so user code and wake-ups never run while an engine is entered.
    """

    now: Now
    """The time of the current entry."""

    def enter(self) -> AbstractContextManager[Now]: ...

    def attach(self, alarmed: Alarmed) -> None:
        """Name the one whose `on_timer` the alarm calls (inside an entry)."""

    def connect(self, address: Address, link: Link, deadline: float) -> None:
        """Begin to connect; ends in `link.on_open(...)` or, at the deadline at the latest, `link.on_lost(...)`."""

    def disconnect(self, link: Link) -> None:
        """Close the connection of the link after its outbox was written; no `on_lost` follows."""

    def wants_write(self, link: Link) -> None:
        """The link's outbox went from empty to not empty: write it on leaving (asyncio: at the end of the turn)."""

    def arm(self, when: float) -> None:
        """Call `on_timer` at this monotonic time; the earliest alarm wins, the engine keeps the heap."""

    def end_of_turn(self, call: Callable[[], None]) -> None:
        """Call inside an entry once: asyncio when this loop turn ends, threads on leaving."""

    def deliver(self, call: Callable[[Any], None], argument: Any) -> None:
        """Call after leaving, outside of any entry: wake-ups and hand-overs, never user code.

        After Ctrl-C in the middle of it a delivery is made again: let that do no harm.
        """

    def run_user(self, call: Callable[[Any], Any], argument: Any) -> None:
        """Run user code where it may block or fail without harm: listener and callback threads, or tasks."""


class SyncDriver(Driver, Protocol):
    """What the sync face sees."""

    def wait(self, slot: Slot[T], deadline: float | None = None) -> T: ...

    def deadline(self, timeout: float | None) -> float | None:
        """The monotonic time at which a timeout given now ends."""

    def close(self) -> None: ...


class AsyncDriver(Driver, Protocol):
    """What the asyncio face sees."""

    def wait(self, slot: Slot[T], deadline: float | None = None) -> Awaitable[T]: ...

    def deadline(self, timeout: float | None) -> float | None: ...

    async def close(self) -> None: ...
