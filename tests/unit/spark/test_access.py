"""How Spark's processes reach brokers: what belongs together, what is never shown, which client comes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.config import TLS
from mqclient.errors import ConfigError
from mqclient.spark.access import (
    PULSAR_ACCESS,
    ROCKETMQ_ACCESS,
    Access,
    _authentication,
    access,
    pulsar_client,
    rocketmq_client,
)
from mqclient.spark.clients import CLIENTS
from mqclient.spark.options import Values


def of_rocketmq(**given: str) -> Access:
    return access(Values({"nameServer": "a:1", **given}, ROCKETMQ_ACCESS, "mq-rocketmq"), ROCKETMQ_ACCESS)


def of_pulsar(**given: str) -> Access:
    return access(Values({"serviceUrl": "pulsar://a:1", **given}, PULSAR_ACCESS, "mq-pulsar"), PULSAR_ACCESS)


def test_secrets_may_be_elsewhere_and_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("swordfish\n")
    found = of_rocketmq(accessKey="reader", secretKeyFile=str(tmp_path / "secret"), securityToken="hush")
    assert (found.address, dict(found.given)["accessKey"]) == ("a:1", "reader")
    assert (found.reveal("secretKey"), found.reveal("securityToken"), found.reveal("password")) == (
        "swordfish",
        "hush",
        None,
    )
    assert "hush" not in repr(found)
    assert hash(found) == hash(
        of_rocketmq(accessKey="reader", secretKeyFile=str(tmp_path / "secret"), securityToken="hush")
    )


def test_encryption() -> None:
    assert of_rocketmq().encryption() is None
    assert of_rocketmq(tls="TRUE").encryption() == TLS()
    found = of_pulsar(
        tlsTrustFile="ca.pem", tlsCertificateFile="c.pem", tlsKeyFile="k.pem", tlsKeyPassword="hush",
        tlsServerName="broker", tlsCheckHostName="false",
    ).encryption()  # fmt: skip
    assert found == TLS("ca.pem", "c.pem", "k.pem", "hush", "broker", check_host_name=False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"accessKey": "x"}, "accessKey and secretKey go together; secretKeyFile or secretKeyEnv will do"),
        ({"secretKey": "x"}, "accessKey and secretKey go together"),
        ({"tls": "perhaps"}, "neither true nor false"),
    ],
)
def test_mistakes_of_rocketmq(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        of_rocketmq(**given)


def test_one_way_to_say_who_we_are() -> None:
    with pytest.raises(ConfigError, match="oauth2IssuerUrl and token: one way"):
        of_pulsar(token="a", oauth2IssuerUrl="http://x")
    with pytest.raises(ConfigError, match="user and password go together"):
        of_pulsar(user="a")


def test_ways_to_say_who_we_are(tmp_path: Path) -> None:
    key = tmp_path / "key.json"
    key.write_text('{"client_id": "us", "client_secret": "hush"}')
    ways = {
        "token": of_pulsar(tokenFile=str(key)),
        "basic": of_pulsar(user="us", password="hush"),
        "tls": of_pulsar(tlsCertificateFile="c.pem", tlsKeyFile="k.pem"),
    }
    for method, found in ways.items():
        assert _authentication(found, dict(found.given)).method == method
    by_oauth = of_pulsar(oauth2IssuerUrl="http://127.0.0.1:1", oauth2PrivateKeyFile=str(key), oauth2Audience="us")
    assert _authentication(by_oauth, dict(by_oauth.given)).method == "token"
    assert _authentication(of_pulsar(), {}) is None


def test_one_client_for_each_access() -> None:
    with EmbeddedBroker() as broker:
        one = Access(broker.name_server, (("accessKey", "reader"),), of_rocketmq(accessKey="r", secretKey="s").secrets)
        with rocketmq_client(one) as first, rocketmq_client(Access(broker.name_server)) as second:
            assert first is not second
            second.ping()
        with rocketmq_client(one) as third:
            assert third is first
        with pulsar_client(Access(broker.pulsar_url)) as of_another:
            assert of_another.ping()
        CLIENTS.close()
