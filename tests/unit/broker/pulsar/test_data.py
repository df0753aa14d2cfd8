"""What the Pulsar broker has told is there again after a crash: all that a data folder keeps of it."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mqclient import pulsar
from mqclient.broker import EmbeddedBroker
from mqclient.broker.data import Data
from mqclient.broker.pulsar.door import PulsarDoor
from mqclient.broker.pulsar.topics import Topics
from tests.differential.raw_pulsar import RawPulsar
from tests.support.crash import crashed

COMMIT, ABORT = 0, 1
T = "persistent/public/default/orders"


class Run:
    """A broker on a folder, and a client of it."""

    def __init__(self, codec: Any, folder: Path, stack: ExitStack) -> None:
        self.broker = stack.enter_context(EmbeddedBroker(doors=["pulsar"], impl=codec, data=folder))
        self.client = stack.enter_context(pulsar.Client(self.broker.pulsar_url))

    @property
    def topics(self) -> Topics:
        (door,) = self.broker._doors
        assert isinstance(door, PulsarDoor)
        return door.topics

    def rest(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(f"{self.broker.pulsar_rest}/admin/v2/{path}", method=method)
        request.add_header("Content-Type", "application/json")
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(request, data, timeout=10) as answer:
            text = answer.read()
        return json.loads(text) if text else None


@pytest.fixture
def start(codec: Any, tmp_path: Path) -> Iterator[Callable[[], Run]]:
    """The first call starts a broker on a new folder, each later one on what a crash of the one before left."""
    runs: list[Run] = []
    with ExitStack() as stack:

        def run() -> Run:
            folder = tmp_path / f"run-{len(runs)}"
            if runs:
                crashed(runs[-1].broker, folder)
            runs.append(Run(codec, folder, stack))
            return runs[-1]

        yield run


def test_entries_and_their_ids(start: Callable[[], Run]) -> None:
    run = start()
    with run.client.producer("orders") as producer:
        ids = [producer.send(b"%d" % number, key="k") for number in range(3)]
    run = start()
    with run.client.producer("orders") as producer:
        ids.append(producer.send(b"3"))
        other = run.client.producer("others").send(b"x")
    with run.client.reader("orders", start=pulsar.EARLIEST) as reader:
        messages = [reader.receive(10) for _ in range(4)]
    assert [message.body for message in messages] == [b"0", b"1", b"2", b"3"]
    assert [message.message_id for message in messages] == ids
    assert other.ledger != ids[0].ledger
    topic = run.topics.make("orders")
    assert (topic.messages_in, topic.end) == (4, 4)


@pytest.mark.parametrize("kind", ["shared", "exclusive"])
def test_cursors(start: Callable[[], Run], kind: str) -> None:
    run = start()
    with (
        run.client.producer("orders", batch_max_messages=1) as producer,
        run.client.consumer("orders", "s", type=kind) as consumer,
    ):
        for number in range(6):
            producer.send(b"%d" % number)
        messages = [consumer.receive(10) for _ in range(6)]
        consumer.ack([messages[index] for index in (0, 1, 3)])
        run.client.reader("orders", start=pulsar.EARLIEST).close()
    run = start()
    assert list(run.topics.make("orders").subscriptions) == ["s"]
    with run.client.consumer("orders", "s", type=kind) as consumer:
        messages = [consumer.receive(10) for _ in range(3)]
        assert [message.body for message in messages] == [b"2", b"4", b"5"]
        consumer.ack(messages[0])
        consumer.ack(messages[1])
    run = start()
    assert run.topics.make("orders").subscriptions["s"].cursor.dump() == {"mark": 4, "above": [], "parts": []}
    with run.client.consumer("orders", "s", type=kind) as consumer:
        assert consumer.receive(10).body == b"5"
        consumer.unsubscribe()
    run = start()
    assert not run.topics.make("orders").subscriptions


def test_parts_of_a_batch(start: Callable[[], Run]) -> None:
    run = start()
    topic = run.topics.make("orders")
    cursor = topic.subscribe("s", 1).cursor
    cursor.ack_part(7, 100, (1 << 100) - 2)
    cursor.ack_part(8, 2, 0b01)
    for entry in (3, 4, 6):
        cursor.ack(entry)
    run.broker.control.move_clock(0)  # what was done from outside of the loop is written by the next who writes
    assert run.broker.house.save()
    run = start()
    again = run.topics.make("orders").subscriptions["s"].cursor
    assert (again.remaining(7, 100), again.remaining(8, 2), again.mark) == ((1 << 100) - 2, 1, -1)
    assert [entry for entry in range(10) if again.acked(entry)] == [3, 4, 6]


def test_what_administrators_decided(start: Callable[[], Run]) -> None:
    run = start()
    run.rest("PUT", "tenants/t", {"adminRoles": [], "allowedClusters": ["standalone"]})
    run.rest("PUT", "namespaces/t/n")
    run.rest("POST", "namespaces/t/n/deduplication", True)
    run.rest("PUT", "persistent/t/n/parted/partitions", 3)
    run.rest("PUT", "persistent/public/default/gone")
    with run.client.producer("gone") as producer:  # an open one would come again, and make it anew
        producer.send(b"x")
    run.rest("DELETE", "persistent/public/default/gone?force=true")
    with run.client.producer("closed") as producer:
        producer.send(b"last")
    run.rest("POST", "persistent/public/default/closed/terminate")
    schema = {"type": "JSON", "schema": '{"type":"record","name":"A","fields":[]}', "properties": {"a": "b"}}
    run.rest("POST", "schemas/public/default/closed/schema", schema)
    run = start()
    assert run.rest("GET", "namespaces/t/n/deduplication") is True
    assert run.rest("GET", "persistent/t/n/parted/partitions")["partitions"] == 3
    assert run.topics.get("gone") is None
    assert run.topics.make("closed").terminated
    assert run.rest("GET", "schemas/public/default/closed/schema")["properties"] == {"a": "b"}
    run.rest("DELETE", "namespaces/t/n/deduplication")
    run.rest("DELETE", "persistent/t/n/parted/partitions?force=true")
    run.rest("DELETE", "namespaces/t/n?force=true")
    run = start()
    assert run.rest("GET", "namespaces/t") == []
    assert run.topics.partitions == {}


def test_what_was_stored_is_known_after_a_crash(start: Callable[[], Run]) -> None:
    run = start()
    run.rest("POST", "namespaces/public/default/deduplication", True)
    with run.client.producer("orders", name="p") as producer:
        producer.send(b"x")
        last = run.topics.make("orders").dedup.last("p")
        names = {run.client.producer("orders").name for _ in range(2)}
    run = start()
    assert run.topics.make("orders").dedup.last("p") == last >= 0
    assert not names & {run.client.producer("orders").name for _ in range(2)}


def test_what_is_to_come_later(start: Callable[[], Run]) -> None:
    run = start()
    with run.client.consumer("orders", "s", type="shared"), run.client.producer("orders") as producer:
        producer.send(b"later", deliver_after=3600)
        producer.send(b"now")
    run = start()
    with run.client.consumer("orders", "s", type="shared") as consumer:
        assert consumer.receive(10).body == b"now"
        run.broker.control.move_clock(3700)
        assert consumer.receive(10).body == b"later"


# ---- transactions, views, parts


class Talk:
    """Commands on one run's broker."""

    def __init__(self, run: Run, codec: Any, stack: ExitStack) -> None:
        self.run = run
        self.raw = stack.enter_context(RawPulsar(codec.pulsar, run.broker.pulsar_url))
        self.sent = 0

    def begin(self, ttl: int = 3_600_000) -> tuple[int, int]:
        _, told = self.raw.ask("NEW_TXN", txn_ttl_millis=ttl, tc_id=0)
        txn = told.txnid_most_bits, told.txnid_least_bits
        self.ask(txn, "ADD_PARTITION_TO_TXN", partitions=["orders"])
        return txn

    def ask(self, txn: tuple[int, int], kind: str, **fields: Any) -> Any:
        _, told = self.raw.ask(kind, txnid_most_bits=txn[0], txnid_least_bits=txn[1], **fields)
        assert not told.HasField("error"), told
        return told

    def end(self, txn: tuple[int, int], action: int) -> None:
        self.ask(txn, "END_TXN", txn_action=action)

    def produce(self) -> None:
        assert self.raw.ask("PRODUCER", topic="orders", producer_id=1, txn_enabled=True)[0] == "PRODUCER_SUCCESS"

    def send(self, body: bytes, txn: tuple[int, int] | None = None) -> tuple[int, int]:
        codec = self.raw.codec
        self.sent += 1
        metadata = codec.encode_metadata("p", self.sent, 1, txn=txn)
        self.raw.write(codec.encode_send(1, self.sent, metadata, body, txn=txn))
        _, receipt = self.raw.until(lambda name, _: name == "SEND_RECEIPT")
        return receipt[2], receipt[3]

    def subscribe(self) -> None:
        fields = {"topic": "orders", "subscription": "s", "subType": 1, "consumer_id": 1, "initialPosition": 1}
        assert self.raw.ask("SUBSCRIBE", **fields)[0] == "SUCCESS"

    def ack(self, txn: tuple[int, int], *ids: tuple[int, int]) -> None:
        told = [{"ledgerId": ledger, "entryId": entry} for ledger, entry in ids]
        kind, fields = "ACK", {"consumer_id": 1, "ack_type": 0, "message_id": told}
        self.raw.ask(kind, **fields, txnid_most_bits=txn[0], txnid_least_bits=txn[1])

    def bodies(self, count: int) -> list[bytes]:
        """So many messages, and no more than those within a moment."""
        self.raw.write(self.raw.codec.encode_flow(1, 1000))
        found = [self.raw.until(lambda name, _: name == "MESSAGE")[1][0] for _ in range(count)]
        found += [event[0] for name, event in self.raw.quiet(0.1) if name == "MESSAGE"]
        return [bytes(entry.payload) for entry in found]


