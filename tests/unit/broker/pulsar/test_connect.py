"""CONNECT, keep-alive, and what may not come before."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.pulsar.codes import ServerError
from tests.support.pulsar_world import PulsarWorld, RawClient


def test_versions_and_limits(codec: Any) -> None:
    raw = RawClient(PulsarWorld(codec), connect=False)
    [(name, told)] = raw.tell("CONNECT", client_version="raw", protocol_version=17)
    assert (name, told.protocol_version, told.max_message_size) == ("CONNECTED", 17, 5242880)
    assert told.server_version.startswith("Pulsar Server")
    raw = RawClient(PulsarWorld(codec), connect=False)
    [(_, told)] = raw.tell("CONNECT", client_version="raw", protocol_version=99)
    assert told.protocol_version == 21


def test_nothing_before_connect(codec: Any) -> None:
    raw = RawClient(PulsarWorld(codec), connect=False)
    raw.write(codec.pulsar.PING_FRAME)
    assert raw.events == [(codec.pulsar.PONG,)]
    raw.ask("LOOKUP", topic="t")
    assert not raw.open


@pytest.mark.parametrize(
    ("fields", "admitted"),
    [
        ({"auth_method_name": "token", "auth_data": b"right"}, True),
        ({"auth_method_name": "token", "auth_data": b"wrong"}, False),
        ({"auth_method_name": "none"}, False),
    ],
)
def test_tokens(codec: Any, fields: dict[str, Any], admitted: bool) -> None:
    raw = RawClient(PulsarWorld(codec, pulsar_token="right"), connect=False)
    [(name, told)] = raw.tell("CONNECT", client_version="raw", **fields)
    assert (name == "CONNECTED", raw.open) == (admitted, admitted)
    if not admitted:
        assert (told.request_id, told.error) == (2**64 - 1, ServerError.AuthenticationError)
