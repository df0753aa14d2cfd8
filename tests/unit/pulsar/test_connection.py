"""One connection against a scripted broker: handshake, keep-alive, challenges, errors, strays."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient import _schema
from mqclient.core.driver import Address
from mqclient.core.steps import run_steps
from mqclient.errors import DeadlineError, LinkError, MQError, ProtocolError
from mqclient.pulsar import requests
from mqclient.pulsar.auth import token
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.codes import BrokerError, ServerError
from mqclient.pulsar.connection import Connection
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


def test_a_broker_that_cannot_be_reached_ends_at_the_connect_timeout(codec: Any) -> None:
    broker = Broker(codec, (3, "CommandConnected", CONNECTED))
    broker.world.latency = 60  # nothing arrives, not even the first packet
    client = broker.client(connect_timeout=3)
    with pytest.raises(LinkError, match=r"could not connect to broker:6650 .* no connection in time"):
        broker.world.result(broker.ping(client))
    assert broker.world.mono == pytest.approx(1003)
    assert client._pool == {}


GREEN = (("green", 6650),)


class Member:
    """A producer, consumer or watcher that keeps what its connection tells it."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def on_lost(self, connection: Connection, cause: MQError) -> None:
        self.heard.append(("lost", cause))

    def on_watcher_lost(self) -> None:
        self.heard.append(("watcher lost",))

    def on_closed_by_broker(self, connection: Connection, broker_url: str | None) -> None:
        self.heard.append(("closed", broker_url))

    def on_migrated(self, connection: Connection, cluster: Any) -> None:
        self.heard.append(("migrated", cluster.hosts))

    def on_receipts(self, events: Any, at: int) -> int:
        self.heard.append(("receipt", len(events) - at))
        return 1

    def on_send_error(self, sequence_id: int, error: MQError) -> None:
        self.heard.append(("refused", sequence_id, error))

    def on_entries(self, entries: list[Any]) -> None:
        self.heard.append(("entries", [entry.entry for entry in entries]))

    def on_active(self, active: bool) -> None:
        self.heard.append(("active", active))

    def on_end_of_topic(self) -> None:
        self.heard.append(("end",))

    def on_topics_changed(self) -> None:
        self.heard.append(("topics",))


class House:
    """A connection that is ready, where two producers, two consumers and a watcher live."""

    def __init__(self, codec: Any) -> None:
        self.broker = Broker(codec, (3, "CommandConnected", CONNECTED))
        self.client = self.broker.client()
        self.broker.world.result(self.broker.ping(self.client))
        [self.connection] = self.client._pool.values()
        self.producers, self.consumers, self.watcher = (Member(), Member()), (Member(), Member()), Member()
        self.connection.producers.update(enumerate(self.producers))
        self.connection.consumers.update(enumerate(self.consumers))
        self.connection.watchers[7] = self.watcher
        self.members = [*self.producers, *self.consumers, self.watcher]

    def send(self, kind: int, name: str, **fields: Any) -> list[list[tuple[Any, ...]]]:
        """The broker says something; what each member heard of it."""
        return self.heard(lambda: self.broker.send(kind, name, fields))

    def heard(self, cause: Any) -> list[list[tuple[Any, ...]]]:
        for member in self.members:
            member.heard = []
        cause()
        self.broker.world.run()
        return [member.heard for member in self.members]


@pytest.fixture(name="house")
def house_fixture(codec: Any) -> House:
    return House(codec)


def test_what_the_broker_says_to_a_member_is_told_to_it_and_to_no_other(house: House) -> None:
    assert house.send(31, "CommandActiveConsumerChange", consumer_id=1, is_active=True)[3] == [("active", True)]
    assert house.send(27, "CommandReachedEndOfTopic", consumer_id=1) == [[], [], [], [("end",)], []]
    update = {"new_topics": ["t-new"], "deleted_topics": [], "topics_hash": "x"}
    assert house.send(66, "CommandWatchTopicUpdate", watcher_id=7, **update) == [[], [], [], [], [("topics",)]]
    assert house.send(66, "CommandWatchTopicUpdate", watcher_id=8, **update) == [[]] * 5
    refusal = {"producer_id": 1, "sequence_id": 5, "error": ServerError.ChecksumError, "message": "torn"}
    _, [(what, sequence_id, error)], *others = house.send(8, "CommandSendError", **refusal)
    assert (what, sequence_id, error.code, others) == ("refused", 5, ServerError.ChecksumError, [[]] * 3)
    assert "torn" in str(error)
    assert house.connection.ready


def test_a_member_that_the_broker_closes_lives_here_no_more(house: House) -> None:
    there = "pulsar://elsewhere:6650"
    closed = house.send(16, "CommandCloseConsumer", consumer_id=1, request_id=9, assignedBrokerServiceUrl=there)
    assert closed == [[], [], [], [("closed", there)], []]
    assert list(house.connection.consumers) == [0]
    assert house.send(15, "CommandCloseProducer", producer_id=0, request_id=10) == [[("closed", None)], [], [], [], []]
    assert list(house.connection.producers) == [1]


