"""Owns the ways in which a connection fails before its first answer, told by their cause, never by their text."""

from __future__ import annotations

import errno
from enum import Enum, auto
from typing import Final

from mqclient.errors import DeadlineError, ProtocolError


class Cause(Enum):
    """Why there is no connection."""

    REFUSED = auto()
    UNKNOWN = auto()
    """The host's name."""
    NO_WAY = auto()
    OTHER_PROTOCOL = auto()
    CLOSED = auto()
    """By the other side, without a word."""
    NOT_TRUSTED = auto()
    NOT_VALID_NOW = auto()
    """The certificate's time."""
    NO_TLS = auto()


UNKNOWN: Final = "the name is not known here: check its spelling, and the DNS of this host or container"
NO_WAY: Final = "there is no way to it from here: a firewall, an address of another network, or a slow DNS?"
NOT_VALID_NOW: Final = (
    "the certificate is not valid at this time: check the clock of this host, and when it was renewed"
)
_NOT_NOW: Final = (9, 10)
"""OpenSSL: not yet valid, expired."""
_UNREACHABLE: Final = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH)


def found(cause: BaseException | None, *, encrypted: bool) -> Cause | None:
    """The kind of what lies behind a LinkError; None where it says nothing about the other side."""
    if isinstance(cause, ProtocolError):
        return Cause.OTHER_PROTOCOL
    kinds = {kind.__name__ for kind in type(cause).__mro__}  # engines know no sockets, and import neither module
    if "SSLCertVerificationError" in kinds:
        return Cause.NOT_VALID_NOW if getattr(cause, "verify_code", 0) in _NOT_NOW else Cause.NOT_TRUSTED
    if "SSLError" in kinds:
        return Cause.NO_TLS
    if "gaierror" in kinds:
        return Cause.UNKNOWN
    if isinstance(cause, ConnectionRefusedError):
        return Cause.REFUSED
    if isinstance(cause, (TimeoutError, DeadlineError)) or getattr(cause, "errno", None) in _UNREACHABLE:
        return Cause.NO_WAY
    if cause is None or isinstance(cause, ConnectionResetError):
        return Cause.NO_TLS if encrypted else Cause.CLOSED
    return None
