"""Credentials against a real broker that asks for them: tokens, user and password, and a refusal at once."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqclient import pulsar
from mqclient.errors import MQError
from mqclient.pulsar.codes import BrokerError, ServerError
from tests.real.fixtures import ON_PULSAR
from tests.real.jars import Unavailable
from tests.real.pulsar import RealPulsar
from tests.support.issuer import Issuer

pytestmark = ON_PULSAR
SECRET = b"a key of thirty-two bytes or more, for HS256"
PROVIDERS = "org.apache.pulsar.broker.authentication.AuthenticationProvider"
PLUGIN = "org.apache.pulsar.client.impl.auth.AuthenticationToken"


def signed(role: str, key: bytes = SECRET, **claims: Any) -> str:
    """A JSON web token."""

    def coded(data: bytes) -> bytes:
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    head = coded(b'{"alg":"HS256"}') + b"." + coded(json.dumps({"sub": role, **claims}).encode())
    return (head + b"." + coded(hmac.new(key, head, hashlib.sha256).digest())).decode()


class Guarded(RealPulsar):
    """One that lets in only who shows a credential."""

    def _ready(self) -> bool:
        try:
            with pulsar.Client(self.url, auth=pulsar.token(signed("admin"))) as client:
                client.producer("public/default/ready", timeout=5).close()
        except MQError:
            return False
        return True


@pytest.fixture(scope="module")
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPulsar]:
    if "pulsar" not in str(request.config.getoption("--real", "")).split(","):
        pytest.skip("needs a real broker: run `make real`")
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the password file, and is not there")
    folder: Path = tmp_path_factory.mktemp("guarded")
    (folder / "secret.key").write_bytes(SECRET)
    done = subprocess.run([openssl, "passwd", "-apr1", "secret"], capture_output=True, text=True, check=True)
    (folder / "users").write_text(f"anna:{done.stdout.strip()}\n")
    options = f"""
authenticationEnabled=true
authenticationProviders={PROVIDERS}Token,{PROVIDERS}Basic
tokenSecretKey=file://{folder}/secret.key
basicAuthConf=file://{folder}/users
authorizationEnabled=true
superUserRoles=admin,anna
authenticationRefreshCheckSeconds=1
internalListenerName=inside
advertisedListeners=inside:pulsar://localhost:{{port}},outside:pulsar://127.0.0.1:{{port}}
brokerClientAuthenticationPlugin={PLUGIN}
brokerClientAuthenticationParameters=token:{signed("admin")}
"""
    try:
        broker = Guarded(folder / "broker", options=options)
    except Unavailable as error:
        pytest.skip(str(error))
    with broker:
        yield broker


def test_who_is_let_in(guarded: RealPulsar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text(signed("admin") + "\n")
    monkeypatch.setenv("OUR_TOKEN", signed("admin"))

    async def later() -> str:
        return signed("admin")

    for auth in (
        pulsar.token(f"file:{tmp_path}/token"),
        pulsar.token("env:OUR_TOKEN"),
        pulsar.token(later),
        pulsar.basic("anna", "secret"),
    ):
        with pulsar.Client(guarded.url, auth=auth) as client, client.producer("auth") as producer:
            assert producer.send(b"x").entry >= 0


REFUSED = [
    None,
    pulsar.token(signed("admin", b"another key")),
    pulsar.token(signed("admin", exp=1)),
    pulsar.token("nonsense"),
    pulsar.basic("anna", "wrong"),
]


@pytest.mark.parametrize("auth", REFUSED, ids=["none", "another key", "expired", "nonsense", "wrong password"])
def test_who_is_refused_knows_at_once(guarded: RealPulsar, auth: Any) -> None:
    began = time.monotonic()
    with pulsar.Client(guarded.url, auth=auth) as client, pytest.raises(BrokerError, match="give auth=") as caught:
        client.producer("auth")
    assert caught.value.code == ServerError.AuthenticationError
    assert time.monotonic() - began < 10  # the official client tries for 30 s, then says "timeout"


@pytest.mark.parametrize("web", [False, True], ids=["binary", "http"])
def test_who_has_no_right_to_it(guarded: RealPulsar, web: bool) -> None:
    url = guarded.rest if web else guarded.url
    with pulsar.Client(url, auth=pulsar.token(signed("stranger"))) as client:
        for open_one in (lambda: client.producer("auth"), lambda: client.consumer("auth", "s")):
            with pytest.raises(BrokerError, match="give it the right to produce or consume") as caught:
                open_one()
            assert caught.value.code == ServerError.AuthorizationError
    with pulsar.Client(url, auth=pulsar.token(signed("admin"))) as client, client.producer("auth") as producer:
        assert producer.send(b"x").entry >= 0


def test_an_expired_token_is_renewed_when_the_broker_asks(guarded: RealPulsar) -> None:
    shown: list[str] = []

    def supplier() -> str:
        shown.append(signed("admin", exp=int(time.time()) + 3))
        return shown[-1]

    with pulsar.Client(guarded.url, auth=pulsar.token(supplier)) as client, client.producer("auth") as producer:
        end = time.monotonic() + 20
        while len(shown) < 3 and time.monotonic() < end:
            producer.send(b"x")
        assert len(shown) >= 3
        assert producer.diagnose()["resent"] == 0  # over the same connection all the time


def test_client_credentials(guarded: RealPulsar) -> None:
    with Issuer() as issuer, issuer.serving():
        asked: list[float] = []

        def answer() -> dict[str, Any]:
            asked.append(time.time())
            return {"access_token": signed("admin", exp=int(time.time()) + 4), "expires_in": 3}

        issuer.answer = answer
        auth = pulsar.oauth2(issuer.url, client_id="me", client_secret="secret")
        with pulsar.Client(guarded.url, auth=auth) as client, client.producer("auth") as producer:
            end = time.monotonic() + 30
            while len(asked) < 3 and time.monotonic() < end:
                producer.send(b"x")
            assert len(asked) >= 3
            assert producer.diagnose()["resent"] == 0


def test_the_address_that_a_listener_has(guarded: RealPulsar) -> None:
    """The one of outside is that of the service URL, so its connection serves for the topic, too."""
    for name, connections in (("inside", 2), ("outside", 1)):
        with pulsar.Client(guarded.url, auth=pulsar.token(signed("admin")), listener=name) as client:
            client.producer("auth").send(b"x")
            assert len(client.diagnose()["connections"]) == connections
    stranger = pulsar.Client(guarded.url, auth=pulsar.token(signed("admin")), listener="nobody")
    with stranger, pytest.raises(MQError):
        stranger.producer("auth", timeout=5)
