"""Owns what transactions have acknowledged on one subscription: kept from others, done when they commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from mqclient.broker.pulsar.refused import Refused
from mqclient.broker.pulsar.txn_buffer import Txn
from mqclient.pulsar.codes import ServerError

UP_TO: Final = -1
"""In place of an entry: what is acknowledged up to one."""


@dataclass(slots=True)
class Pending:
    """One transaction's: entry to the bits of it that are acknowledged; and up to where everything is."""

    bits: dict[int, int] = field(default_factory=dict)
    up_to: tuple[int, int | None] | None = None
    """An entry, and the bits that remain of it, None: no bits."""

    def rows(self) -> list[int]:
        return [*self.bits, UP_TO] if self.up_to is not None else [*self.bits]


class PendingAcks:
    """Of all open transactions. What one has acknowledged no other can."""

    __slots__ = ("_of", "tell")

    def __init__(self) -> None:
        self._of: dict[Txn, Pending] = {}
        self.tell: Callable[[Txn, int], object] = _nobody
        """Called with a transaction and the entry, or UP_TO, of which something else is pending now."""

    def __len__(self) -> int:
        return len(self._of)

    def held(self, entry: int) -> int:
        """The bits of an entry that some transaction has acknowledged."""
        found = 0
        for pending in self._of.values():
            found |= pending.bits.get(entry, 0)
        return found

    def add(self, txn: Txn, entry: int, bits: int, unacked: int) -> None:
        """Some messages of an entry; TransactionConflict if one of them is acknowledged already."""
        own = self._of[txn].bits.get(entry, 0) if txn in self._of else 0
        bits &= ~own
        if not bits or bits & ~unacked or bits & self.held(entry):
            raise Refused(ServerError.TransactionConflict, f"{txn} acknowledges entry {entry}, which is acknowledged")
        mine = self._of.setdefault(txn, Pending())
        mine.bits[entry] = mine.bits.get(entry, 0) | bits
        self.tell(txn, entry)

    def add_up_to(self, txn: Txn, entry: int, remaining: int | None, mark: int) -> None:
        """Everything up to an entry; TransactionConflict if another transaction does the same, or it is old."""
        other = any(known != txn and pending.up_to is not None for known, pending in self._of.items())
        mine = self._of.get(txn, Pending())
        if other or entry <= mark or (mine.up_to is not None and entry < mine.up_to[0]):
            raise Refused(ServerError.TransactionConflict, f"{txn} acknowledges up to entry {entry}, which is taken")
        mine.up_to = entry, remaining
        self._of[txn] = mine
        self.tell(txn, UP_TO)

    def end(self, txn: Txn) -> Pending:
        """What it acknowledged; nothing of it is pending any more."""
        pending = self._of.pop(txn, Pending())
        for entry in pending.rows():
            self.tell(txn, entry)
        return pending

    # ---- for a file

    def rows(self) -> Iterator[tuple[Txn, int]]:
        """All that is pending: transactions and entries, or UP_TO."""
        return ((txn, entry) for txn, pending in self._of.items() for entry in pending.rows())

    def dump(self, txn: Txn, entry: int) -> Any:
        """One of them as JSON has it, None if it is not pending."""
        pending = self._of.get(txn, Pending())
        if entry == UP_TO:
            return pending.up_to
        return f"{pending.bits[entry]:x}" if entry in pending.bits else None

    def load(self, txn: Txn, entry: int, dumped: Any) -> None:
        """The reverse."""
        pending = self._of.setdefault(txn, Pending())
        if entry == UP_TO:
            pending.up_to = dumped[0], dumped[1]
        else:
            pending.bits[entry] = int(dumped, 16)


def _nobody(txn: Txn, entry: int) -> None:
    """Nothing is kept."""
