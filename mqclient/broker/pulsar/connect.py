"""Handshake and keep-alive.

| command | answer |
|---|---|
| CONNECT | CONNECTED, or ERROR AuthenticationError (request id 2^64-1) and the end |
| AUTH_RESPONSE | nothing: the broker never asks |
| PING / PONG | PONG / nothing |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqclient import __version__
from mqclient.pulsar.codes import ServerError

if TYPE_CHECKING:
    from mqclient.broker.pulsar.session import Session

PROTOCOL_VERSION = 21
FEATURES = ("supports_topic_watchers", "supports_get_partitioned_metadata_without_auto_creation")
NO_REQUEST_ID = 2**64 - 1
BEFORE = frozenset((2, 18, 19))
"""What may come before CONNECT was answered."""


def on_connect(session: Session, request: Any) -> None:
    token = session.house.settings.get("pulsar_token")
    if token is not None and (request.auth_method_name != "token" or request.auth_data.decode() != token):
        session.error(NO_REQUEST_ID, ServerError.AuthenticationError, "Failed to authenticate")
        session.close("wrong credentials")
        return
    session.connected = True
    session.client_version = request.client_version
    session.send(
        3,
        "CommandConnected",
        server_version=f"Pulsar Server (mqclient {__version__})",
        protocol_version=min(PROTOCOL_VERSION, request.protocol_version),
        max_message_size=session.impl.pulsar.MAX_MESSAGE,
        feature_flags={
            "supports_topic_watchers": True,
            "supports_get_partitioned_metadata_without_auto_creation": True,
        },
    )


def on_ping(session: Session, _: Any) -> None:
    session.write(session.impl.pulsar.PONG_FRAME)


def nothing(session: Session, _: Any) -> None:
    """Having been read is all that it is for."""


HANDLERS = {2: on_connect, 18: on_ping, 19: nothing, 37: nothing}