@pytest.fixture
def talk(codec: Any, start: Callable[[], Run]) -> Iterator[Callable[[], Talk]]:
    """As `start`, and speaking to it."""
    with ExitStack() as stack:
        yield lambda: Talk(start(), codec, stack)


def test_transactions_go_on(talk: Callable[[], Talk]) -> None:
    one = talk()
    one.subscribe()
    one.produce()
    plain = [one.send(b"%d" % number) for number in range(3)]
    going_on, aborted, given_up = one.begin(), one.begin(), one.begin()
    for txn in (going_on, given_up):
        one.ask(txn, "ADD_SUBSCRIPTION_TO_TXN", subscription=[{"topic": "orders", "subscription": "s"}])
    one.send(b"aborted", aborted)
    one.send(b"going on", going_on)
    one.send(b"given up", given_up)
    one.ack(going_on, plain[0])
    one.ack(given_up, plain[1])
    one.end(aborted, ABORT)

    two = talk()
    two.subscribe()
    assert two.bodies(1) == [b"2"], "the others are acknowledged by transactions, or sent by them"
    assert two.begin() not in (going_on, aborted, given_up)
    two.end(going_on, COMMIT)

    three = talk()
    three.produce()
    three.send(b"3")
    three.run.broker.control.move_clock(3601)  # those that nobody ended are aborted
    three.subscribe()
    assert three.bodies(4) == [b"1", b"2", b"going on", b"3"]
    topic = three.run.topics.make("orders")
    assert (len(three.run.topics.transactions.open), len(topic.txns.entries)) == (0, 0)


