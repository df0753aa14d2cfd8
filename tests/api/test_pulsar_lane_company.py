"""Threads that send all at once go by the lane together, whatever happens to the connection meanwhile."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mqclient
from mqclient.broker import EmbeddedBroker
from mqclient.errors import ClosedError, MQError
from mqclient.pulsar import sync as face
from tests.api.test_pulsar_lane import lane_of
from tests.support.pulsar_cluster import PulsarCluster

LONG = 60.0


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(doors=["pulsar"], impl="pure") as it:
        yield it


def together(threads: int, work: Callable[[int], object]) -> list[threading.Thread]:
    started = [threading.Thread(target=work, args=(name,), daemon=True) for name in range(threads)]
    for thread in started:
        thread.start()
    return started


def joined(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive(), "it waits for ever"


def in_order(bodies: list[bytes], threads: int, count: int) -> None:
    """Each thread's messages came in its order, none is lost; sent anew, one may have come twice in a row."""
    for name in range(threads):
        mine = [int(body.split(b":")[1]) for body in bodies if body.startswith(b"%d:" % name)]
        assert list(dict.fromkeys(mine)) == list(range(count))


def read_all(client: Any, topic: str, ends: bytes) -> list[bytes]:
    with client.reader(topic, start="earliest") as reader:
        bodies: list[bytes] = []
        while not bodies or bodies[-1] != ends:
            bodies.append(reader.receive(LONG).body)
    return bodies[:-1]


@pytest.mark.parametrize("threads", [3, 8, 16])
def test_ids_order_and_counts(pulsar: PulsarCluster, topic: str, impl: str, threads: int) -> None:
    count, ids = 150, [[] for _ in range(threads)]  # type: ignore[var-annotated]
    with face.Client(pulsar.url, impl=impl) as client, client.producer(topic, batching=False) as producer:
        opened: set[bool] = set()

        def work(name: int) -> None:
            for number in range(count):
                ids[name].append(producer.send(b"%d:%d" % (name, number)))
                opened.add(lane_of(producer).opened)

        joined(together(threads, work))
        assert not (True in opened and impl == "pure")
        shown = producer.diagnose()
        assert (shown["messages"], shown["pending"], shown["resent"]) == (threads * count, 0, 0)
        assert producer.last_sequence_id == threads * count - 1
        assert (client._engine.budget.bytes, client._engine.budget.items) == (0, 0)
        producer.send(b"end")
        bodies = read_all(client, topic, b"end")
        assert len(bodies) == threads * count
        in_order(bodies, threads, count)
    assert all(mine == sorted(mine) for mine in ids)
    assert len({one for mine in ids for one in mine}) == threads * count


