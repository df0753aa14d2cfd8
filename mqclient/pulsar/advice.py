"""Owns what may be wrong where no broker answers as it should: the next step, for people who read the error."""

from __future__ import annotations

from typing import Final

from mqclient.core import causes
from mqclient.core.causes import NO_WAY, NOT_VALID_NOW, UNKNOWN, Cause
from mqclient.errors import LinkError, MQError

REFUSED: Final = "nothing listens there: is the broker running, and is this its port? The binary protocol has 6650"
SILENT: Final = (
    "whoever took the connection says nothing that a broker says: is it the web port, for which the URL is http://…, "
    "or another service? The binary protocol has port 6650"
)
OTHER_PROTOCOL: Final = "what listens there speaks another protocol: the binary protocol of Pulsar has port 6650"
CLOSED: Final = "is it a broker's binary port, 6650, or does it want TLS, pulsar+ssl://…:6651?"
NOT_TRUSTED: Final = "tls=TLS(trust=…) names the file of the certificates that are trusted"
NO_TLS: Final = "does it speak TLS on this port? It has 6651, and the URL is pulsar:// where nothing is encrypted"
STEPS: Final = {
    Cause.REFUSED: REFUSED,
    Cause.UNKNOWN: UNKNOWN,
    Cause.NO_WAY: NO_WAY,
    Cause.OTHER_PROTOCOL: OTHER_PROTOCOL,
    Cause.CLOSED: CLOSED,
    Cause.NOT_TRUSTED: NOT_TRUSTED,
    Cause.NOT_VALID_NOW: NOT_VALID_NOW,
    Cause.NO_TLS: NO_TLS,
}


def advised(error: MQError, *, encrypted: bool) -> MQError:
    """The error of a connection that never came to be, with the next step behind it."""
    if not isinstance(error, LinkError):
        return error
    cause = causes.found(error.__cause__, encrypted=encrypted)
    if cause is None:
        return error
    made = LinkError(f"{error} ({STEPS[cause]})").about(remote=error.remote, request=error.request)
    made.__cause__ = error.__cause__
    return made
