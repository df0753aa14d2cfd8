"""What goes wrong first with a new client: each is an error of its own kind, in time, with address and next step."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.config import TLS
from mqclient.errors import ConfigError, DeadlineError, LinkError, MQError
from mqclient.pulsar import aio, schema
from mqclient.pulsar.auth import basic, token
from mqclient.pulsar.codes import BrokerError, ServerError
from tests.support.certificates import make
from tests.support.pulsar_cluster import PulsarCluster

PATIENCE = 1.0
CONNECT = 0.5
SECRET = b"a key of thirty-two bytes or more, for HS256"


def signed(role: str, key: bytes = SECRET, **claims: Any) -> str:
    """A JSON web token."""

    def coded(data: bytes) -> bytes:
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    head = coded(b'{"alg":"HS256"}') + b"." + coded(json.dumps({"sub": role, **claims}).encode())
    return (head + b"." + coded(hmac.new(key, head, hashlib.sha256).digest())).decode()


class Elsewhere:
    """Places where no broker is, or another one than was meant: each attribute is host:port."""

    def __init__(self, folder: Path) -> None:
        self._sockets: list[socket.socket] = []
        closed = socket.socket()
        closed.bind(("127.0.0.1", 0))  # bound, so that nobody else gets the port meanwhile; who connects is refused
        self._sockets.append(closed)
        self.closed = place(closed)
        self.silent = place(self._listen())
        self.hole = self._full()
        certificates = make(folder)
        self.trust = certificates.authority
        files: dict[str, Any] = {
            "tlsCertificateFilePath": certificates.certificate,
            "tlsKeyFilePath": certificates.key,
        }
        self._brokers = ExitStack()
        broker = self._brokers.enter_context(EmbeddedBroker(impl="pure", **files))
        self.rocketmq = broker.name_server
        self.web = broker.pulsar_rest.partition("://")[2]
        self.tls = broker.pulsar_tls_url.partition("://")[2]
        self.plain = broker.pulsar_url.partition("://")[2]
        self.nowhere = "no-such-host.invalid:6650"
        rights: dict[str, Any] = {"tokenSecretKey": SECRET, "authorizationEnabled": True, "superUserRoles": "admin"}
        self.guarded = self._brokers.enter_context(EmbeddedBroker(doors=["pulsar"], impl="pure", **rights))
        call = Request(
            f"{self.guarded.pulsar_rest}/admin/v2/namespaces/public/default/permissions/seller", b'["produce"]'
        )
        call.add_header("Authorization", f"Bearer {signed('admin')}")
        urlopen(call, timeout=60).close()

    def close(self) -> None:
        for one in self._sockets:
            one.close()
        self._brokers.close()

    def _listen(self, backlog: int = 128) -> socket.socket:
        made = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        self._sockets.append(made)
        return made

    def _full(self) -> str:
        """A black hole: a listener that accepts nobody, and whose queue is full, so that SYNs are dropped."""
        listener = self._listen(0)
        for _ in range(4):
            caller = socket.socket()
            caller.setblocking(False)
            caller.connect_ex(listener.getsockname())
            self._sockets.append(caller)
        return place(listener)


def place(listener: socket.socket) -> str:
    return f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture(name="there", scope="module")
def there_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    there = Elsewhere(tmp_path_factory.mktemp("certificates"))
    yield there
    there.close()


WRONG_PLACES: list[tuple[str, str, str]] = [
    ("pulsar", "closed", "nothing listens there"),
    ("pulsar", "hole", "there is no way to it from here"),
    ("pulsar", "silent", "says nothing that a broker says"),
    ("pulsar", "web", "is it the web port"),
    ("pulsar", "rocketmq", "is it a broker's binary port"),
    ("pulsar", "tls", r"does it want TLS, pulsar\+ssl"),
    ("pulsar", "nowhere", "the name is not known here"),
    ("pulsar+ssl", "plain", "does it speak TLS on this port"),
    ("pulsar+ssl", "tls", r"tls=TLS\(trust=…\) names the file"),
    ("http", "plain", "is that the port of the binary protocol"),
    ("http", "closed", "is the web service there"),
    ("http", "hole", "is the web service there"),
    ("https", "tls", "certificate verify failed"),
]


@pytest.mark.parametrize(("scheme", "where", "step"), WRONG_PLACES, ids=[f"{one[0]}-{one[1]}" for one in WRONG_PLACES])
async def test_a_wrong_place(there: Elsewhere, impl: str, scheme: str, where: str, step: str) -> None:
    address = getattr(there, where)
    async with aio.Client(f"{scheme}://{address}", impl=impl, connect_timeout=CONNECT) as client:
        began = time.monotonic()
        with pytest.raises((LinkError, DeadlineError), match=step) as caught:
            await client.producer("orders", timeout=PATIENCE)
        assert time.monotonic() - began < PATIENCE + 4
        assert address in str(caught.value)


@pytest.mark.parametrize("where", ["hole", "silent"])
async def test_who_does_not_answer_is_given_up_at_the_connect_timeout(there: Elsewhere, impl: str, where: str) -> None:
    took: list[float] = []
    for _ in range(5):  # the best of some tries: machines that are busy wake us late
        async with aio.Client(f"pulsar://{getattr(there, where)}", impl=impl, connect_timeout=CONNECT) as client:
            began = time.monotonic()
            with pytest.raises(LinkError):
                await client.ping()
            took.append(time.monotonic() - began)
        if abs(took[-1] - CONNECT) < 0.1:
            return
    assert min(took, key=lambda one: abs(one - CONNECT)) == pytest.approx(CONNECT, abs=0.1)


WRONG_URLS = ["kafka://x", "localhost:6650", "pulsar://", "pulsar://a:99999", "pulsar://a b", "pulsar://a,,b"]


@pytest.mark.parametrize("url", WRONG_URLS)
async def test_what_is_no_service_url(url: str) -> None:
    with pytest.raises(ConfigError, match="service URL"):
        aio.Client(url)


WRONG_CREDENTIALS: dict[str, Any] = {
    "none": None,
    "expired": token(signed("a", exp=1)),
    "of another key": token(signed("a", b"another key")),
    "of another kind": basic("a", "b"),
    "nonsense": token("nonsense"),
}


@pytest.mark.parametrize("what", WRONG_CREDENTIALS)
async def test_a_credential_that_is_refused_is_told_at_once(there: Elsewhere, impl: str, what: str) -> None:
    async with aio.Client(there.guarded.pulsar_url, impl=impl, auth=WRONG_CREDENTIALS[what]) as client:
        began = time.monotonic()
        with pytest.raises(BrokerError, match="does not accept the credential: give auth=") as caught:
            await client.producer("orders")
        assert caught.value.code == ServerError.AuthenticationError
        assert time.monotonic() - began < 10
        assert str(caught.value.remote) in str(caught.value)


@pytest.mark.parametrize("web", [False, True], ids=["binary", "http"])
async def test_without_the_right(there: Elsewhere, impl: str, web: bool) -> None:
    """On a real broker: tests/real/test_pulsar_auth.py."""
    url = there.guarded.pulsar_rest if web else there.guarded.pulsar_url
    async with aio.Client(url, impl=impl, auth=token(signed("stranger"))) as client:
        began = time.monotonic()
        for call in (client.producer, lambda topic: client.consumer(topic, "s")):
            with pytest.raises(BrokerError, match="give it the right to produce or consume") as caught:
                await call("orders")
            assert caught.value.code == ServerError.AuthorizationError
        assert time.monotonic() - began < 10
    async with aio.Client(url, impl=impl, auth=token(signed("seller"))) as client:
        async with client.producer("orders") as producer:
            assert (await producer.send(b"x")).entry >= 0
        with pytest.raises(BrokerError, match="Client is not authorized to subscribe") as caught:
            await client.consumer("orders", "s")
        assert caught.value.code == ServerError.AuthorizationError
        assert str(caught.value.remote) in str(caught.value)


async def test_a_namespace_that_requires_encryption(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    namespace = f"public/{topic}"
    pulsar.rest("PUT", f"namespaces/{namespace}")
    pulsar.rest("POST", f"namespaces/{namespace}/encryptionRequired", True)
    async with aio.Client(pulsar.url, impl=impl) as client:
        began = time.monotonic()
        with pytest.raises(ConfigError, match=r"requires encryption: give the producer encrypt=Encryption") as caught:
            await client.producer(f"{namespace}/orders")
        assert time.monotonic() - began < 20  # a real broker's first topic of a namespace may take ten; asking on: 30
        assert f"{namespace}/orders" in str(caught.value)


async def test_an_encrypted_connection_that_is_trusted(there: Elsewhere, impl: str) -> None:
    """So that the refusals above are not for another reason."""
    async with aio.Client(f"pulsar+ssl://{there.tls}", impl=impl, tls=TLS(trust=there.trust)) as client:
        assert await client.ping()


@pytest.mark.parametrize("topic", ["nobody/here/orders", "public/none/orders"])
async def test_an_unknown_tenant_or_namespace(pulsar: PulsarCluster, impl: str, topic: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        began = time.monotonic()
        for opening in (client.producer(topic), client.consumer(topic, "s")):  # unasync: drop
            with pytest.raises(BrokerError, match="check tenant, namespace and name") as caught:  # unasync: drop
                await opening  # unasync: drop
        with pytest.raises(BrokerError, match="check tenant, namespace and name") as caught:
            await client.reader(topic, start="earliest")
        assert caught.value.code == ServerError.TopicNotFound
        assert str(caught.value.remote) in str(caught.value)
        assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"key": 7}, "a key is str or bytes, not int"),
        ({"ordering_key": "x"}, "an ordering key is bytes, not str"),
        ({"properties": [("a", "b")]}, "properties are a mapping of str to str, not list"),
        ({"properties": {"n": 1}}, "property 'n': names and values are text, not int"),
        ({"properties": {1: "n"}}, "property 1: names and values are text"),
        ({"properties": {"n": None}}, "property 'n': names and values are text, not NoneType"),
        ({"key": "a\ud800"}, r"the key 'a\\ud800' is no text that can be written"),
        ({"properties": {"n": "\udfff"}}, r"the value of property 'n' '\\udfff' is no text that can be written"),
        ({"properties": {"\ud800": "v"}}, r"the name of a property '\\ud800' is no text that can be written"),
        ({"event_time": 1 << 63}, "event_time=9223372036854775808: it is too large"),
        ({"event_time": -1 << 70}, "event_time=-1180591620717411303424: it is not negative"),
        ({"sequence_id": 1 << 63}, "sequence_id=9223372036854775808: it is too large"),
        ({"deliver_at": 1 << 63}, "deliver_at=9223372036854775808: it is too large"),
        ({"deliver_after": float("inf")}, "deliver_after=inf: "),
        ({"deliver_after": float("nan")}, "deliver_after=nan: "),
    ],
)
@pytest.mark.parametrize("batching", [True, False])
async def test_what_a_message_cannot_have_is_told_at_once_and_hurts_nothing(
    pulsar: PulsarCluster, topic: str, impl: str, wrong: dict[str, Any], said: str, batching: bool
) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic, batching=batching) as producer:
        with pytest.raises((TypeError, ConfigError), match=said):
            await producer.send(b"x", **wrong)
        with pytest.raises((TypeError, ConfigError), match=said):
            await producer.send_many([{"body": b"x", **wrong}])
        with pytest.raises((TypeError, ConfigError), match=said):
            producer.submit(b"x", **wrong)
        assert (await producer.send(b"x", timeout=10)).ok
        await producer.flush(10)


async def test_a_message_that_is_too_large(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        with pytest.raises(ConfigError, match=r"the broker takes 5242880 with its metadata; chunking=True"):
            await producer.send(bytes(6 << 20))
        assert (await producer.send(b"the next one")).entry >= 0


@dataclass
class Order:
    number: int


@dataclass
class Stranger:
    name: str


async def test_a_schema_that_does_not_fit(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, schema=schema.Avro(Order)) as producer:
            await producer.send(Order(1))
        began = time.monotonic()
        with pytest.raises(BrokerError, match="the topic has another schema: make this one fit it") as caught:
            await client.producer(topic, schema=schema.Avro(Stranger))
        assert caught.value.code == ServerError.IncompatibleSchema
        with pytest.raises(MQError, match="the topic has another schema"):
            await client.consumer(topic, "s", schema=schema.Avro(Stranger))
        assert time.monotonic() - began < 10


async def test_a_subscription_that_is_taken(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.consumer(topic, "s"):
        with pytest.raises(BrokerError, match="an exclusive subscription has its consumer; type=") as caught:
            await client.consumer(topic, "s")
        assert caught.value.code == ServerError.ConsumerBusy