def test_up_to_an_entry_and_parts(talk: Callable[[], Talk]) -> None:
    one = talk()
    topic = one.run.topics.make("orders")
    one.produce()
    one.send(b"x")

    def acknowledge() -> None:
        pending = topic.subscribe("s", 0).pending_acks
        pending.add_up_to((0, 1), 5, 0b10, -1)
        pending.add((0, 1), 7, 0b101, 0b111)
        pending.add((0, 2), 7, 0b010, 0b010)
        pending.end((0, 2))
        topic.subscribe("reader", 0, durable=False).pending_acks.add((0, 1), 3, 1, 1)
        topic.subscribe("gone", 0).pending_acks.add((0, 1), 3, 1, 1)
        topic.subscriptions.pop("gone")
        topic.subscribe("gone", 0)

    one.run.broker.control.call(acknowledge)
    assert one.run.broker.house.save()
    two = talk()
    subscriptions = two.run.topics.make("orders").subscriptions
    assert set(subscriptions) == {"s", "gone"}
    assert not subscriptions["gone"].pending_acks
    pending = subscriptions["s"].pending_acks
    assert (pending.held(7), pending.end((0, 1)).up_to) == (0b101, (5, 0b10))


def test_a_topic_that_comes_again_has_nothing_of_the_one_before(talk: Callable[[], Talk]) -> None:
    one = talk()
    one.subscribe()
    one.produce()
    entry = one.send(b"x")
    aborted, left = one.begin(), one.begin()
    one.ask(left, "ADD_SUBSCRIPTION_TO_TXN", subscription=[{"topic": "orders", "subscription": "s"}])
    one.send(b"aborted", aborted)
    one.send(b"left", left)
    one.ack(left, entry)
    one.end(aborted, ABORT)
    one.run.rest("DELETE", f"{T}?force=true")
    one.raw.quiet(0.05)
    one.subscribe()
    one.produce()
    for number in range(4):
        one.send(b"%d" % number)
    two = talk()
    two.subscribe()
    assert two.bodies(4) == [b"0", b"1", b"2", b"3"]
    two.end(left, COMMIT)


