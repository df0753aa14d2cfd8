"""What goes wrong first with a new client: each is an error of its own kind, in time, with address, origin and cure."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.errors import ConfigError, DeadlineError, LinkError, MQError
from mqclient.rocketmq.aio import TLS, Client, Message, MessageQueue, acl
from mqclient.rocketmq.codes import BrokerError, Response
from tests.api.conftest import RocketMQCluster
from tests.support.certificates import make
from tests.support.proxy import CuttingProxy
from tests.support.seen import Seen, unique

WITHIN = 5.0
TIMES: dict[str, Any] = {"connect_timeout": 0.3, "request_timeout": 0.3}
ACCOUNTS = [
    {"accessKey": "reader", "secretKey": "readersecret", "defaultTopicPerm": "SUB", "defaultGroupPerm": "SUB"},
]


class Elsewhere:
    """Servers that are no name servers: each entry is an address."""

    def __init__(self, folder: Path) -> None:
        self._listeners: list[socket.socket] = []
        closed = socket.socket()
        closed.bind(("127.0.0.1", 0))  # bound, so that nobody else gets the port meanwhile; who connects is refused
        self._listeners.append(closed)
        self.closed = self._address(closed)
        self.proxy = CuttingProxy(closed.getsockname()[:2])
        self.dead_proxy = str(self.proxy.address)
        self.silent = self._address(self._listen())
        self.http = self._talking(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        certificates = make(folder)
        self.trust = certificates.authority
        settings: dict[str, Any] = {
            "tlsCertificateFilePath": certificates.certificate,
            "tlsKeyFilePath": certificates.key,
        }
        self._brokers = ExitStack()
        broker = EmbeddedBroker(doors=["rocketmq", "pulsar"], impl="pure", **settings)
        self._brokers.enter_context(broker)
        self.pulsar = broker.pulsar_url.removeprefix("pulsar://")
        self.tls = broker.pulsar_tls_url.removeprefix("pulsar+ssl://")
        self.name_server = broker.name_server
        guarded = EmbeddedBroker(doors=["rocketmq"], impl="pure", aclEnable=True, accounts=ACCOUNTS)
        self.plain = self._brokers.enter_context(guarded).name_server

    def close(self) -> None:
        for listener in self._listeners:
            listener.close()
        self.proxy.close()
        self._brokers.close()

    def _listen(self) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._listeners.append(listener)
        return listener

    def _address(self, listener: socket.socket) -> str:
        return f"127.0.0.1:{listener.getsockname()[1]}"

    def _talking(self, words: bytes) -> str:
        listener = self._listen()

        def talk() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    peer.recv(1 << 16)
                    peer.sendall(words)

        threading.Thread(target=talk, daemon=True).start()
        return self._address(listener)


@pytest.fixture(name="there", scope="module")
def there_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    there = Elsewhere(tmp_path_factory.mktemp("certificates"))
    yield there
    there.close()


async def send(client: Client, topic: str = "orders", body: Any = b"x", group: str = "senders", **options: Any) -> None:
    async with client.producer(group, **options) as producer:
        await producer.send(Message(topic, body), timeout=1.0)


async def raised(kind: type[Exception], told: str, call: Callable[[], Any]) -> Any:
    """The error of a call."""
    with pytest.raises(kind, match=told) as caught:
        await call()
    return caught.value


async def pull(client: Client) -> None:
    async with client.pull_consumer("readers", "orders", timeout=2.0) as consumer:
        await consumer.receive(timeout=1.0)


WRONG_SERVERS: list[tuple[str, type[MQError], str, dict[str, Any]]] = [
    ("closed", LinkError, "nothing listens there", {}),
    ("silent", MQError, "says nothing: is it a name server", {}),
    ("http", LinkError, "speaks another protocol", {}),
    ("pulsar", LinkError, "is it a name server", {}),
    ("tls", MQError, "is it a name server", {}),
    ("dead_proxy", LinkError, "is it a name server", {}),
    ("plain", LinkError, "does it speak TLS", {"tls": TLS(insecure_trust_anyone=True)}),
    ("tls", LinkError, "names the file of the certificates", {"tls": TLS()}),
]


@pytest.mark.parametrize("call", [send, pull], ids=["send", "pull"])
@pytest.mark.parametrize(
    ("where", "kind", "step", "options"), WRONG_SERVERS, ids=[f"{row[0]}{len(row[3])}" for row in WRONG_SERVERS]
)
async def test_a_wrong_address_says_what_listens_there(
    there: Elsewhere, where: str, kind: type[MQError], step: str, options: dict[str, Any], call: Callable[..., Any]
) -> None:
    address = getattr(there, where)
    began = time.monotonic()
    async with Client(address, **TIMES, **options) as client:
        error = await raised(kind, step, lambda: call(client))
    assert address in str(error)
    assert "name server" in str(error)
    assert not error.outcome_unknown
    assert time.monotonic() - began < WITHIN


async def test_where_an_address_came_from_is_told(there: Elsewhere, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", f"rocketmq://{there.closed}?connect_timeout=0.3")
    async with Client() as client:
        await raised(LinkError, rf"{there.closed} \(name server by NAMESRV_ADDR\)", client.ping)


async def test_a_brokers_address_that_nobody_can_reach_names_who_told_it(there: Elsewhere) -> None:
    async with Client(there.name_server, rewrite_address=lambda address: there.closed, **TIMES) as client:
        told = r"told by name server .*brokerIP1, or rewrite_address="
        assert there.closed in str(await raised(LinkError, told, lambda: send(client)))


async def test_a_broker_is_no_name_server(rocketmq: RocketMQCluster) -> None:
    async with Client(rocketmq.name_server) as client, client.admin() as admin:
        broker = next(iter((await admin.cluster())[0].addresses.values()))
    async with Client(broker) as client:
        for call in (send, pull):
            error = await raised(BrokerError, r"is it the name server's address\?", partial(call, client))
            assert broker in str(error)


NOT_SENT: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"body": b"x" * (4 * 1024 * 1024 + 1)}, ConfigError, "4194304 are allowed"),
    ({"body": b""}, ConfigError, "empty body"),
    ({"body": "text"}, TypeError, r"text\.encode\(\)"),
    ({"body": {"a": 1}}, TypeError, "bytes first"),
    ({"topic": "a b"}, ConfigError, "illegal characters"),
    ({"topic": "t" * 128}, ConfigError, "127 are allowed"),
    ({"topic": ""}, ConfigError, "a topic is needed"),
    ({"topic": "SCHEDULE_TOPIC_XXXX"}, ConfigError, "broker's own"),
    ({"group": "a b"}, ConfigError, "up to 120 of"),
    ({"group": "DEFAULT_PRODUCER"}, ConfigError, "choose a name of your own"),
    ({"send_timout": 1}, ConfigError, "did you mean 'send_timeout'"),
]


@pytest.mark.parametrize(("given", "kind", "told"), NOT_SENT)
async def test_what_no_broker_takes_is_refused_before_anything_is_sent(
    given: dict[str, Any], kind: type[Exception], told: str
) -> None:
    async with Client("127.0.0.1:9", **TIMES) as client:
        await raised(kind, told, lambda: send(client, **given))


@pytest.mark.parametrize("handler", [None, "print", []])
async def test_a_handler_that_cannot_be_called_is_told_at_once(handler: Any) -> None:
    async with Client("127.0.0.1:9", **TIMES) as client:
        opening = client.push_consumer
        await raised(
            ConfigError, "a handler is a function that is called with messages, not", lambda: opening("g", "t", handler)
        )


@pytest.mark.parametrize("servers", ["host:port", "host:0", "", "a b:1", ":1", ["a:1:2"]])
async def test_what_is_no_address(servers: Any) -> None:
    with pytest.raises(ConfigError, match=r"no address: host:port is|no name server"):
        Client(servers)


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({"key": 7}, TypeError, "a key is a str, not int"),
        ({"queue": 3}, TypeError, "a queue is a MessageQueue, such as a receipt's, not int"),
        ({"queue": MessageQueue("other", "broker-a", 0)}, ConfigError, "cannot go to a queue of 'other'"),
    ],
)
async def test_a_wrong_key_or_queue_is_told_at_once_and_hurts_nothing(
    rocketmq: RocketMQCluster, impl: str, wrong: dict[str, Any], error: type[Exception], said: str
) -> None:
    topic = unique("wrong")
    async with Client(rocketmq.name_server, impl=impl) as client, client.producer("p") as producer:
        message = Message(topic, b"x")
        with pytest.raises(error, match=said):
            await producer.send(message, **wrong)
        with pytest.raises(error, match=said):
            await producer.request(message, **wrong)
        with pytest.raises(error, match=said):
            producer.submit(message, **wrong)
        assert (await producer.send(message, timeout=10)).ok
        assert (await producer.close()).pending == 0


async def test_keys_of_many_are_text(rocketmq: RocketMQCluster, impl: str) -> None:
    wrong: Any = len
    async with Client(rocketmq.name_server, impl=impl) as client, client.producer("p") as producer:
        many = [Message(unique("wrong"), b"x")]
        with pytest.raises(TypeError, match="a key is a str, not int"):
            await producer.send_many(many, key=lambda message: wrong(message.body))
        assert (await producer.send_many(many))[0].ok


async def test_a_body_that_the_broker_finds_too_large(rocketmq: RocketMQCluster) -> None:
    async with Client(rocketmq.name_server) as client:
        async with client.admin() as admin:
            topic = unique("large")
            await admin.create_topic(topic, 1)
        async with client.producer(unique("p"), max_body=1 << 23, compression=None) as producer:
            message = Message(topic, b"x" * (4 * 1024 * 1024 + 1))
            error = await raised(BrokerError, "maxMessageSize", lambda: producer.send(message, timeout=10))
    assert error.remote in str(error)


async def test_a_missing_topic_is_named_with_the_cure(rocketmq: RocketMQCluster) -> None:
    topic = unique("missing")
    async with Client(rocketmq.name_server) as client, client.admin() as admin:
        error = await raised(BrokerError, r"(?s)TOPIC_NOT_EXIST.*create_topic", lambda: admin.offsets(topic))
        assert topic in str(error)
        assert error.remote == rocketmq.name_server
        async with client.pull_consumer(unique("g"), topic) as consumer:
            told = rf"topic {topic} is not there.*create_topic"
            await raised(DeadlineError, told, lambda: consumer.receive(timeout=0.1))


WRONG_KEYS: list[tuple[Any, str]] = [
    (None, "auth="),
    (acl("reader", "guessed"), "auth="),
    (acl("nobody", "secret"), "auth="),
    (acl("reader", "readersecret"), "auth="),
]


@pytest.mark.parametrize(("auth", "step"), WRONG_KEYS, ids=["none", "wrong", "unknown", "no-permission"])
async def test_who_may_not_is_told_so(there: Elsewhere, auth: Any, step: str) -> None:
    async with Client(there.plain, auth=auth, **TIMES) as client:
        error = await raised(BrokerError, step, lambda: send(client))
    assert error.meaning == Response.NO_PERMISSION
    assert error.remote in str(error)
    assert "guessed" not in str(error)


async def test_a_broker_may_want_to_see_our_certificate(tmp_path: Path, impl: str) -> None:
    made = make(tmp_path)
    settings: dict[str, Any] = {
        "tlsCertificateFilePath": made.certificate,
        "tlsKeyFilePath": made.key,
        "tlsTrustCertsFilePath": made.authority,
        "tlsRequireTrustedClientCertOnConnect": True,
    }
    with EmbeddedBroker(doors=["rocketmq"], impl="pure", **settings) as broker:
        ours = TLS(trust=made.authority, certificate=made.certificate, key=made.key)
        async with Client(broker.name_server, impl=impl, tls=ours) as client:
            await send(client, unique("sealed"))
        async with Client(broker.name_server, impl=impl, tls=TLS(trust=made.authority), **TIMES) as client:
            error = await raised(MQError, broker.name_server, lambda: send(client, unique("sealed")))
        assert not isinstance(error, ConfigError)


async def test_a_broken_offset_file_is_one_warning_and_memory_goes_on(
    rocketmq: RocketMQCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topic, group, seen = unique("news"), unique("audit"), Seen()

    async def handle(messages: Any) -> None:
        seen(messages)

    async with Client(rocketmq.name_server, offset_dir=str(tmp_path)) as client:
        async with client.admin() as admin:
            await admin.create_topic(topic, 1)
        folder = tmp_path / client.client_id.partition("@")[0] / group / "0"
        folder.mkdir(parents=True)
        (folder / "offsets.json").write_text("{broken")
        async with client.push_consumer(group, topic, handle, model="broadcasting", start="first") as consumer:
            await send(client, topic)
            until = time.monotonic() + 20
            while not seen.bodies and time.monotonic() < until:
                await consumer.seek_to_time("first")
    assert seen.bodies
    lines = [record.getMessage() for record in caplog.records if "offsets.json cannot be read" in record.getMessage()]
    assert len(lines) == 1
    assert str(folder) in lines[0]
