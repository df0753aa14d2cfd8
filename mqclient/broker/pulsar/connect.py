"""Handshake, credentials and keep-alive.

| command | answer |
|---|---|
| CONNECT | CONNECTED, or ERROR AuthenticationError (request id 2^64-1) and the end |
| AUTH_RESPONSE | nothing; the end if the credentials are not good, or somebody else's |
| PING / PONG | PONG / nothing |

Credentials that expire are asked for anew by AUTH_CHALLENGE, at the broker's next look (every
`authenticationRefreshCheckSeconds`, 60); who cannot be asked, or has not answered until the look after, is closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqclient import __version__
from mqclient.broker.pulsar.auth import Denied
from mqclient.pulsar.codes import ServerError

if TYPE_CHECKING:
    from mqclient.broker.pulsar.session import Session

PROTOCOL_VERSION = 21
FEATURES = ("supports_topic_watchers", "supports_get_partitioned_metadata_without_auto_creation")
NO_REQUEST_ID = 2**64 - 1
BEFORE = frozenset((2, 18, 19))
"""What may come before CONNECT was answered."""
REFRESH = b"PulsarAuthRefresh"


def on_connect(session: Session, request: Any) -> None:
    try:
        certificate = session.certificate() if request.auth_method_name == "tls" else None
        session.principal = session.door.authentication.check(request.auth_method_name, request.auth_data, certificate)
    except Denied as denied:
        session.error(NO_REQUEST_ID, ServerError.AuthenticationError, "Failed to authenticate")
        session.close(f"wrong credentials: {denied}")
        return
    session.connected = True
    session.client_version = request.client_version
    session.auth_method = request.auth_method_name
    session.refreshes = request.feature_flags.supports_auth_refresh
    session.protocol_version = min(PROTOCOL_VERSION, request.protocol_version)
    session.send(
        3,
        "CommandConnected",
        server_version=f"Pulsar Server (mqclient {__version__})",
        protocol_version=session.protocol_version,
        max_message_size=session.impl.pulsar.MAX_MESSAGE,
        feature_flags=dict.fromkeys(FEATURES, True),
    )
    if session.door.authentication.enabled:
        look_again(session)


def look_again(session: Session) -> None:
    """At the next look, whether the credentials are still good."""
    seconds = float(session.house.settings.get("authenticationRefreshCheckSeconds", 60))
    session.house.clock.after(seconds, lambda: _look(session))


def _look(session: Session) -> None:
    if session.closed:
        return
    if session.challenged:
        session.close("no answer to AUTH_CHALLENGE")
        return
    if session.door.authentication.expired(session.principal):
        challenge(session)
    look_again(session)


def challenge(session: Session) -> None:
    """Ask for credentials anew; who does not know how to be asked is closed."""
    if not session.refreshes:
        session.close("its credentials have expired, and it cannot be asked for new ones")
        return
    session.challenged = True
    session.send(
        36,
        "CommandAuthChallenge",
        challenge={"auth_method_name": session.auth_method, "auth_data": REFRESH},
        protocol_version=session.protocol_version,
    )


def on_auth_response(session: Session, request: Any) -> None:
    given = request.response
    try:
        if not (given.HasField("auth_data") and given.HasField("auth_method_name")):
            raise Denied("the response holds no credentials")
        principal = session.door.authentication.check(given.auth_method_name, given.auth_data)
        if principal.role != session.principal.role:
            raise Denied(f"they are those of {principal.role!r}, the connection is of {session.principal.role!r}")
    except Denied as denied:
        session.error(NO_REQUEST_ID, ServerError.AuthenticationError, "Failed to authenticate")
        session.close(f"wrong credentials: {denied}")
        return
    session.challenged = False
    session.principal = principal


def on_ping(session: Session, _: Any) -> None:
    session.write(session.impl.pulsar.PONG_FRAME)


def nothing(session: Session, _: Any) -> None:
    """Having been read is all that it is for."""


HANDLERS = {2: on_connect, 18: on_ping, 19: nothing, 37: on_auth_response}
