"""A thread that sends, waits and sends again goes by the lane; who comes in between sees nothing of it."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import pytest

import mqclient
from mqclient.broker import EmbeddedBroker
from mqclient.errors import ClosedError, MQError
from mqclient.pulsar import sync as face
from tests.support.pulsar_cluster import PulsarCluster

LONG = 30.0


def lane_of(producer: Any) -> Any:
    return producer._engine._flights._lane


def by_lane(producer: Any, impl: str = mqclient.__impl__) -> int:
    """Send until the lane is open, where there is one; how many it took."""
    sent, end = 0, time.monotonic() + LONG
    while sent < 20 or (impl == "native" and not lane_of(producer).opened and time.monotonic() < end):
        producer.send(b"%d" % sent)
        sent += 1
    assert lane_of(producer).opened == (impl == "native")
    return sent


def test_ids_counts_and_order(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    with face.Client(pulsar.url, impl=impl) as client, client.producer(topic, batching=False) as producer:
        sent = by_lane(producer, impl)
        ids = [producer.send(b"%d" % number) for number in range(sent, sent + 100)]
        assert ids == sorted(set(ids))
        assert producer.last_sequence_id == sent + 99
        shown = producer.diagnose()
        assert (shown["messages"], shown["batches"], shown["pending"]) == (sent + 100, sent + 100, 0)
        with client.reader(topic, start="earliest") as reader:
            assert [reader.receive(LONG).body for _ in range(sent + 100)] == [b"%d" % n for n in range(sent + 100)]


def test_others_in_between(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    """Submits, keys, properties, other threads: each by its own way, the order of one thread holds."""
    with face.Client(pulsar.url, impl=impl) as client, client.producer(topic, batching=False) as producer:
        by_lane(producer, impl)

        def work(name: int) -> None:
            for number in range(60):
                body = b"%d:%d" % (name, number)
                if number % 10 == 3:
                    producer.submit(body)
                elif number % 10 == 6:
                    producer.send(body, properties={"a": "b"})
                elif number % 20 == 9:
                    time.sleep(0.01)  # the reader thread listens again
                    producer.send(body, key="k")
                else:
                    producer.send(body)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONG)
        producer.flush(LONG)
        work(9)
        producer.flush(LONG)
        shown = producer.diagnose()
        assert (shown["pending"], client._engine.budget.bytes, client._engine.budget.items) == (0, 0, 0)
        with client.reader(topic, start="earliest") as reader:
            bodies = [reader.receive(LONG).body for _ in range(shown["messages"])]
        for name in (0, 1, 2, 3, 9):
            mine = [body for body in bodies if body.startswith(b"%d:" % name)]
            assert mine == [b"%d:%d" % (name, number) for number in range(60)]


@pytest.fixture
def broker() -> Any:
    with EmbeddedBroker(doors=["pulsar"], impl="pure") as it:
        yield it


def test_a_receipt_that_takes_its_time(broker: EmbeddedBroker) -> None:
    with face.Client(broker.pulsar_url) as client, client.producer("t", batching=False) as producer:
        by_lane(producer)
        broker.control.delay("SEND", 0.4)
        began = time.monotonic()
        producer.send(b"slow")
        assert time.monotonic() - began >= 0.35
        by_lane(producer)
        assert producer.diagnose()["pending"] == 0


def test_a_connection_that_is_lost_on_the_way(broker: EmbeddedBroker) -> None:
    with face.Client(broker.pulsar_url) as client, client.producer("t", batching=False) as producer:
        sent = by_lane(producer)
        broker.control.cut("SEND")
        producer.send(b"again")
        assert producer.diagnose()["resent"] == 1
        sent += 1 + by_lane(producer)
        with client.reader("t", start="earliest") as reader:
            bodies = [reader.receive(LONG).body for _ in range(sent)]
        assert bodies.count(b"again") == 1


def test_closing_the_client_ends_the_wait(broker: EmbeddedBroker) -> None:
    client = face.Client(broker.pulsar_url)
    producer = client.producer("t", batching=False)
    by_lane(producer)
    broker.control.drop("SEND", times=1000)
    ended: list[Any] = []

    def work() -> None:
        try:
            producer.send(b"never answered")
        except MQError as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    while not broker.control.count("SEND"):
        time.sleep(0.001)
    client._driver.close()
    thread.join(LONG)
    assert [type(error) for error in ended] == [ClosedError]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_a_lane_of_its_own(broker: EmbeddedBroker) -> None:
    with face.Client(broker.pulsar_url) as client, client.producer("t", batching=False) as producer:
        sent = by_lane(producer)
        child = os.fork()
        if not child:
            status = 1
            try:
                producer.send(b"of the child")
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        producer.send(b"of the parent")
        with client.reader("t", start="earliest") as reader:
            bodies = {reader.receive(LONG).body for _ in range(sent + 2)}
        assert {b"of the child", b"of the parent"} < bodies
