"""The accounts: a Pulsar consumer's permits, a RocketMQ queue's offsets in flight, acknowledgements not yet told.

`Credits` and `Outstanding` belong to engines and are used inside `driver.enter()`. An `AckSet` is used per message by
the faces without entering: each of its calls is one step that no other thread sees half done.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeAlias, type_check_only

from typing_extensions import disjoint_base

# ---- why permits were released: how messages left
DELIVERED: Final = 0
SKIPPED: Final = 1
"""Before the start position, a duplicate, compacted out, of an old consumer epoch."""
DISCARDED: Final = 2
"""Corrupt, not decryptable, too often redelivered, or removed from the mailbox."""
EXPIRED: Final = 3
"""A chunked message that was not completed in time."""
CHUNK: Final = 4
"""A part of a chunked message but the last."""

@disjoint_base
class Credits:
    """The permits of one Pulsar consumer, conserved and bound to the epoch of a connection.

    `window == at_broker + here + released - debt`, always. Only `resize`, `receive_waits` and `receive_ends` change
    the sum. What is told about another epoch than the current one is counted and has no effect. An account made with
    window 0 is a zero-queue consumer's: its window is the number of receives that wait.

    >>> credits = Credits(1000)
    >>> credits.reset(1)                 # SUBSCRIBE was answered on connection 1
    >>> credits.flow()
    1000
    >>> credits.arrive(600, 1)
    True
    >>> credits.release(600, DELIVERED, 1)
    True
    >>> credits.flow()
    600
    """

    def __init__(self, window: int) -> None:
        """Without a connection yet: `flow()` gives nothing until the first `reset`."""

    @property
    def epoch(self) -> int:
        """-1 before the first `reset`."""

    @property
    def window(self) -> int: ...
    @property
    def zero_queue(self) -> bool: ...
    @property
    def at_broker(self) -> int:
        """Granted and not yet used; below zero for a moment, because the broker does not split an entry."""

    @property
    def here(self) -> int:
        """Arrived and not yet released."""

    @property
    def released(self) -> int:
        """Released, or added by `resize`, and not yet granted."""

    @property
    def debt(self) -> int:
        """Taken away by `resize` and not yet paid by withheld grants."""

    @property
    def half(self) -> int:
        """From how many released permits on they are granted: half the window, at least 1; zero-queue: 1."""

    @property
    def paused(self) -> bool: ...
    def reset(self, epoch: int, /) -> None:
        """A new connection's account: nothing at the broker, nothing here, the whole window to be granted.

        Call it when the mailbox is cleared. It may be called again for the same epoch (subscribed anew on the same
        connection), never for an older one: ValueError.
        """

    def lost(self) -> None:
        """The connection is gone: no grants, and all events are of an old epoch until the next `reset`."""

    def arrive(self, count: int, epoch: int, /) -> bool:
        """The broker deducted `count` for an entry; False if that epoch is over: drop the entry, release nothing."""

    def release(self, count: int, reason: int, epoch: int, /) -> bool:
        """`count` messages left. True if a grant is due now.

        More than is here would grant twice: the excess is counted (`counts()["excess"]`) and has no effect.
        """

    def due(self) -> int:
        """What `flow` would grant now, 0 for nothing."""

    def flow(self) -> int:
        """Grant what is due: the number for one FLOW of the current epoch, or 0 for none.

        Due is all that was released, once it is half a window and while neither paused nor without connection; for a
        zero-queue consumer only while more receives wait than messages are here.
        """

    def pause(self) -> None:
        """Withhold grants; counting goes on."""

    def resume(self) -> None: ...
    def resize(self, delta: int, /) -> None:
        """Grow or shrink the window; shrinking is a debt. ValueError below 1, or for a zero-queue consumer."""

    def receive_waits(self) -> None:
        """Zero-queue: one more receive waits. ValueError otherwise."""

    def receive_ends(self) -> None:
        """Zero-queue: one receive less waits. Say it *before* releasing what it took.

        If it was cancelled its grant stays at the broker and serves the next one.
        """

    def counts(self) -> dict[str, int]:
        """For `diagnose()`, over all epochs: arrived, delivered, skipped, discarded, expired, chunk, granted, flows,
        stale_arrived, stale_released, excess, resets."""

COUNT: Final = 1
BYTES: Final = 2
SPAN: Final = 3

@disjoint_base
class Outstanding:
    """The offsets of one RocketMQ queue that are here and not yet consumed.

    Offsets arrive ascending, with gaps; they are done in any order.
    """

    def __len__(self) -> int: ...
    def __contains__(self, offset: object, /) -> bool: ...
    @property
    def count(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def span(self) -> int:
        """Highest minus lowest offset that is not done; 0 where there is at most one."""

    @property
    def lowest(self) -> int:
        """-1 if none is in flight."""

    @property
    def highest_seen(self) -> int:
        """-1 before the first."""

    @property
    def commit_offset(self) -> int:
        """The lowest not yet done; all done: one above the highest ever seen; -1 if none was ever seen."""

    def add(self, offset: int, size: int, /) -> bool:
        """False, and nothing happens, if it is not above all that were seen: a message that came twice."""

    def add_many(self, offsets: Sequence[int], sizes: Sequence[int], /) -> int:
        """The number that were new. ValueError if the lengths differ; nothing is added then."""

    def done(self, offset: int, /) -> bool:
        """False if it was not in flight."""

    def done_many(self, offsets: Iterable[int], /) -> int:
        """The number that were in flight."""

    def over(self, count: int, bytes: int, span: int, /) -> int:
        """The first limit that is exceeded (COUNT, BYTES, SPAN), or 0: pull on. A limit of -1 is none."""

    def offsets(self) -> list[int]:
        """Those in flight, ascending."""

    def clear(self) -> int:
        """Forget all, what was seen too; the number that were in flight."""

# ---- what AckSet.add answers
ARM: Final = 1
"""The first acknowledgement of a group: arm the timer that will `take`."""
FLUSH: Final = 2
"""The group is full: `take` now. Answered by each further call until somebody does."""

@type_check_only
class EntryLike(Protocol):
    """What is read of `mqclient._native.pulsar.Entry`."""

    @property
    def ledger(self) -> int: ...
    @property
    def entry(self) -> int: ...
    @property
    def num_messages(self) -> int: ...
    @property
    def ack_set(self) -> tuple[int, ...] | None: ...

@type_check_only
class MessageLike(Protocol):
    """What is read of `mqclient._native.pulsar.Message`; `batch_index` is -1 if the entry is not batch-framed."""

    @property
    def entry(self) -> EntryLike: ...
    @property
    def batch_index(self) -> int: ...

@type_check_only
class MessageIdLike(Protocol):
    """What is read of `mqclient._native.pulsar.MessageId`."""

    @property
    def ledger(self) -> int: ...
    @property
    def entry(self) -> int: ...
    @property
    def batch_index(self) -> int: ...
    @property
    def batch_size(self) -> int: ...

_Ackable: TypeAlias = MessageLike | MessageIdLike
_Ack: TypeAlias = tuple[int, int] | tuple[int, int, tuple[int, ...]]
"""`(ledger, entry)` or `(ledger, entry, words)`: signed words, bit set = not acked yet, no zero words at the end; as
`pulsar.encode_ack` takes them."""

@disjoint_base
class AckSet:
    """Acknowledgements of one Pulsar subscription that wait to be told in one ACK.

    Of a batch the bits of its messages are kept until all are acknowledged, across groups: then its entry is told.
    With `batch_index` a part of a batch is told, too. A message acknowledged twice counts once.
    """

    def __init__(self, limit: int = 1000, *, batch_index: bool = True) -> None:
        """`limit`: the number of ids at which a group is full; 1 asks for FLUSH each time."""

    def __len__(self) -> int:
        """Ids that wait to be told one by one."""

    def add(self, message: _Ackable, /) -> int:
        """0 (nearly always), ARM or FLUSH. ValueError for a batch index outside of its batch.

        The extension reads a native message without attribute lookups if its type offers `__ack_id__`: a capsule
        around the C function of `_native/common/ack_id.pxd`.
        """

    def add_many(self, messages: Iterable[_Ackable], /) -> int: ...
    def add_id(self, ledger: int, entry: int, batch_index: int = -1, batch_size: int = 0, /) -> int: ...
    def add_cumulative(self, message: _Ackable, /) -> int:
        """Everything up to and including this; only ever forward. Without `batch_index` a message inside a batch
        acknowledges the entry before, the last one its own entry."""

    def take(self) -> list[_Ack]:
        """The group, in the order in which its entries came up; the next `add` starts a new one."""

    def take_cumulative(self) -> _Ack | None:
        """The position to tell, if it moved since."""

    def covers(self, ledger: int, entry: int, batch_index: int = -1, /) -> bool:
        """Acknowledged here, by a cumulative one or by one that waits: a redelivery of it need not be shown."""

    def forget(self) -> None:
        """A new connection: drop the bits of batches acknowledged in part, once they are told; what waits stays."""

    def clear(self) -> None:
        """Drop all, the cumulative position too: before a seek."""
