"""The hand-over of messages to the user, and the futures of messages sent: what runs per message without entering.

A `Mailbox` holds messages, never waiters: `core/mailbox.py` keeps those. Each of its calls is one step that no other
thread sees half done; callbacks run after that step, on the thread that called.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any, ClassVar, Protocol, final, type_check_only

from typing_extensions import disjoint_base

@disjoint_base
class Source:
    """Where messages of a mailbox came from: one consumer in one epoch, with the count of what was taken of it.

    A new epoch is a new `Source`; the old one is given to `Mailbox.clear`.
    """

    half: int
    """Taken messages are told in portions of this many; 1 tells each take at once, 0 never tells."""

    def __init__(self, consumer: Any, epoch: int, half: int) -> None: ...
    @property
    def consumer(self) -> Any: ...
    @property
    def epoch(self) -> int: ...
    @property
    def waiting(self) -> int:
        """Messages of it in the mailbox."""

    @property
    def untold(self) -> int:
        """Taken and not yet told."""

    @property
    def last(self) -> Any:
        """The message taken last, or None: after it a reader resumes."""

@disjoint_base
class Mailbox:
    """Messages that wait for the user, in the order in which they were put.

    `on_half(source, taken)` is called by `take` and `take_many` when a source's untold count reaches its `half`: it may
    enter the engine. Inside the engine use `drain`, which never calls it.
    `opener(sealed, source)` makes the list of messages of what was put by `put_sealed`; it runs on the taking thread.
    It returns fewer messages than were announced where some are not to be shown, and releases those itself. If it
    raises, the sealed put stays where it was.
    `wake()` is called by a thread that opened, if another found nothing meanwhile and may have gone to wait.
    What `on_half` raises is raised by the next call of `take` or `take_many`: no message in hand gets lost.
    """

    def __init__(
        self,
        on_half: Callable[[Source, int], object] | None = None,
        opener: Callable[[Any, Source], list[Any]] | None = None,
        wake: Callable[[], object] | None = None,
    ) -> None: ...
    def __len__(self) -> int:
        """Messages that wait; of sealed ones the announced number."""

    def put_many(self, messages: list[Any], source: Source, /) -> int:
        """Append a list, which belongs to the mailbox from now on; the number of messages that wait then.

        The engine wakes a waiter afterwards; None is no message.
        """

    def put_sealed(self, sealed: Any, count: int, source: Source, /) -> int:
        """Append what the opener will turn into at most `count` messages when its turn comes.

        While one thread opens, another gets what lies behind it.
        """

    def take(self) -> Any:
        """The next message, or None if there is none."""

    def take_many(self, limit: int, /) -> list[Any]:
        """Up to `limit` messages, from as many puts as needed."""

    def drain(self, limit: int, /) -> list[Any]:
        """As `take_many`, but tells nobody (counts stay untold until somebody collects) and opens nothing: it stops
        in front of what is sealed."""

    def collect(self, source: Source, /) -> int:
        """The untold count, which starts again at 0: for the engine, which releases it."""

    def clear(self, source: Source | None = None, /) -> int:
        """Drop what waits, of one source or of all; the number dropped, to be released. What was taken stays untold.

        What another thread is opening just now is dropped, too, but counts as taken.
        """

@type_check_only
class Batch(Protocol):
    """What a `SendFuture` asks of the batch in which its message travels: the slot of that request.

    `settled` grows after outcomes were written; where all messages have theirs at once, so does `done`. The others are
    asked as follows: `outcome` only of those that are settled; `wait` by whoever blocks (under asyncio it raises);
    `on_done` at any time: it calls `callback(SendFuture(batch, index))` on a callback thread, or in the loop, when
    that message is settled or if it is already.
    """

    @property
    def settled(self) -> int:
        """So many messages, from the first on, have their outcome."""

    def outcome(self, index: int, /) -> Any:
        """The receipt of message `index`, or the exception (returned, not raised)."""

    def wait(self, timeout: float | None, index: int, /) -> bool:
        """Block until message `index` is settled; False if the time ran out before."""

    def on_done(self, callback: Callable[[SendFuture], object], index: int, /) -> None: ...

@final
class SendFuture:
    """The outcome of one message that was submitted: its batch and its index in it, no state of its own.

    Equal to every other future of the same message. Not awaitable; the request ends at its deadline whatever happens
    here.
    """

    def __init__(self, batch: Batch, index: int) -> None: ...
    @property
    def batch(self) -> Any: ...
    @property
    def index(self) -> int: ...
    def done(self) -> bool: ...
    def result(self, timeout: float | None = None) -> Any:
        """The receipt; raises what went wrong, DeadlineError if the outcome is not there within `timeout` seconds."""

    def exception(self, timeout: float | None = None) -> BaseException | None: ...
    def add_done_callback(self, callback: Callable[[SendFuture], object], /) -> None:
        """`callback(future)` once, as the batch says where; at once (there) if it is done already."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class SendWait:
    """What a task of asyncio awaits for the outcome of one message: what the task needs of a future, and no more.

    One callback, that of the task. Nothing is scheduled for it alone: whoever completes the batch gives all that wait
    for it to `wake`, which wakes them in one turn of the loop. Cancelled, only the waiting ends.
    """

    awaitable: ClassVar[bool]
    _asyncio_future_blocking: bool
    def __init__(self, batch: Batch, index: int, loop: AbstractEventLoop) -> None: ...
    @property
    def batch(self) -> Any: ...
    @property
    def index(self) -> int: ...
    def __await__(self) -> Generator[Any, Any, Any]: ...
    def __iter__(self) -> SendWait: ...
    def __next__(self) -> SendWait: ...
    def get_loop(self) -> AbstractEventLoop: ...
    def done(self) -> bool: ...
    def cancelled(self) -> bool: ...
    def result(self) -> Any:
        """The receipt; raises what went wrong. Only when done."""

    def cancel(self, msg: Any = None) -> bool: ...
    def add_done_callback(self, callback: Callable[[SendWait], object], *, context: Context | None = None) -> None: ...
    def remove_done_callback(self, callback: Callable[[SendWait], object]) -> int: ...

def wake(waits: list[SendWait], /) -> None:
    """The tasks of these, which are done and of one loop, go on in its next turn."""
