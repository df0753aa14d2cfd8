"""Owns what transactions have acknowledged on one subscription: kept from others, done when they commit."""

from __future__ import annotations

from dataclasses import dataclass, field

from mqclient.broker.pulsar.refused import Refused
from mqclient.broker.pulsar.txn_buffer import Txn
from mqclient.pulsar.codes import ServerError


@dataclass(slots=True)
class Pending:
    """One transaction's: entry to the bits of it that are acknowledged; and up to where everything is."""

    bits: dict[int, int] = field(default_factory=dict)
    up_to: tuple[int, int | None] | None = None
    """An entry, and the bits that remain of it, None: no bits."""


class PendingAcks:
    """Of all open transactions. What one has acknowledged no other can."""

    __slots__ = ("_of",)

    def __init__(self) -> None:
        self._of: dict[Txn, Pending] = {}

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

    def add_up_to(self, txn: Txn, entry: int, remaining: int | None, mark: int) -> None:
        """Everything up to an entry; TransactionConflict if another transaction does the same, or it is old."""
        other = any(known != txn and pending.up_to is not None for known, pending in self._of.items())
        mine = self._of.get(txn, Pending())
        if other or entry <= mark or (mine.up_to is not None and entry < mine.up_to[0]):
            raise Refused(ServerError.TransactionConflict, f"{txn} acknowledges up to entry {entry}, which is taken")
        mine.up_to = entry, remaining
        self._of[txn] = mine

    def end(self, txn: Txn) -> Pending:
        """What it acknowledged; nothing of it is pending any more."""
        return self._of.pop(txn, Pending())
