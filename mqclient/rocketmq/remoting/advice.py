"""Owns what may be wrong where nobody answers as they should: the next step, for people who read the error."""

from __future__ import annotations

from typing import Final

from mqclient.core import causes
from mqclient.core.causes import NO_WAY, NOT_VALID_NOW, UNKNOWN, Cause
from mqclient.errors import DeadlineError, LinkError

REFUSED: Final = (
    "nothing listens there: is the name server running, and is this its port? They listen on 9876 by default"
)
SILENT: Final = (
    "whoever took the connection says nothing: is it a name server, or a proxy whose own way to it is closed? "
    "Name servers listen on port 9876 by default"
)
OTHER_PROTOCOL: Final = "what listens there speaks another protocol: name servers listen on port 9876 by default"
CLOSED: Final = "is it a name server, and does it want TLS, tls=rocketmq.TLS()?"
NOT_TRUSTED: Final = "tls=rocketmq.TLS(trust=…) names the file of the certificates that are trusted"
NO_TLS: Final = "does it speak TLS on this port? Without tls= nothing is encrypted"
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


def hint(lost: BaseException | None, *, encrypted: bool = False) -> str:
    """The next step after a failure towards a name server, in brackets; empty if there is nothing to say."""
    if isinstance(lost, DeadlineError):
        return f" ({SILENT})"
    if not isinstance(lost, LinkError):
        return ""
    cause = causes.found(lost.__cause__, encrypted=encrypted)
    return f" ({STEPS[cause]})" if cause is not None else ""