def test_a_topic_in_another_cluster_is_told_to_whom_it_concerns(house: House) -> None:
    green = {"brokerServiceUrl": "pulsar://green:6650"}
    told = house.send(68, "CommandTopicMigrated", resource_id=1, resource_type=0, **green)
    assert told == [[], [("migrated", GREEN)], [], [], []]
    told = house.send(68, "CommandTopicMigrated", resource_id=0, resource_type=1, **green)
    assert told == [[], [], [("migrated", GREEN)], [], []]
    assert house.send(68, "CommandTopicMigrated", resource_id=5, resource_type=1, **green) == [[]] * 5
    house.send(68, "CommandTopicMigrated", resource_id=0, resource_type=1, brokerServiceUrl="http://green")
    assert isinstance(house.connection.error, ProtocolError)
    assert "no usable cluster" in str(house.connection.error)


def test_messages_and_receipts_go_to_their_members(codec: Any, house: House) -> None:
    pulsar = codec.pulsar
    sent = pulsar.encode_send(1, 0, pulsar.encode_metadata("p", 0, 1), b"x")
    stored = pulsar.FrameReader().feed(sent)[0][-1].stored
    frames = [pulsar.encode_message(0, 1, entry, stored) for entry in range(3)]
    frames += [pulsar.encode_receipt(1, 0, 1, 1), pulsar.encode_message(1, 1, 9, stored)]
    heard = house.heard(lambda: house.broker.script.wire.send(b"".join(frames)))
    assert heard == [[], [("receipt", 2)], [("entries", [0, 1, 2])], [("entries", [9])], []]
    assert house.connection.strays == 0


def test_a_connection_that_breaks_tells_all_who_live_on_it_once(house: House) -> None:
    lost = house.heard(lambda: house.broker.script.wire.lose(ConnectionResetError("reset")))
    error = house.connection.error
    assert lost == [[("lost", error)]] * 4 + [[("watcher lost",)]]
    assert "reset" in str(error)

    def close() -> None:
        with house.client.driver.enter():
            house.connection.close()

    assert house.heard(close) == [[]] * 5
    assert house.connection.error is error


def test_who_stands_in_line_is_waited_for_beyond_the_deadline(house: House) -> None:
    """A producer that wants exclusive access: a first answer says that it waits, another one that it has it."""
    command = requests.producer("t", 3, name=None, user_provided=False, epoch=0, metadata={}, access=2)
    deadline = house.broker.world.mono + 2
    with house.client.driver.enter():
        slots = [house.connection.request(command, deadline) for _ in range(3)]
    house.broker.world.run()
    first, second, _ = [_schema.read_command(*event).request_id for event in house.broker.seen[1:]]
    answer: dict[str, Any] = {"producer_name": "p"}
    house.send(17, "CommandProducerSuccess", request_id=first, producer_ready=False, **answer)
    refusal = {"error": ServerError.ProducerFenced, "message": "somebody was before you"}
    house.send(14, "CommandError", request_id=second, **refusal)
    house.broker.world.advance(30)
    assert [slot.done for slot in slots] == [False, True, True]
    assert isinstance(slots[1].error, BrokerError)
    assert "somebody was before you" in str(slots[1].error)
    assert isinstance(slots[2].error, DeadlineError)
    house.send(17, "CommandProducerSuccess", request_id=first, producer_ready=True, **answer)
    assert slots[0].result().producer_name == "p"
    assert house.connection.ready


def test_what_nobody_answers_is_written_while_there_is_a_connection(house: House) -> None:
    tell = requests.close_consumer(5)
    with house.client.driver.enter():
        house.connection.tell(tell)
        house.connection.write(house.broker.codec.pulsar.PING_FRAME, house.broker.codec.pulsar.PONG_FRAME)
    house.broker.world.run()
    assert house.broker.kinds() == [2, 16, 18, 19]
    assert _schema.read_command(*house.broker.seen[1]).consumer_id == 5
    house.broker.script.wire.lose()
    house.broker.world.run()
    with house.client.driver.enter():
        house.connection.tell(tell)
    house.broker.world.run()
    assert house.broker.kinds() == [2, 16, 18, 19]


def test_nothing_is_told_before_there_is_a_connection(codec: Any) -> None:
    broker = Broker(codec, (3, "CommandConnected", CONNECTED))
    client = broker.client()
    slot = broker.ping(client)
    [connection] = client._pool.values()
    with client.driver.enter():
        connection.tell(requests.close_consumer(5))
    assert broker.world.result(slot) == "test"
    assert broker.kinds() == [2]


def test_the_broker_behind_a_proxy_is_named_in_the_handshake(codec: Any) -> None:
    broker = Broker(codec, *[(3, "CommandConnected", CONNECTED)] * 2)
    client = broker.client()
    address = Address("broker", 6650, "test")
    made = []
    for behind in (None, "inner:6650"):
        with client.driver.enter():
            slot = run_steps(client.connection_steps(address, behind, client.deadline()))
        made.append(broker.world.result(slot))
    assert [connection.proxy for connection in made] == [None, address]
    asked = [_schema.read_command(*event).proxy_to_broker_url for event in broker.seen]
    assert asked == ["", "inner:6650"]


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