def test_compacted_views(start: Callable[[], Run], codec: Any) -> None:
    run = start()
    with run.client.producer("orders", batch_max_messages=1) as producer:
        for number in range(20):
            producer.send(b"%d" % number, key=f"k{number % 3}")
    with run.client.producer("orders", batch_max_messages=3, linger=3600) as producer:
        producer.send_many([{"body": b"a", "key": key} for key in ("k0", "k1", "k9")])
        producer.flush()
    run.rest("PUT", f"{T}/compaction")
    while run.rest("GET", f"{T}/compaction")["status"] == "RUNNING":
        time.sleep(0.01)
    view = run.topics.make("orders").compacted
    assert view is not None
    run = start()
    again = run.topics.make("orders").compacted
    assert again is not None
    assert (again.horizon, again.entries) == (view.horizon, view.entries)
    assert run.rest("GET", f"{T}/compaction")["status"] == "SUCCESS"


def test_parts_of_a_message_stay_together(start: Callable[[], Run]) -> None:
    run = start()
    with run.client.producer("orders", batching=False, chunking=True, chunk_size=1000) as producer:
        producer.send(bytes(3500))
    chunks = dict(run.topics.make("orders").chunks)
    assert [last for _, last in chunks.values()] == [False, False, False, True]
    assert dict(start().topics.make("orders").chunks) == chunks


def test_topics_that_are_not_persistent_leave_nothing(start: Callable[[], Run]) -> None:
    run = start()
    name = "non-persistent://public/default/fleeting"
    with run.client.consumer(name, "s") as consumer, run.client.producer(name) as producer:
        producer.send(b"x" * 1000)
        assert consumer.receive(10).body == b"x" * 1000
    assert run.broker.house.data is not None
    data: Data = run.broker.house.data
    assert b"fleeting" not in b"".join(path.read_bytes() for path in data.folder.glob("*.mqdata"))
    data.file_size = 1
    run.client.producer("orders").close()  # a new file, which begins with all that is kept
    assert b"fleeting" not in b"".join(path.read_bytes() for path in data.folder.glob("*.mqdata"))
    assert start().topics.get(name) is None
