"""Owns what may be wrong where nobody answers as they should: the next step, for people who read the error."""

from __future__ import annotations

import errno
from typing import Final

from mqclient.errors import DeadlineError, LinkError, ProtocolError

REFUSED: Final = (
    "nothing listens there: is the name server running, and is this its port? They listen on 9876 by default"
)
UNKNOWN: Final = "the name is not known here: check its spelling, and the DNS of this host or container"
NO_WAY: Final = "there is no way to it from here: a firewall, or an address of another network?"
SILENT: Final = (
    "whoever took the connection says nothing: is it a name server, or a proxy whose own way to it is closed? "
    "Name servers listen on port 9876 by default"
)
OTHER_PROTOCOL: Final = "what listens there speaks another protocol: name servers listen on port 9876 by default"
CLOSED: Final = "is it a name server, and does it want TLS, tls=rocketmq.TLS()?"
NOT_TRUSTED: Final = "tls=rocketmq.TLS(trust=…) names the file of the certificates that are trusted"
NOT_VALID_NOW: Final = (
    "the certificate is not valid at this time: check the clock of this host, and when it was renewed"
)
NO_TLS: Final = "does it speak TLS on this port? Without tls= nothing is encrypted"
_NOT_NOW: Final = (9, 10)
"""OpenSSL: not yet valid, expired."""
_UNREACHABLE: Final = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH)


def hint(lost: BaseException | None, *, encrypted: bool = False) -> str:
    """The next step after a failure towards a name server, in brackets; empty if there is nothing to say."""
    found = _found(lost)
    if encrypted and found == CLOSED:
        found = NO_TLS
    return f" ({found})" if found else ""


def _found(lost: BaseException | None) -> str:
    if isinstance(lost, DeadlineError):
        return SILENT
    if not isinstance(lost, LinkError):
        return ""
    cause = lost.__cause__
    if isinstance(cause, ProtocolError):
        return OTHER_PROTOCOL
    kinds = {kind.__name__ for kind in type(cause).__mro__}  # engines know no sockets, and import neither module
    if "SSLCertVerificationError" in kinds:
        return NOT_VALID_NOW if getattr(cause, "verify_code", 0) in _NOT_NOW else NOT_TRUSTED
    if "SSLError" in kinds:
        return NO_TLS
    if "gaierror" in kinds:
        return UNKNOWN
    if isinstance(cause, ConnectionRefusedError):
        return REFUSED
    if isinstance(cause, (TimeoutError, DeadlineError)) or getattr(cause, "errno", None) in _UNREACHABLE:
        return NO_WAY
    if cause is None or isinstance(cause, ConnectionResetError):
        return CLOSED
    return ""
