"""The official client from PyPI cannot tell the embedded broker from the real one, in what it implements.

The extra `peers` brings it; where it has no wheels they are skipped, and say so.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.broker.pulsar.auth import make_token
from mqclient.pulsar import sync
from tests.support import certificates

pulsar: Any = pytest.importorskip(
    "pulsar", reason="the official pulsar-client is not installed: extra `peers`", exc_type=ImportError
)
pulsar_schema: Any = pytest.importorskip("pulsar.schema", reason="it comes with pulsar-client")
Record, Integer, String = pulsar_schema.Record, pulsar_schema.Integer, pulsar_schema.String


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(doors=["pulsar"], impl="pure") as broker:
        yield broker


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[Any]:
    client = pulsar.Client(broker.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    yield client
    with suppress(pulsar.AlreadyClosed):  # it says so when the broker has closed a producer of it before
        client.close()


def bodies(consumer: Any, count: int) -> list[bytes]:
    return [consumer.receive(3000).data() for _ in range(count)]


def nothing_comes(consumer: Any) -> bool:
    try:
        consumer.receive(200)
    except pulsar.Timeout:
        return True
    return False


@pytest.mark.parametrize("batching", [False, True])
def test_produce_and_consume(client: Any, batching: bool) -> None:
    consumer = client.subscribe("orders", "billing")
    producer = client.create_producer(
        "orders", batching_enabled=batching, batching_max_publish_delay_ms=5, block_if_queue_full=True
    )
    sent = producer.send(b"one", partition_key="k", properties={"a": "b"}, ordering_key="o", event_timestamp=5)
    message = consumer.receive(3000)
    assert (message.data(), message.partition_key(), message.properties()) == (b"one", "k", {"a": "b"})
    assert (message.ordering_key(), message.event_timestamp()) == ("o", 5)
    assert (message.message_id().ledger_id(), message.message_id().entry_id()) == (sent.ledger_id(), sent.entry_id())
    for number in range(3000):
        producer.send_async(b"%d" % number, None)
    producer.flush()
    assert bodies(consumer, 3000) == [b"%d" % number for number in range(3000)]


@pytest.mark.parametrize("kind", ["Exclusive", "Shared", "Failover", "KeyShared"])
def test_what_is_acknowledged_does_not_come_again(client: Any, kind: str) -> None:
    consumer = client.subscribe("orders", "billing", consumer_type=getattr(pulsar.ConsumerType, kind))
    producer = client.create_producer("orders")
    for body in (b"a", b"b", b"c"):
        producer.send(body)
    messages = [consumer.receive(3000) for _ in range(3)]
    consumer.acknowledge(messages[1])
    consumer.close()
    consumer = client.subscribe("orders", "billing", consumer_type=getattr(pulsar.ConsumerType, kind))
    assert bodies(consumer, 2) == [b"a", b"c"]
    assert nothing_comes(consumer)


def test_a_part_of_a_batch_is_acknowledged(client: Any) -> None:
    options = {"consumer_type": pulsar.ConsumerType.Shared, "batch_index_ack_enabled": True}
    consumer = client.subscribe("orders", "billing", **options)
    producer = client.create_producer("orders", batching_enabled=True, batching_max_publish_delay_ms=100)
    for number in range(10):
        producer.send_async(b"%d" % number, None)
    producer.flush()
    for message in [consumer.receive(3000) for _ in range(10)][::2]:
        consumer.acknowledge(message)
    consumer.close()
    consumer = client.subscribe("orders", "billing", **options)
    assert bodies(consumer, 5) == [b"1", b"3", b"5", b"7", b"9"]
    assert nothing_comes(consumer)


def test_cumulative_acknowledgement(client: Any) -> None:
    consumer = client.subscribe("orders", "billing")
    producer = client.create_producer("orders")
    for number in range(10):
        producer.send(b"%d" % number)
    messages = [consumer.receive(3000) for _ in range(10)]
    consumer.acknowledge_cumulative(messages[7])
    consumer.close()
    assert bodies(client.subscribe("orders", "billing"), 2) == [b"8", b"9"]


def test_redelivery_is_counted(client: Any) -> None:
    consumer = client.subscribe(
        "orders", "billing", consumer_type=pulsar.ConsumerType.Shared, negative_ack_redelivery_delay_ms=100
    )
    producer = client.create_producer("orders")
    producer.send(b"again")
    for count in range(3):
        message = consumer.receive(3000)
        assert (message.data(), message.redelivery_count()) == (b"again", count)
        consumer.negative_acknowledge(message)
    consumer.redeliver_unacknowledged_messages()
    assert consumer.receive(3000).data() == b"again"


def test_a_small_queue_gets_everything(client: Any) -> None:
    """Permits are counted in messages: with a window of 3 and entries of 50 the account dips and comes back."""
    consumer = client.subscribe("orders", "billing", receiver_queue_size=3)
    producer = client.create_producer("orders", batching_enabled=True, batching_max_messages=50)
    for number in range(1000):
        producer.send_async(b"%d" % number, None)
    producer.flush()
    assert bodies(consumer, 1000) == [b"%d" % number for number in range(1000)]


def test_one_at_a_time(client: Any) -> None:
    consumer = client.subscribe("orders", "billing", receiver_queue_size=0)
    producer = client.create_producer("orders")
    for number in range(10):
        producer.send(b"%d" % number)
    assert [consumer.receive().data() for _ in range(10)] == [b"%d" % number for number in range(10)]


def test_readers_and_seek(client: Any) -> None:
    producer = client.create_producer("orders")
    ids = [producer.send(b"%d" % number) for number in range(10)]
    reader = client.create_reader("orders", pulsar.MessageId.earliest)
    read = []
    while reader.has_message_available():
        read.append(reader.read_next(3000).data())
    assert read == [b"%d" % number for number in range(10)]
    reader.seek(ids[4])
    assert reader.read_next(3000).data() == b"5"
    reader.seek(1000)  # a time long ago
    assert reader.read_next(3000).data() == b"0"
    consumer = client.subscribe("orders", "billing")
    consumer.seek(pulsar.MessageId.earliest)
    assert bodies(consumer, 10) == [b"%d" % number for number in range(10)]
    assert consumer.get_last_message_id().entry_id() == ids[-1].entry_id()


def test_refusals(client: Any) -> None:
    client.subscribe("orders", "billing")
    with pytest.raises(pulsar.ConsumerBusy):
        client.subscribe("orders", "billing")
    with pytest.raises(pulsar.ConsumerBusy):
        client.subscribe("orders", "billing", consumer_type=pulsar.ConsumerType.Shared)
    client.create_producer("orders", producer_name="mine")
    with pytest.raises(pulsar.ProducerBusy):
        client.create_producer("orders", producer_name="mine")
    with pytest.raises(pulsar.TopicNotFound):
        client.create_producer("persistent://nobody/there/orders")


def test_failover_tells_who_is_active(client: Any) -> None:
    first = client.subscribe("orders", "billing", consumer_type=pulsar.ConsumerType.Failover, consumer_name="a")
    second = client.subscribe("orders", "billing", consumer_type=pulsar.ConsumerType.Failover, consumer_name="b")
    producer = client.create_producer("orders")
    producer.send(b"1")
    first.acknowledge(first.receive(3000))
    assert nothing_comes(second)
    first.close()
    producer.send(b"2")
    assert second.receive(3000).data() == b"2"


def test_an_unloaded_topic_is_found_again(broker: EmbeddedBroker, client: Any) -> None:
    consumer = client.subscribe("orders", "billing")
    producer = client.create_producer("orders")
    producer.send(b"before")
    consumer.acknowledge(consumer.receive(3000))
    time.sleep(0.2)  # the official client groups acknowledgements for 0.1 s
    door: Any = broker._doors[0]
    broker.control.call(door.unload, "orders")
    producer.send(b"after")
    assert consumer.receive(3000).data() == b"after"


def test_unsubscribe(client: Any) -> None:
    consumer = client.subscribe("orders", "billing")
    client.create_producer("orders").send(b"1")
    consumer.unsubscribe()
    assert nothing_comes(client.subscribe("orders", "billing"))


@pytest.mark.parametrize("compression", ["NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"])
def test_theirs_is_read_by_ours(broker: EmbeddedBroker, client: Any, compression: str) -> None:
    with sync.Client(broker.pulsar_url, impl="pure") as ours, ours.consumer("orders", "ours") as consumer:
        kind = getattr(pulsar.CompressionType, compression)
        producer = client.create_producer("orders", compression_type=kind, batching_enabled=True)
        for number in range(100):
            producer.send_async(b"%d" % number * 100, None, partition_key=str(number), properties={"n": str(number)})
        producer.flush()
        messages: list[Any] = []
        while len(messages) < 100:
            messages += consumer.receive_many(100, timeout=5)
        assert [message.body for message in messages] == [b"%d" % number * 100 for number in range(100)]
        assert [(message.key, message.properties) for message in messages] == [
            (str(number), {"n": str(number)}) for number in range(100)
        ]


@pytest.mark.parametrize("batching", [False, True])
def test_ours_is_read_by_theirs(broker: EmbeddedBroker, client: Any, batching: bool) -> None:
    consumer = client.subscribe("orders", "theirs")
    with sync.Client(broker.pulsar_url, impl="pure") as ours, ours.producer("orders", batching=batching) as producer:
        ids = producer.send_many([(b"%d" % number, str(number), {"n": "x"}, 7, b"o") for number in range(100)])
        for number in range(100):
            message = consumer.receive(3000)
            assert (message.data(), message.partition_key()) == (b"%d" % number, str(number))
            assert (message.properties(), message.ordering_key(), message.event_timestamp()) == ({"n": "x"}, "o", 7)
            theirs = message.message_id()
            assert ids[number].to_bytes() == theirs.serialize()
            assert type(ids[number]).from_bytes(theirs.serialize()) == ids[number]


def rest(broker: EmbeddedBroker, method: str, path: str, body: object) -> None:
    data, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{broker.pulsar_rest}/admin/v2/{path}", data, headers, method=method)
    urllib.request.urlopen(request, timeout=10).close()


def test_partitions(broker: EmbeddedBroker, client: Any) -> None:
    rest(broker, "PUT", "persistent/public/default/parts/partitions", 3)
    consumer = client.subscribe("parts", "billing")
    producer = client.create_producer("parts", message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution)
    sent = [producer.send(b"%d" % number) for number in range(9)]
    assert {message_id.partition() for message_id in sent} == {0, 1, 2}
    assert sorted(bodies(consumer, 9)) == [b"%d" % number for number in range(9)]
    assert client.get_topic_partitions("parts") == [
        f"persistent://public/default/parts-partition-{index}" for index in range(3)
    ]


def test_an_http_service_url(broker: EmbeddedBroker) -> None:
    client = pulsar.Client(broker.pulsar_rest, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        rest(broker, "PUT", "persistent/public/default/parts/partitions", 2)
        consumer = client.subscribe("parts", "billing")
        client.create_producer("parts").send(b"1")
        assert bodies(consumer, 1) == [b"1"]
    finally:
        client.close()


def test_a_topic_of_ones_own(client: Any) -> None:
    first = client.create_producer("orders", access_mode=pulsar.ProducerAccessMode.Exclusive)
    with pytest.raises(pulsar.ProducerFenced):
        client.create_producer("orders", access_mode=pulsar.ProducerAccessMode.Exclusive)
    with pytest.raises(pulsar.ProducerBusy):
        client.create_producer("orders")
    second = client.create_producer("orders", access_mode=pulsar.ProducerAccessMode.ExclusiveWithFencing)
    second.send(b"mine")
    with pytest.raises((pulsar.ProducerFenced, pulsar.AlreadyClosed)):
        first.send(b"not mine")


def test_duplicates(broker: EmbeddedBroker, client: Any) -> None:
    rest(broker, "POST", "namespaces/public/default/deduplication", True)
    consumer = client.subscribe("orders", "billing")
    producer = client.create_producer("orders", producer_name="dd", batching_enabled=False)
    assert [producer.send(b"x", sequence_id=number).entry_id() for number in (5, 5, 6)] == [0, -1, 1]
    producer.close()
    assert client.create_producer("orders", producer_name="dd").last_sequence_id() == 6
    assert len(bodies(consumer, 2)) == 2
    assert nothing_comes(consumer)


def test_delayed_delivery(client: Any) -> None:
    consumer = client.subscribe("orders", "billing", consumer_type=pulsar.ConsumerType.Shared)
    began = time.monotonic()
    client.create_producer("orders").send(b"later", deliver_after=timedelta(milliseconds=500))
    assert bodies(consumer, 1) == [b"later"]
    assert time.monotonic() - began >= 0.5


def test_compaction(broker: EmbeddedBroker, client: Any) -> None:
    producer = client.create_producer("orders", batching_enabled=True)
    for number in range(10):
        producer.send_async(b"v%d" % number, None, partition_key=f"k{number % 3}")
    producer.flush()
    producer.send(b"", partition_key="k1")
    rest(broker, "PUT", "persistent/public/default/orders/compaction", None)
    reader = client.create_reader("orders", pulsar.MessageId.earliest, is_read_compacted=True)
    found = {}
    while reader.has_message_available():
        message = reader.read_next(3000)
        if message.data():  # the official client delivers what compaction emptied
            found[message.partition_key()] = message.data()
    assert found == {"k2": b"v8", "k0": b"v9"}


def test_a_terminated_topic(broker: EmbeddedBroker, client: Any) -> None:
    producer = client.create_producer("orders")
    producer.send(b"1")
    rest(broker, "POST", "persistent/public/default/orders/terminate", None)
    with pytest.raises((pulsar.TopicTerminated, pulsar.AlreadyClosed)):
        producer.send(b"2")


class Order(Record):  # type: ignore[misc, valid-type]
    number = Integer()
    customer = String()


class Bigger(Record):  # type: ignore[misc, valid-type]
    number = Integer()
    customer = String()
    note = String(default="", required_default=True)


class Other(Record):  # type: ignore[misc, valid-type]
    number = String()


@pytest.mark.parametrize("kind", ["JsonSchema", "AvroSchema"])
def test_schemas(client: Any, kind: str) -> None:
    if kind == "AvroSchema":
        pytest.importorskip("fastavro", reason="pulsar-client writes Avro by fastavro: pip install pulsar-client[avro]")
    made = getattr(pulsar_schema, kind)
    consumer = client.subscribe("orders", "billing", schema=made(Bigger))
    client.create_producer("orders", schema=made(Order)).send(Order(number=1, customer="c"))
    client.create_producer("orders", schema=made(Bigger)).send(Bigger(number=2, customer="d", note="n"))
    first, second = consumer.receive(3000), consumer.receive(3000)
    assert (first.value().number, second.value().note) == (1, "n")
    with pytest.raises(pulsar.IncompatibleSchema):
        client.create_producer("orders", schema=made(Other))
    with pytest.raises(pulsar.IncompatibleSchema):
        client.subscribe("orders", "other", schema=made(Other))


def test_tls_and_credentials(tmp_path: Path) -> None:
    made = certificates.make(tmp_path)
    settings: dict[str, Any] = {
        "tlsCertificateFilePath": made.certificate,
        "tlsKeyFilePath": made.key,
        "tlsTrustCertsFilePath": made.authority,
        "tokenSecretKey": b"0123456789abcdef",
        "pulsar_basic": {"user": "secret"},
        "pulsar_tls_roles": True,
        "authenticationRefreshCheckSeconds": 0.2,
    }

    def token() -> str:
        return make_token(b"0123456789abcdef", "me", time.time() + 0.3).decode()

    with EmbeddedBroker(doors=["pulsar"], impl="pure", **settings) as broker:
        ways = [
            pulsar.AuthenticationToken(token),
            pulsar.AuthenticationBasic("user", "secret"),
            pulsar.AuthenticationTLS(made.certificate, made.key),
        ]
        for authentication in ways:
            client = pulsar.Client(
                broker.pulsar_tls_url,
                authentication=authentication,
                tls_trust_certs_file_path=made.authority,
                tls_validate_hostname=True,
                logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
            )
            producer = client.create_producer("orders")
            before = broker.control.count("CONNECT")
            producer.send(b"1")
            if authentication is ways[0]:
                deadline = time.monotonic() + 20
                while broker.control.count("AUTH_RESPONSE") < 2 and time.monotonic() < deadline:
                    time.sleep(0.02)
                assert broker.control.count("AUTH_RESPONSE") >= 2
                producer.send(b"after the refresh")
            assert broker.control.count("CONNECT") == before
            client.close()
