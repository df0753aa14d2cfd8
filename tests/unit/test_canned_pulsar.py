"""The canned Pulsar server of the comparison: it counts right, and a wrong count is no result."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from benchmarks.peers.pulsar import QUEUE, Server, canned
from mqclient import pulsar


@pytest.fixture(params=[100, 0], ids=["batches", "single"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with canned(request.param, 50) as made:
        yield made


def test_what_is_received_and_acknowledged_is_counted(server: Server) -> None:
    count = 3000
    server.ask(f"total {count}")
    with pulsar.Client(server.url) as client:
        consumer = client.consumer("t", "s", receiver_queue=QUEUE)
        for _ in range(count // 2):
            consumer.ack(consumer.receive(10))
        taken = count // 2
        while taken < count:
            messages = consumer.receive_many(1000, 10)
            assert {message.body for message in messages} == {b"x" * 50}
            consumer.ack(messages)
            taken += len(messages)
    server.check("receive", count)


def test_one_that_is_missing_is_no_result(server: Server) -> None:
    server.ask("total 1000")
    with pulsar.Client(server.url) as client:
        consumer = client.consumer("t", "s", receiver_queue=QUEUE)
        for message in [consumer.receive(10) for _ in range(1000)][1:]:
            consumer.ack(message)
    with pytest.raises(AssertionError, match="999"):
        server.check("receive", 1000)


def test_sends_are_checked(server: Server) -> None:
    with pulsar.Client(server.url) as client, client.producer("t") as producer:
        assert all(result.ok for result in producer.send_many([b"x"] * 2500))
        producer.send(b"y")
    server.check("send_many", 2501)
    with pulsar.Client(server.url) as client, client.producer("t", initial_sequence_id=7) as producer:
        producer.send(b"x")
    with pytest.raises(AssertionError, match="gaps"):
        server.check("send_many", 1)
    assert json.loads(server.ask("report"))["sent"] == 0
