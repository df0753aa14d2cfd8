"""A thread that sends, waits and sends again goes by the lane; who comes in between sees nothing of it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import mqclient
from mqclient import rocketmq as face
from mqclient.broker import EmbeddedBroker
from mqclient.errors import ClosedError, MQError
from mqclient.rocketmq import Account, Message
from mqclient.rocketmq.codes import BrokerError
from tests.api.conftest import RocketMQCluster
from tests.support.seen import unique

LONG = 30.0


def landed(producer: Any) -> int:
    express = producer._engine.express
    return 0 if express is None else express.landed


def by_lane(producer: Any, topic: str, impl: str = mqclient.__impl__) -> int:
    """Send until two messages went by the lane, where there is one; how many it took."""
    sent, before, end = 0, landed(producer), time.monotonic() + LONG
    while sent < 40 or (impl == "native" and landed(producer) < before + 2 and time.monotonic() < end):
        assert producer.send(Message(topic, b"warm")).ok
        sent += 1
    assert (landed(producer) > before) == (impl == "native")
    return sent


def made(client: face.Client, queues: int = 2) -> str:
    topic = unique("lane")
    with client.admin() as admin:
        admin.create_topic(topic, queues=queues)
    return topic


def bodies(client: face.Client, topic: str, count: int) -> list[bytes]:
    got: list[bytes] = []
    with client.pull_consumer(unique("reader"), topic, start="first") as consumer:
        while len(got) < count:
            more = consumer.receive_many(count, timeout=LONG)
            assert more, f"{len(got)} of {count} came"
            got += [message.body for message in more]
    return got


def stored(count: int) -> Account:
    return Account(count, 0, 0, 0, 0)


def test_receipts_queues_and_the_account(rocketmq: RocketMQCluster, impl: str) -> None:
    with face.Client(rocketmq.name_server, impl=impl) as client, client.producer(unique("p")) as producer:
        topic = made(client)
        sent = by_lane(producer, topic, impl)
        receipts = [producer.send(Message(topic, b"%d" % number, tag="t", keys=["k"])) for number in range(80)]
        assert len({(receipt.queue, receipt.offset) for receipt in receipts}) == 80
        assert len({receipt.message_id for receipt in receipts}) == 80
        assert set(Counter(receipt.queue for receipt in receipts).values()) == {20}, "four queues of two brokers"
        many = producer.send_many([Message(topic, b"many %d" % number) for number in range(30)])
        assert all(receipt.ok for receipt in many)
        assert producer.flush(timeout=LONG) == stored(sent + 110)
        found = bodies(client, topic, sent + 110)
        assert {b"%d" % number for number in range(80)} < set(found)
        assert {b"many %d" % number for number in range(30)} < set(found)


def test_others_in_between(rocketmq: RocketMQCluster, impl: str) -> None:
    """Submits, keys, delays, other threads: each by its own way; each message is there once."""
    with face.Client(rocketmq.name_server, impl=impl) as client, client.producer(unique("p")) as producer:
        topic = made(client)
        sent = by_lane(producer, topic, impl)

        def work(name: int) -> None:
            for number in range(60):
                message = Message(topic, b"%d:%d" % (name, number))
                if number % 10 == 3:
                    producer.submit(message)
                elif number % 10 == 6:
                    producer.send(message, key="k")
                elif number % 10 == 8:
                    producer.send_many([message, Message(topic, b"%d:%d+" % (name, number))])
                else:
                    producer.send(message)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            producer.flush(timeout=LONG)
        for thread in threads:
            thread.join(LONG)
        work(9)
        due = sent + 5 * 66
        assert producer.flush(timeout=LONG) == stored(due)
        found = Counter(bodies(client, topic, due))
        assert set(found.values()) == {1, sent}


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(doors=["rocketmq"], impl="pure") as it:
        yield it


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[face.Client]:
    with face.Client(broker.name_server) as it:
        yield it


@pytest.fixture
def producer(client: face.Client) -> Iterator[Any]:
    with client.producer("p") as it:
        yield it


def test_an_answer_that_takes_its_time(broker: EmbeddedBroker, client: face.Client, producer: Any) -> None:
    topic = made(client)
    sent = by_lane(producer, topic)
    broker.control.delay("SEND_MESSAGE_V2", 0.4)
    began = time.monotonic()
    assert producer.send(Message(topic, b"slow")).ok
    assert time.monotonic() - began >= 0.35
    sent += by_lane(producer, topic)
    assert producer.flush(timeout=LONG) == stored(sent + 1)


def test_a_connection_that_is_lost_on_the_way(broker: EmbeddedBroker, client: face.Client, producer: Any) -> None:
    """Another try, over a new connection; whether the first one took effect nobody knows."""
    topic = made(client)
    sent = by_lane(producer, topic)
    broker.control.cut("SEND_MESSAGE_V2")
    assert producer.send(Message(topic, b"again")).ok
    sent += 1 + by_lane(producer, topic)
    assert producer.flush(timeout=LONG) == stored(sent)
    assert bodies(client, topic, sent).count(b"again") == 1


def test_a_refusal_is_raised(broker: EmbeddedBroker, client: face.Client, producer: Any) -> None:
    topic = made(client)
    sent = by_lane(producer, topic)
    broker.control.answer("SEND_MESSAGE_V2", 13, "the message is illegal")
    with pytest.raises(BrokerError, match="the message is illegal"):
        producer.send(Message(topic, b"x"))
    assert producer.account() == Account(sent, 0, 1, 0, 0)


def test_a_flush_waits_for_another_thread_s_message(broker: EmbeddedBroker, client: face.Client, producer: Any) -> None:
    topic = made(client)
    sent = by_lane(producer, topic)
    broker.control.delay("SEND_MESSAGE_V2", 0.08)
    before = broker.control.count("SEND_MESSAGE_V2")
    thread = threading.Thread(target=producer.send, args=(Message(topic, b"slow"),))
    thread.start()
    while broker.control.count("SEND_MESSAGE_V2") == before:
        time.sleep(0.001)
    assert producer.flush(timeout=LONG) == stored(sent + 1)
    thread.join(LONG)


def test_closing_the_client_ends_the_wait(broker: EmbeddedBroker) -> None:
    client = face.Client(broker.name_server)
    producer = client.producer("p")
    topic = made(client)
    by_lane(producer, topic)
    broker.control.drop("SEND_MESSAGE_V2", times=1000)
    before = broker.control.count("SEND_MESSAGE_V2")
    ended: list[Any] = []

    def work() -> None:
        try:
            producer.send(Message(topic, b"never answered"), timeout=LONG)
        except MQError as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    while broker.control.count("SEND_MESSAGE_V2") == before:
        time.sleep(0.001)
    client._driver.close()
    thread.join(LONG)
    assert [type(error) for error in ended] == [ClosedError]


def test_ctrl_c_ends_it_and_the_message_is_counted(broker: EmbeddedBroker, client: face.Client, producer: Any) -> None:
    topic = made(client)
    sent = by_lane(producer, topic)
    broker.control.delay("SEND_MESSAGE_V2", 0.3)
    before = broker.control.count("SEND_MESSAGE_V2")

    def interrupt() -> None:
        while broker.control.count("SEND_MESSAGE_V2") == before:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        producer.send(Message(topic, b"interrupted"))
    thread.join(LONG)
    assert time.monotonic() - began < 0.25
    assert producer.flush(timeout=LONG) == stored(sent + 1)
    by_lane(producer, topic)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_a_way_of_its_own(broker: EmbeddedBroker, client: face.Client, producer: Any) -> None:
    topic = made(client)
    sent = by_lane(producer, topic)
    child = os.fork()
    if not child:
        status = 1
        try:
            assert producer.send(Message(topic, b"of the child")).ok
            assert producer.account().stored == 1
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    producer.send(Message(topic, b"of the parent"))
    assert {b"of the child", b"of the parent"} < set(bodies(client, topic, sent + 2))
