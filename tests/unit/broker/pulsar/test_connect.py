"""CONNECT, keep-alive, and what may not come before."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.broker.pulsar.auth import make_token
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


SECRET = b"0123456789abcdef"


def signed(codec: Any, expires_in: float, *, refreshes: bool = True) -> tuple[PulsarWorld, RawClient]:
    world = PulsarWorld(codec, tokenSecretKey=SECRET, authenticationRefreshCheckSeconds=1)
    raw = RawClient(world, connect=False)
    token = make_token(SECRET, "me", world.world.wall_ms / 1000 + expires_in)
    flags = {"supports_auth_refresh": refreshes}
    fields = {"auth_method_name": "token", "auth_data": token, "feature_flags": flags, "protocol_version": 20}
    assert raw.tell("CONNECT", client_version="raw", **fields)[0][0] == "CONNECTED"
    raw.events.clear()
    return world, raw


def answer(raw: RawClient, token: bytes | None) -> None:
    given = {"auth_method_name": "token"} | ({} if token is None else {"auth_data": token})
    raw.tell("AUTH_RESPONSE", response=given)


def test_credentials_are_asked_for_anew(codec: Any) -> None:
    """As recorded in auth_challenge."""
    world, raw = signed(codec, 3)
    world.world.advance(2.5)
    assert raw.events == []
    world.world.advance(1)
    [(name, told)] = raw.events
    assert (name, told.challenge.auth_data, told.protocol_version) == ("AUTH_CHALLENGE", b"PulsarAuthRefresh", 20)
    answer(raw, make_token(SECRET, "me", world.world.wall_ms / 1000 + 100))
    assert raw.ask("LOOKUP", topic="t")[1].response == 1
    raw.events.clear()
    world.world.advance(20)
    assert (raw.events, raw.open) == ([], True)


@pytest.mark.parametrize("role", ["you", "late", "none"])
def test_credentials_that_are_not_good_enough(codec: Any, role: str) -> None:
    world, raw = signed(codec, 0.5)
    world.world.advance(1.1)
    now = world.world.wall_ms / 1000
    tokens = {"you": make_token(SECRET, "you"), "late": make_token(SECRET, "me", now - 1), "none": None}
    answer(raw, tokens[role])
    assert (raw.events[-1][1].error, raw.open) == (ServerError.AuthenticationError, False)


def test_who_does_not_answer_or_cannot_be_asked_is_closed(codec: Any) -> None:
    world, raw = signed(codec, 0.5)
    world.world.advance(1.5)
    looks = [raw.open]
    world.world.advance(1)
    looks.append(raw.open)
    world, raw = signed(codec, 0.5, refreshes=False)
    world.world.advance(1.5)
    assert [*looks, raw.open] == [True, False, False]


def test_asked_by_a_test(codec: Any) -> None:
    world, raw = signed(codec, 1000)
    world.door.ask_for_credentials()
    world.world.run()
    assert [name for name, _ in raw.events] == ["AUTH_CHALLENGE"]
