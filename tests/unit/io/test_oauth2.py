"""OAuth 2.0 client credentials against an issuer of our own."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqclient import pulsar
from mqclient.errors import ConfigError, LinkError, ProtocolError
from mqclient.io.oauth2 import ClientCredentials, read_private_key
from tests.support.issuer import Issuer


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as server, server.serving():
        yield server


def test_a_token_is_kept_until_shortly_before_its_end(issuer: Issuer) -> None:
    now = [0.0]
    given = ClientCredentials(issuer.url + "/", "me", "secret", audience="pulsar", scope="a b", clock=lambda: now[0])
    assert given() == given() == "token-1"
    assert issuer.forms == [
        {
            "grant_type": ["client_credentials"],
            "client_id": ["me"],
            "client_secret": ["secret"],
            "audience": ["pulsar"],
            "scope": ["a b"],
        }
    ]
    now[0] = 79.0
    assert given() == "token-1"
    now[0] = 80.0
    assert given() == "token-2"
    assert "secret" not in repr(given)


def test_under_asyncio_the_loop_goes_on(issuer: Issuer) -> None:
    async def ask() -> Any:
        found: Any = ClientCredentials(issuer.url, "me", "secret")()
        return await found

    assert asyncio.run(ask()) == "token-1"


def test_what_an_issuer_may_say(issuer: Issuer) -> None:
    given = ClientCredentials(issuer.url, "me", "secret", timeout=5.0)
    issuer.status, issuer.answer = 401, {"error": "invalid_client"}
    with pytest.raises(ConfigError, match=r"401 .*invalid_client"):
        given()
    issuer.status = 200
    wrong: Any
    for wrong in (b"<html>", [], {"access_token": 5}, {"access_token": "x", "expires_in": 0}):
        issuer.answer = wrong
        with pytest.raises(ProtocolError):
            given()
    issuer.answer, issuer.where = None, None
    with pytest.raises(ProtocolError, match="token_endpoint"):
        given()
    issuer.where = f"{issuer.url}/token"
    assert given() == f"token-{len(issuer.forms)}"


def test_nobody_there() -> None:
    with pytest.raises(LinkError, match=r"127\.0\.0\.1"):
        ClientCredentials("http://127.0.0.1:1", "me")()
    with pytest.raises(ConfigError, match="https"):
        ClientCredentials("issuer", "me")


def test_the_key_file(tmp_path: Path, issuer: Issuer) -> None:
    content = json.dumps({"client_id": "me", "client_secret": "secret", "type": "client_credentials"})
    file = tmp_path / "key.json"
    file.write_text(content)
    coded = b64encode(content.encode()).decode()
    for text in (str(file), file.as_uri(), f"data:application/json;base64,{coded}"):
        assert read_private_key(text)["client_secret"] == "secret"
        assert pulsar.oauth2(issuer.url, private_key=text).method == "token"
    for text in (str(tmp_path / "none"), "data:application/json;base64,e30x", "data:,W10="):
        with pytest.raises(ConfigError, match="private_key"):
            read_private_key(text)
    assert pulsar.oauth2(issuer.url, client_id="me", client_secret="x").data() == b"token-1"
