"""Who is let in."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import pytest

from mqclient.broker.control import Clock
from mqclient.broker.pulsar.auth import NOBODY, Authentication, Denied, Principal, make_token, of_header, read_token
from mqclient.broker.pulsar.http import Request
from tests.support.pulsar_world import PulsarWorld

SECRET = b"0123456789abcdef"


def asked(method: str, data: bytes = b"", certificate: Any = None, **settings: Any) -> Principal | None:
    try:
        return Authentication(settings, Clock()).check(method, data, certificate)
    except Denied:
        return None


def test_who_is_let_in() -> None:
    assert asked("anything") is NOBODY
    assert asked("token", b"x", pulsar_token="x") == Principal("token")
    assert asked("token", b"y", pulsar_token="x") is None
    assert asked("none", pulsar_token="x") is None
    assert asked("none", pulsar_token="x", anonymousUserRole="guest") == Principal("guest")
    basic = {"pulsar_basic": {"user": "secret"}}
    assert asked("basic", b"user:secret", **basic) == Principal("user")
    for wrong in (b"user:", b"nobody:secret", b"\xff", b""):
        assert asked("basic", wrong, **basic) is None
    shown = {"subject": ((("countryName", "XX"),), (("commonName", "me"),))}
    assert asked("tls", certificate=shown, pulsar_tls_roles=True) == Principal("me")
    assert asked("tls", certificate=None, pulsar_tls_roles=True) is None
    assert asked("tls", certificate=shown, pulsar_token="x") is None


def test_signed_tokens() -> None:
    assert asked("token", make_token(SECRET, "me"), tokenSecretKey=SECRET) == Principal("me")
    assert asked("token", make_token(b"other", "me"), tokenSecretKey=SECRET) is None
    assert asked("token", make_token(SECRET, "me", 1), tokenSecretKey=SECRET) is None
    assert asked("token", make_token(SECRET, "me", 2**40), tokenSecretKey=SECRET) == Principal("me", 2**40 * 1000)


def forged(head: bytes, claims: bytes) -> bytes:
    signed = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in (head, claims))
    return signed + b"." + base64.urlsafe_b64encode(hmac.new(SECRET, signed, hashlib.sha256).digest())


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"..",
        b"a.b.c",
        b"\xff.\xff.\xff",
        forged(b'{"alg": "none"}', b'{"sub": "me"}'),
        forged(b'{"alg": "HS256"}', b"{}"),
        forged(b'{"alg": "HS256"}', b"[]"),
        forged(b'{"alg": "HS256"}', b'{"sub": "me", "exp": "soon"}'),
        forged(b'{"alg": "HS256"}', b'{"sub": "me", "exp": 1e999}'),
        make_token(SECRET, "me")[:-4],
    ],
)
def test_what_is_no_token(token: bytes) -> None:
    with pytest.raises(Denied):
        read_token(token, SECRET)


def test_headers() -> None:
    assert of_header("Basic !") == ("basic", b"")
    assert of_header("Negotiate x") == ("none", b"")


def test_rest_asks_too(codec: Any) -> None:
    world = PulsarWorld(codec, pulsar_token="right")
    assert world.rest("GET", "tenants") == 401
    assert world.rest("GET", "brokers/health") == b"OK"
    place = ("admin", "v2", "tenants")
    answer = world.door.rest.answer(Request("GET", place, headers={"authorization": "Bearer right"}))
    assert answer.content == ["public", "pulsar"]
