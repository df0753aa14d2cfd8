"""One port takes both who speaks TLS and who does not; bad beginnings end, and are told in one line."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.broker.tls import server_context
from mqclient.errors import ConfigError
from mqclient.rocketmq.codes import Request
from tests.support import certificates
from tests.unit.broker.remoting.raw import Raw


@pytest.fixture(name="made", scope="module")
def made_fixture(tmp_path_factory: pytest.TempPathFactory) -> certificates.Certificates:
    return certificates.make(tmp_path_factory.mktemp("tls"))


def settings(made: certificates.Certificates, **more: Any) -> dict[str, Any]:
    return {"tlsCertificateFilePath": made.certificate, "tlsKeyFilePath": made.key, **more}


@pytest.fixture(name="broker", scope="module")
def broker_fixture(codec: Any, made: certificates.Certificates) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(doors=["rocketmq"], impl=codec, **settings(made)) as broker:
        yield broker


def encrypted(raw: Raw, made: certificates.Certificates) -> Raw:
    context = ssl.create_default_context(cafile=made.authority)
    raw._socket = context.wrap_socket(raw._socket, server_hostname="localhost")
    return raw


def test_both_on_one_port(codec: Any, broker: EmbeddedBroker, made: certificates.Certificates, raw: Raw) -> None:
    raw.create_topic("secret", 1)
    with Raw(codec.remoting, broker.addresses()["broker-a"]) as other:
        encrypted(other, made)
        for number in range(3):
            assert other.send("secret", bytes([number]) * 1_000_000).code == 0
        sizes = [message.size for message in raw.codec.decode_messages(raw.pull("g", "secret", 0).body)]
        assert sizes == [1_000_000]
        answer = other.pull("g", "secret", 1)
        (message,) = other.codec.decode_messages(answer.body)
        assert message.body == b"\x01" * 1_000_000
        opaque = other.tell(Request.PULL_MESSAGE, **_held("secret", 3))
        raw.send("secret", b"wake")
        assert other.answer(opaque).code == 0
    with Raw(codec.remoting, broker.name_server) as names:
        assert encrypted(names, made).ask(Request.GET_ROUTEINFO_BY_TOPIC, topic="secret").code == 0


def _held(topic: str, offset: int) -> dict[str, Any]:
    fields = {"consumerGroup": "g", "topic": topic, "queueId": 0, "queueOffset": offset, "maxMsgNums": 1}
    more = {"sysFlag": 6, "commitOffset": 0, "suspendTimeoutMillis": 30_000, "subscription": "*", "subVersion": 0}
    return fields | more


def test_goodbye_and_a_bad_handshake_end_the_connection(
    broker: EmbeddedBroker, made: certificates.Certificates, raw: Raw, codec: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with Raw(codec.remoting, broker.addresses()["broker-a"]) as other:
        encrypted(other, made)
        other.create_topic("bye", 1)
        assert isinstance(other._socket, ssl.SSLSocket)
        other._socket.unwrap().close()
    assert not caplog.records
    host, _, port = broker.addresses()["broker-a"].partition(":")
    with socket.create_connection((host, int(port)), 5) as connection:
        connection.sendall(b"\x16nonsense that is no handshake at all")
        while connection.recv(1000):
            pass
    raw.create_topic("after", 1)
    assert [record.message for record in caplog.records if "closed after bad TLS" in record.message]


def test_tls_only(codec: Any, made: certificates.Certificates, caplog: pytest.LogCaptureFixture) -> None:
    with EmbeddedBroker(doors=["rocketmq"], impl=codec, **settings(made, tlsServerMode="enforcing")) as broker:
        address = broker.addresses()["broker-a"]
        with Raw(codec.remoting, address) as raw, pytest.raises((EOFError, ConnectionError)):
            raw.create_topic("plain", 1)
        assert "does not speak TLS" in caplog.text
        with Raw(codec.remoting, address) as raw:
            encrypted(raw, made).create_topic("sealed", 1)


def test_settings(made: certificates.Certificates) -> None:
    wrongs: list[dict[str, Any]] = [{"tlsServerMode": "maybe"}, {"tlsServerMode": "enforcing"}]
    for wrong in wrongs:
        with pytest.raises(ConfigError, match="tlsServerMode"):
            EmbeddedBroker(doors=["rocketmq"], **wrong).start()
    assert server_context({}) is None
    given = settings(made, tlsTrustCertsFilePath=made.authority)
    optional, required = server_context(given), server_context(given | {"tlsRequireTrustedClientCertOnConnect": True})
    assert optional is not None
    assert required is not None
    assert (optional.verify_mode, required.verify_mode) == (ssl.CERT_OPTIONAL, ssl.CERT_REQUIRED)
