"""One connection against a scripted broker: handshake, keep-alive, challenges, errors, strays."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient import _schema
from mqclient.core.steps import run_steps
from mqclient.errors import LinkError, MQError, ProtocolError
from mqclient.pulsar.auth import token
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.codes import BrokerError, ServerError
from tests.support.fake_driver import Script, Wire, World

CONNECTED = {"server_version": "test", "protocol_version": 21}


class Broker:
    """Answers CONNECT as told, keeps all commands."""

    def __init__(self, codec: Any, *answers: tuple[int, str, dict[str, Any]]) -> None:
        self.codec = codec
        self.answers = list(answers)
        self.seen: list[tuple[Any, ...]] = []
        self.script = Script(self.answer)
        self.world = World()
        self.world.listen(("broker", 6650), self.script)
        self._readers: dict[Wire, Any] = {}

    def answer(self, wire: Wire, data: bytes) -> None:
        reader = self._readers.setdefault(wire, self.codec.pulsar.FrameReader())
        for event in reader.feed(data):
            self.seen.append(event)
            if event[0] in (2, 37) and self.answers:
                self.send(*self.answers.pop(0))

    def send(self, kind: int, name: str, fields: dict[str, Any]) -> None:
        body = _schema.message(name)(**fields).SerializeToString()
        self.script.wire.send(self.codec.pulsar.encode_command(kind, body))

    def client(self, **options: Any) -> ClientEngine:
        driver = self.world.driver()
        client = ClientEngine(driver, self.codec, "pulsar://broker:6650", **options)
        with driver.enter():
            driver.attach(client)
        return client

    def ping(self, client: ClientEngine) -> Any:
        with client.driver.enter():
            return run_steps(client.ping_steps(client.deadline()))

    def kinds(self) -> list[int]:
        return [event[0] for event in self.seen]


def test_the_handshake_tells_limits(codec: Any) -> None:
    flags = {"supports_topic_watchers": True}
    broker = Broker(codec, (3, "CommandConnected", {**CONNECTED, "max_message_size": 999, "feature_flags": flags}))
    client = broker.client()
    assert broker.world.result(broker.ping(client)) == "test"
    [connection] = client._pool.values()
    assert (connection.max_message_size, connection.protocol_version) == (999, 21)
    assert connection.features == {"supports_topic_watchers": True}
    assert client.diagnose()["connections"][0]["state"] == "ready"


def test_one_attempt_serves_all_who_wait(codec: Any) -> None:
    broker = Broker(codec, (3, "CommandConnected", CONNECTED))
    client = broker.client()
    slots = [broker.ping(client) for _ in range(3)]
    assert [broker.world.result(slot) for slot in slots] == ["test"] * 3
    assert broker.kinds() == [2]


def test_a_refusal_is_an_error_at_once(codec: Any) -> None:
    refusal = {"request_id": 2**64 - 1, "error": ServerError.AuthenticationError, "message": "who are you"}
    broker = Broker(codec, (14, "CommandError", refusal))
    with pytest.raises(BrokerError, match="who are you"):
        broker.world.result(broker.ping(broker.client()))
    assert broker.world.mono < 1001


def test_a_silent_broker_ends_at_the_connect_timeout(codec: Any) -> None:
    broker = Broker(codec)
    client = broker.client(connect_timeout=3)
    with pytest.raises(LinkError, match="handshake"):
        broker.world.result(broker.ping(client))
    assert broker.world.mono == pytest.approx(1003)
    assert client._pool == {}


def test_keep_alive(codec: Any) -> None:
    broker = Broker(codec, (3, "CommandConnected", CONNECTED))
    client = broker.client(keep_alive=30)
    broker.world.result(broker.ping(client))
    [connection] = client._pool.values()
    broker.world.advance(31)
    assert broker.kinds() == [2, 18]
    broker.script.wire.send(codec.pulsar.PONG_FRAME)
    broker.script.wire.send(codec.pulsar.PING_FRAME)
    broker.world.advance(30)
    assert broker.kinds() == [2, 18, 19, 18]
    broker.world.advance(30)
    assert not connection.usable
    assert "PING" in str(connection.error)


def test_the_broker_asks_for_credentials_again(codec: Any) -> None:
    broker = Broker(codec, (3, "CommandConnected", CONNECTED))
    values = iter(["one", "two"])
    client = broker.client(auth=token(lambda: next(values)))
    broker.world.result(broker.ping(client))
    challenge = {"challenge": {"auth_method_name": "token", "auth_data": b"PulsarAuthRefresh"}}
    broker.send(36, "CommandAuthChallenge", challenge)
    broker.world.run()
    answers = [_schema.read_command(event[0], event[1]) for event in broker.seen if event[0] in (2, 37)]
    assert answers[0].auth_data == b"one"
    assert (answers[1].response.auth_data, answers[1].response.auth_method_name) == (b"two", "token")


def test_endless_challenges_end(codec: Any) -> None:
    challenge = (36, "CommandAuthChallenge", {"challenge": {"auth_method_name": "token", "auth_data": b"?"}})
    broker = Broker(codec, *[challenge] * 50)
    with pytest.raises(ProtocolError, match="again and again"):
        broker.world.result(broker.ping(broker.client(auth=token("t"))))


def test_a_supplier_that_fails_names_itself(codec: Any) -> None:
    def supply() -> str:
        raise RuntimeError("no vault")

    broker = Broker(codec, (3, "CommandConnected", CONNECTED))
    with pytest.raises(LinkError, match="no vault"):
        broker.world.result(broker.ping(broker.client(auth=token(supply))))


def test_what_waits_fails_with_the_connection(codec: Any) -> None:
    broker = Broker(codec, (3, "CommandConnected", CONNECTED))
    client = broker.client()
    broker.world.result(broker.ping(client))
    [connection] = client._pool.values()
    with client.driver.enter():
        slot = run_steps(client.partitions_steps(topic("t"), client.deadline()))
    broker.world.run()
    broker.script.wire.lose(ConnectionResetError("reset"))
    with pytest.raises(LinkError, match="reset") as caught:
        broker.world.result(slot)
    assert caught.value.outcome_unknown
    assert connection.when_ready().error is connection.error


def topic(name: str) -> Any:
    from mqclient.pulsar.names import TopicName

    return TopicName.parse(name)


def test_strays_and_unknown_commands_are_passed_over(codec: Any) -> None:
    broker = Broker(codec, (3, "CommandConnected", CONNECTED))
    client = broker.client()
    broker.world.result(broker.ping(client))
    [connection] = client._pool.values()
    stored = (
        codec.pulsar.FrameReader()
        .feed(codec.pulsar.encode_send(1, 0, codec.pulsar.encode_metadata("p", 0, 1), b"x"))[0][-1]
        .stored
    )
    broker.script.wire.send(codec.pulsar.encode_message(5, 1, 1, stored))
    broker.script.wire.send(codec.pulsar.encode_receipt(5, 0, 1, 1))
    broker.script.wire.send(codec.pulsar.encode_command(99, b"anything"))
    broker.send(8, "CommandSendError", {"producer_id": 5, "sequence_id": 0, "error": 0, "message": ""})
    broker.send(16, "CommandCloseConsumer", {"consumer_id": 5, "request_id": 2**64 - 1})
    broker.send(15, "CommandCloseProducer", {"producer_id": 5, "request_id": 2**64 - 1})
    broker.send(31, "CommandActiveConsumerChange", {"consumer_id": 5, "is_active": True})
    broker.send(13, "CommandSuccess", {"request_id": 12345})
    broker.world.run()
    assert connection.ready
    assert (connection.strays, connection.link.inflight.late) == (2, 1)


def test_bad_bytes_end_the_connection(codec: Any) -> None:
    broker = Broker(codec, (3, "CommandConnected", CONNECTED))
    client = broker.client()
    broker.world.result(broker.ping(client))
    [connection] = client._pool.values()
    broker.script.wire.send(codec.pulsar.encode_command(13, b"\xff\xff\xff"))
    broker.world.run()
    assert isinstance(connection.error, ProtocolError)
    broker.answers.append((3, "CommandConnected", CONNECTED))
    assert broker.world.result(broker.ping(client)) == "test"
    broker.script.wire.send(b"\xff" * 20)
    broker.world.run()
    assert client._pool == {}


def test_a_closed_client_connects_no_more(codec: Any) -> None:
    broker = Broker(codec, (3, "CommandConnected", CONNECTED))
    client = broker.client()
    broker.world.result(broker.ping(client))
    [connection] = client._pool.values()
    with client.driver.enter():
        slot = run_steps(client.close_steps())
    broker.world.result(slot)
    assert isinstance(connection.error, MQError)
    with pytest.raises(MQError, match="closed"):
        broker.world.result(broker.ping(client))
