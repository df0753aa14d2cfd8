"""What the Pulsar broker has told is there again after a crash: entries, topics, cursors, schemas, policies."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mqclient import pulsar
from mqclient.broker import EmbeddedBroker
from mqclient.broker.pulsar.door import PulsarDoor
from mqclient.broker.pulsar.topics import Topics
from tests.support.crash import crashed


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