def test_others_come_in_between(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    """Whoever looks at the producer, flushes or sends what is not plain shuts the lane; it opens again."""
    threads, count = 8, 200
    with face.Client(pulsar.url, impl=impl) as client, client.producer(topic, batching=False) as producer:
        over = threading.Event()

        def work(name: int) -> None:
            for number in range(count):
                body = b"%d:%d" % (name, number)
                if number % 50 == 49:
                    producer.send(body, properties={"a": "b"})
                elif number % 70 == 69:
                    producer.submit(body)
                else:
                    producer.send(body)

        def look() -> None:
            while not over.wait(0.01):
                shown = producer.diagnose()
                assert 0 <= shown["pending"] <= 2 * threads
                producer.flush(LONG)

        looks = threading.Thread(target=look)
        looks.start()
        joined(together(threads, work))
        over.set()
        looks.join(LONG)
        producer.flush(LONG)
        producer.send(b"end")
        assert producer.diagnose()["messages"] == threads * count + 1
        assert (client._engine.budget.bytes, client._engine.budget.items) == (0, 0)
        bodies = read_all(client, topic, b"end")
        assert len(bodies) == threads * count
        in_order(bodies, threads, count)


@pytest.mark.parametrize("hindered", ["cut", "slow", "unload"])
def test_all_arrive_in_order_over_lost_connections_and_late_receipts(broker: EmbeddedBroker, hindered: str) -> None:
    threads, count = 12, 120
    with face.Client(broker.pulsar_url) as client, client.producer("t", batching=False) as producer:
        over = threading.Event()

        def hinder() -> None:
            for _ in range(4):
                if hindered == "cut":
                    broker.control.cut("SEND", skip=100)
                elif hindered == "unload":
                    broker.control.unload("persistent://public/default/t")
                else:
                    broker.control.delay("SEND", 0.15)
                over.wait(0.3)

        thread = threading.Thread(target=hinder)
        thread.start()
        joined(together(threads, lambda name: [producer.send(b"%d:%d" % (name, number)) for number in range(count)]))
        over.set()
        thread.join(LONG)
        broker.control.clear()
        producer.send(b"end")
        in_order(read_all(client, "t", b"end"), threads, count)
        assert producer.diagnose()["pending"] == 0


@pytest.mark.parametrize("ends", ["producer", "client"])
@pytest.mark.parametrize("batching", [False, True])
@pytest.mark.parametrize("topic", [f"closing-{number}" for number in range(5)])
def test_closing_while_all_send_ends_it_for_all(broker: EmbeddedBroker, ends: str, batching: bool, topic: str) -> None:
    """Who sends again meanwhile is refused, and what was taken has its receipt."""
    client = face.Client(broker.pulsar_url)
    producer = client.producer(topic, batching=batching)
    ended: list[MQError] = []
    sent = [0] * 8

    def work(name: int) -> None:
        try:
            while True:
                producer.send(b"x")
                sent[name] += 1
        except MQError as error:
            ended.append(error)

    threads = together(8, work)
    time.sleep(0.1)
    (producer if ends == "producer" else client).close()
    joined(threads)
    assert len(ended) == 8
    assert all(isinstance(error, ClosedError) and not error.outcome_unknown for error in ended), ended
    assert not lane_of(producer).opened
    client.close()
    with face.Client(broker.pulsar_url) as other, other.reader(topic, start="earliest") as reader:
        there = 0
        while reader.has_message_available():
            there += len(reader.receive_many(1000, timeout=LONG))
    assert there == sum(sent)


def test_a_send_timeout_is_each_ones_own(broker: EmbeddedBroker) -> None:
    with face.Client(broker.pulsar_url) as client:
        producer = client.producer("t", batching=False, send_timeout=0.5)
        joined(together(8, lambda name: [producer.send(b"x") for _ in range(40)]))
        broker.control.drop("SEND", times=1000)
        took: list[float] = []

        def work(name: int) -> None:
            began = time.monotonic()
            with pytest.raises(MQError):
                producer.send(b"never answered")
            took.append(time.monotonic() - began)

        joined(together(8, work))
        assert len(took) == 8
        assert max(took) < 5
        broker.control.clear()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_forked_while_all_send(broker: EmbeddedBroker) -> None:
    with face.Client(broker.pulsar_url) as client, client.producer("t", batching=False) as producer:
        over = threading.Event()

        def work(name: int) -> None:
            while not over.is_set():
                producer.send(b"of the parent")

        threads = together(8, work)
        try:
            for _ in range(5):
                time.sleep(0.05)
                child = os.fork()
                if not child:
                    status = 1
                    try:
                        for _ in range(30):
                            producer.send(b"of the child")
                        status = 0
                    finally:
                        os._exit(status)
                end = time.monotonic() + LONG
                found = (0, 1)
                while found[0] == 0 and time.monotonic() < end:
                    found = os.waitpid(child, os.WNOHANG)
                    time.sleep(0.01)
                assert found == (child, 0), "the child waits for ever, or failed"
        finally:
            over.set()
            joined(threads)


def test_two_clients_producers_do_not_disturb_each_other(broker: EmbeddedBroker) -> None:
    """On one connection only one of them is in its lane at a time; the others go the long way, and all arrive."""
    with face.Client(broker.pulsar_url) as client:
        producers = [client.producer(f"t{place}", batching=False) for place in range(3)]

        def work(name: int) -> None:
            for number in range(150):
                producers[name % 3].send(b"%d:%d" % (name, number))

        joined(together(9, work))
        for place, producer in enumerate(producers):
            assert producer.diagnose()["messages"] == 450
            producer.send(b"end")
            bodies = read_all(client, f"t{place}", b"end")
            assert len(bodies) == 450
            for name in range(place, 9, 3):
                mine = [int(body.split(b":")[1]) for body in bodies if body.startswith(b"%d:" % name)]
                assert mine == list(range(150))


def test_it_is_the_lane_that_they_take(broker: EmbeddedBroker) -> None:
    with face.Client(broker.pulsar_url) as client, client.producer("t", batching=False) as producer:
        seen: list[bool] = []

        def work(name: int) -> None:
            end = time.monotonic() + 10
            while time.monotonic() < end and not any(seen):
                producer.send(b"x")
                seen.append(lane_of(producer).opened)

        joined(together(8, work))
        assert any(seen) == (mqclient.__impl__ == "native")
