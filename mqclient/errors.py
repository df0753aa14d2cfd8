"""The errors of mqclient, each with advice that callers and engines act on.

MQError
├── ConfigError      an option, address or argument is wrong; nothing was sent       (also ValueError)
├── ClosedError      the client, producer or consumer is closed
├── DeadlineError    the time given ran out                                          (also TimeoutError)
├── LinkError        a connection could not be made or was lost                      (also ConnectionError)
├── ProtocolError    bytes that do not follow the protocol
├── CryptoError      a key could not be had, or did not fit
├── TransactionError a transaction has ended, or something in it failed
└── RemoteError      the broker answered with an error; `code` and `remark` are its own
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import ClassVar


class MQError(Exception):
    """Root of everything that mqclient raises on purpose.

    `retriable`: the same request may succeed elsewhere or later. `refresh_route`: the route that led there is old.
    `outcome_unknown`: the request may have taken effect. `code`: the wire's code. `remote`: who answered or was asked.
    `request`: what was asked.
    """

    retriable = False
    refresh_route = False
    outcome_unknown = False
    code: int | None = None
    remote: str | None = None
    request: str | None = None
    ok = False
    """An error in a list of results is told from a receipt by `.ok`."""

    def about(
        self, *, remote: str | None = None, request: str | None = None, outcome_unknown: bool | None = None
    ) -> MQError:
        """Add what only an outer layer knows; returns self."""
        if remote is not None:
            self.remote = remote
        if request is not None:
            self.request = request
        if outcome_unknown is not None:
            self.outcome_unknown = outcome_unknown
        return self


class ConfigError(MQError, ValueError):
    """An option, address or argument is wrong; nothing was sent."""


class ClosedError(MQError):
    """The client, producer or consumer is closed."""


class DeadlineError(MQError, TimeoutError):
    """The time given ran out."""

    retriable = True
    outcome_unknown = True


class LinkError(MQError, ConnectionError):
    """A connection could not be made or was lost."""

    retriable = True
    refresh_route = True


class ProtocolError(MQError):
    """Bytes that do not follow the protocol: the connection that brought them is closed."""


class CryptoError(MQError):
    """A key of end-to-end encryption could not be had, or what was sealed does not open with it."""


class TransactionError(MQError):
    """A transaction has ended already, or cannot be committed because something in it failed."""


class RemoteError(MQError):
    """The broker answered with an error; each protocol's `BrokerError` knows what its codes advise."""

    codes: ClassVar[type[IntEnum] | None] = None
    advice: ClassVar[Mapping[int, tuple[bool, bool]]] = {}
    """By code: (retriable, refresh_route)."""
    cures: ClassVar[Mapping[int, str]] = {}
    """By code: what whoever meets it can do."""
    told_by_remark: ClassVar[Mapping[str, int]] = {}
    """Words of a remark by which old servers tell what newer ones have a code for."""

    def __init__(self, code: int, remark: str = "", *, remote: str | None = None, request: str | None = None) -> None:
        super().__init__(code, remark)
        self.code: int = code
        self.remark = remark
        self.remote = remote
        self.request = request
        self.meaning = next((other for word, other in self.told_by_remark.items() if word in remark), code)
        """The code that today's servers would answer."""
        self.retriable, self.refresh_route = self.advice.get(self.meaning, (False, False))

    @property
    def name(self) -> str:
        """The protocol's name of the code; empty if this library does not know it."""
        return next((known.name for known in self.codes or () if known == self.code), "")

    def __str__(self) -> str:
        where = f" from {self.remote}" if self.remote else ""
        what = f" to {self.request}" if self.request else ""
        name = f" {self.name}" if self.name else ""
        remark = f": {self.remark}" if self.remark else ""
        cure = f" ({self.cures[self.meaning]})" if self.meaning in self.cures else ""
        return f"code {self.code}{name}{where}{what}{remark}{cure}"
