"""Credentials that end and are renewed, and certificates; over the embedded broker, the others over a real one in
tests/real/test_pulsar_auth.py."""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqclient import pulsar as face
from mqclient.broker import EmbeddedBroker
from mqclient.broker.pulsar.auth import make_token
from mqclient.config import TLS
from mqclient.errors import ConfigError, MQError
from mqclient.pulsar import aio
from mqclient.pulsar.codes import BrokerError
from tests.support.certificates import make
from tests.support.issuer import Issuer
from tests.support.pace.aio import sleep

SECRET = b"a key of thirty-two bytes or more, for HS256"
LIFE = 2.0


class Tokens:
    """Of a short life."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        self.asked: list[float] = []

    def __call__(self) -> dict[str, Any]:
        self.asked.append(time.time())
        self.ends.append(int(time.time()) + LIFE)
        text = make_token(SECRET, "me", self.ends[-1]).decode()
        return {"access_token": text, "expires_in": self.ends[-1] - time.time()}


@pytest.fixture(name="issuer")
def issuer_fixture() -> Iterator[Issuer]:
    with Issuer() as server, server.serving():
        server.answer = Tokens()
        yield server


@pytest.fixture(name="guarded", scope="module")
def guarded_fixture() -> Iterator[EmbeddedBroker]:
    settings: dict[str, Any] = {"tokenSecretKey": SECRET, "authenticationRefreshCheckSeconds": 0.1}
    with EmbeddedBroker(doors=["pulsar"], impl="pure", **settings) as broker:
        yield broker


async def test_client_credentials_are_renewed_on_the_way(
    guarded: EmbeddedBroker, issuer: Issuer, topic: str, impl: str
) -> None:
    tokens: Tokens = issuer.answer
    auth = face.oauth2(issuer.url, client_id="me", client_secret="secret", audience="pulsar")
    async with aio.Client(guarded.pulsar_url, auth=auth, impl=impl) as client, client.producer(topic) as producer:
        limit = time.monotonic() + 30
        while len(tokens.asked) < 3 and time.monotonic() < limit:
            await producer.send(b"x")
            await sleep(0.005)
        assert len(tokens.asked) >= 3
        assert producer.diagnose()["resent"] == 0  # over the same connection all the time
        assert len(client.diagnose()["connections"]) == 1
    assert issuer.forms[0]["audience"] == ["pulsar"]


async def test_an_issuer_that_refuses_is_told(guarded: EmbeddedBroker, issuer: Issuer, topic: str, impl: str) -> None:
    issuer.status, issuer.answer = 401, {"error": "invalid_client"}
    auth = face.oauth2(issuer.url, client_id="me", client_secret="wrong")
    async with aio.Client(guarded.pulsar_url, auth=auth, impl=impl) as client:
        began = time.monotonic()
        with pytest.raises((ConfigError, MQError), match="refuses these credentials: 401"):
            await client.producer(topic)
        assert time.monotonic() - began < 10


async def test_a_certificate_says_who_it_is(tmp_path: Path, topic: str, impl: str) -> None:
    made = make(tmp_path)
    settings: dict[str, Any] = {
        "tlsCertificateFilePath": made.certificate,
        "tlsKeyFilePath": made.key,
        "tlsTrustCertsFilePath": made.authority,
        "pulsar_tls_roles": True,
    }
    with EmbeddedBroker(doors=["pulsar"], impl="pure", **settings) as broker:
        url = broker.pulsar_tls_url
        own = TLS(trust=made.authority, certificate=made.certificate, key=made.key)
        async with aio.Client(url, auth=face.mutual_tls(), tls=own, impl=impl) as client:
            async with client.producer(topic) as producer:
                assert (await producer.send(b"x")).entry == 0
        async with aio.Client(url, auth=face.mutual_tls(), tls=TLS(trust=made.authority), impl=impl) as client:
            with pytest.raises(BrokerError, match="does not accept the credential"):
                await client.producer(topic)
