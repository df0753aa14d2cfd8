"""Credentials: asked when needed, never shown."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Any

import pytest

from mqclient import pulsar
from mqclient.errors import ConfigError
from mqclient.pulsar.auth import NoAuthentication, TlsAuthentication, TokenAuthentication, basic, mutual_tls, token
from tests.support.pulsar_world import PulsarWorld


def test_nothing_to_show() -> None:
    assert (NoAuthentication().method, NoAuthentication().data()) == ("none", None)
    assert (mutual_tls().method, mutual_tls().data()) == ("tls", None)


def test_credentials_travel_with_their_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("filed")
    monkeypatch.setenv("OUR_TOKEN", "set")
    given = [token("a"), token("token:b"), token(f"file:{tmp_path}/token"), token("env:OUR_TOKEN"), basic("anna", "c")]
    there = pickle.loads(pickle.dumps(given))
    assert [auth.data() for auth in there] == [b"a", b"b", b"filed", b"set", b"anna:c"]
    assert isinstance(pickle.loads(pickle.dumps(mutual_tls())), TlsAuthentication)


def test_user_and_password() -> None:
    auth = basic("anna", "se:cret")
    assert (auth.method, auth.data(), basic("a", "b", "ours").method) == ("basic", b"anna:se:cret", "ours")
    assert "se:cret" not in repr(auth)
    for name in ("", "a:b"):
        with pytest.raises(ConfigError, match="colon"):
            basic(name, "x")


def test_a_token_is_asked_for_each_time_and_not_shown() -> None:
    values = iter(["first", " second\n"])
    auth = token(lambda: next(values))
    assert [auth.data(), auth.data()] == [b"first", b"second"]
    assert "secret" not in repr(token("secret"))
    assert token("secret").data() == token("token:secret").data() == b"secret"
    wrong: Any
    for wrong in (b"bytes", 5):
        with pytest.raises(ConfigError, match="str"):
            token(wrong)
        with pytest.raises(ConfigError, match="str"):
            token(lambda wrong=wrong: wrong).data()  # type: ignore[misc]


def test_where_a_token_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "to ken"
    auths = [token(f"file:{file}"), token(file.as_uri())]
    for content in ("one\n", "two"):  # read each time: it may have been replaced
        file.write_text(content)
        assert {auth.data() for auth in auths} == {content.strip().encode()}
    with pytest.raises(ConfigError, match="cannot be read"):
        token(f"file:{tmp_path}/none").data()
    monkeypatch.setenv("THE_TOKEN", "three")
    assert token("env:THE_TOKEN").data() == b"three"
    with pytest.raises(ConfigError, match="NO_TOKEN"):
        token("env:NO_TOKEN").data()


def test_a_token_may_be_awaited_for() -> None:
    async def supplier() -> str:
        await asyncio.sleep(0)
        return "late"

    async def show(auth: TokenAuthentication) -> Any:
        data: Any = auth.data()
        return await data

    assert asyncio.run(show(token(supplier))) == b"late"


def test_the_package_has_them() -> None:
    assert pulsar.token("x").data() == b"x"
    assert pulsar.basic("a", "b").data() == b"a:b"
    assert pulsar.mutual_tls().method == "tls"
    with pytest.raises(ConfigError, match="client_id"):
        pulsar.oauth2("https://issuer")


def test_what_a_supplier_raises_ends_the_connection(codec: Any) -> None:
    async def fail() -> str:
        raise ConfigError("no token today")

    async def give() -> str:
        return "ours"

    world = PulsarWorld(codec, pulsar_token="ours")
    with pytest.raises(ConfigError, match="no token today"):
        world.producer(world.client(auth=token(fail)), "t")
    assert world.producer(world.client(auth=token(give)), "t").name
    with pytest.raises(ConfigError, match=r"pulsar\+ssl"):
        world.client(auth=mutual_tls())
