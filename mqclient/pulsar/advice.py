"""Owns what may be wrong where no broker answers as it should: the next step, for people who read the error."""

from __future__ import annotations

import errno
from typing import Final

from mqclient.errors import DeadlineError, LinkError, MQError, ProtocolError

REFUSED: Final = "nothing listens there: is the broker running, and is this its port? The binary protocol has 6650"
UNKNOWN: Final = "the name is not known here: check its spelling, and the DNS of this host or container"
NO_WAY: Final = "there is no way to it from here: a firewall, or an address of another network?"
SILENT: Final = (
    "whoever took the connection says nothing that a broker says: is it the web port, for which the URL is http://…, "
    "or another service? The binary protocol has port 6650"
)
OTHER_PROTOCOL: Final = "what listens there speaks another protocol: the binary protocol of Pulsar has port 6650"
CLOSED: Final = "is it a broker's binary port, 6650, or does it want TLS, pulsar+ssl://…:6651?"
NOT_TRUSTED: Final = "tls=TLS(trust=…) names the file of the certificates that are trusted"
NOT_VALID_NOW: Final = (
    "the certificate is not valid at this time: check the clock of this host, and when it was renewed"
)
NO_TLS: Final = "does it speak TLS on this port? It has 6651, and the URL is pulsar:// where nothing is encrypted"
_NOT_NOW: Final = (9, 10)
"""OpenSSL: not yet valid, expired."""
_UNREACHABLE: Final = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH)


def advised(error: MQError, *, encrypted: bool) -> MQError:
    """The error of a connection that never came to be, with the next step behind it."""
    if not isinstance(error, LinkError):
        return error
    found = _hint(error.__cause__, encrypted)
    if not found:
        return error
    made = LinkError(f"{error} ({found})").about(remote=error.remote, request=error.request)
    made.__cause__ = error.__cause__
    return made


def _hint(cause: BaseException | None, encrypted: bool) -> str:
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
        return NO_TLS if encrypted else CLOSED
    return ""
