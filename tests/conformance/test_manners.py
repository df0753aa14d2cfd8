"""One scenario, every protocol there is: where a verb means the same, it has the same manners.

Signatures are compared in `test_signatures.py`; differences stand in `differences.py`, with their reasons.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from queue import Queue
from typing import Any

import pytest

from mqclient.errors import ClosedError, ConfigError, DeadlineError, LinkError, MQError
from tests.conformance.worlds import World
from tests.support.seen import unique

WITHIN = 30.0


@contextmanager
def opened(world: World, group: str = "g", **options: Any) -> Any:
    """A client, a producer and a consumer of a topic that nobody used before."""
    topic = unique("manners")
    with world.client() as client:
        world.prepare(client, topic)
        with world.producer(client, topic, **options) as producer, world.consumer(client, topic, group) as consumer:
            yield topic, client, producer, consumer


def taken(consumer: Any, count: int) -> list[Any]:
    """So many messages, or what came in time."""
    found: list[Any] = []
    until = time.monotonic() + WITHIN
    while len(found) < count and time.monotonic() < until:
        found += consumer.receive_many(count - len(found), timeout=1)
    return found


def test_what_is_sent_is_received_with_what_belongs_to_it(world: World) -> None:
    with opened(world) as (topic, _, producer, consumer):
        message = world.message(topic, b"first", shop="north", colour="rot, grün")
        receipt = world.send(producer, message)
        found = consumer.receive(timeout=WITHIN)
        assert (found.body, found.properties["shop"], found.properties["colour"]) == (b"first", "north", "rot, grün")
        assert found.topic.rpartition("/")[2] == topic
        assert found.message_id == getattr(receipt, "message_id", receipt)
        assert receipt.ok
        assert type(found.body) is bytes
        consumer.ack(found)


def test_nothing_in_time(world: World) -> None:
    with opened(world) as (_, _, _, consumer):
        began = time.monotonic()
        with pytest.raises(DeadlineError) as caught:
            consumer.receive(timeout=0.2)
        assert isinstance(caught.value, TimeoutError)
        assert consumer.receive_many(10, timeout=0.2) == []
        assert consumer.receive_many(timeout=0) == []
        assert 0.4 <= time.monotonic() - began < 5


def test_many_have_their_outcomes_in_order_and_come_in_order(world: World) -> None:
    with opened(world) as (topic, _, producer, consumer):
        bodies = [b"%d" % number for number in range(200)]
        results = producer.send_many([world.message(topic, body) for body in bodies])
        assert [result.ok for result in results] == [True] * 200
        ids = [getattr(result, "message_id", result) for result in results]
        messages = consumer.receive_many(3, timeout=WITHIN)
        assert len(messages) in (1, 2, 3), "at most so many, and not none"
        messages += taken(consumer, 200 - len(messages))
        assert [message.body for message in messages] == bodies
        assert [message.message_id for message in messages] == ids
        consumer.ack(messages)


def test_submitted_is_done_when_it_is_flushed(world: World) -> None:
    with opened(world) as (topic, _, producer, consumer):
        message = world.message(topic, b"later")
        futures = [world.send(producer, message, "submit") for _ in range(50)]
        told: Queue[Any] = Queue()
        futures[-1].add_done_callback(told.put)
        producer.flush(timeout=WITHIN)
        assert all(future.done() and future.result(0).ok for future in futures)
        assert told.get(timeout=WITHIN) == futures[-1]
        assert len(taken(consumer, 50)) == 50


def test_what_is_acknowledged_does_not_come_again_and_the_rest_does(world: World) -> None:
    with opened(world) as (topic, client, producer, consumer):
        producer.send_many([world.message(topic, b"%d" % number) for number in range(4)])
        messages = taken(consumer, 4)
        consumer.ack(messages[0])
        consumer.ack([messages[2]])
        consumer.close()
        world.comes_again()
        with world.consumer(client, topic, "g") as other:
            again = taken(other, 2)
            assert sorted(message.body for message in again) == [b"1", b"3"]
            assert other.receive_many(timeout=0.2) == []
            other.ack(again)


def test_each_group_gets_everything_and_its_members_share(world: World) -> None:
    with (
        opened(world, "one") as (topic, client, producer, first),
        world.client() as elsewhere,
        world.consumer(elsewhere, topic, "one") as second,
        world.consumer(client, topic, "two") as alone,
    ):
        bodies = sorted(b"%d" % number for number in range(20))
        for body in bodies:
            producer.send_many([world.message(topic, body)])
        shared: list[bytes] = []
        until = time.monotonic() + WITHIN
        while len(shared) < 20 and time.monotonic() < until:
            for consumer in (first, second):
                messages = consumer.receive_many(5, timeout=0.1)
                consumer.ack(messages)
                shared += [message.body for message in messages]
        assert sorted(shared) == bodies
        messages = taken(alone, 20)
        assert sorted(message.body for message in messages) == bodies
        alone.ack(messages)


def test_after_the_end_everything_says_so_and_ending_twice_is_nothing(world: World) -> None:
    with opened(world) as (topic, client, producer, consumer):
        message = world.message(topic, b"x")
        consumer.close()
        consumer.close()
        refused(lambda: consumer.receive(timeout=5), lambda: consumer.receive_many(timeout=5))
        producer.close()
        producer.close()
        refused(lambda: world.send(producer, message), lambda: producer.send_many([message]))
        client.close()
        client.close()
        refused(lambda: world.producer(client, topic), lambda: world.consumer(client, topic, "g"), client.ping)


def refused(*calls: Callable[[], Any]) -> None:
    for call in calls:
        with pytest.raises(ClosedError):
            call()


def test_who_waits_is_told_of_the_end(world: World) -> None:
    with opened(world) as (_, _, _, consumer):
        found: list[BaseException] = []

        def wait() -> None:
            try:
                consumer.receive()
            except MQError as error:
                found.append(error)

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        time.sleep(0.2)
        consumer.close()
        waiting.join(10)
        assert [type(error) for error in found] == [ClosedError]


def test_nobody_listens_there(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        server.close()
        address = f"pulsar://127.0.0.1:{port}" if world.name == "pulsar" else f"127.0.0.1:{port}"
        with world.client(address) as client:
            began = time.monotonic()
            with pytest.raises(LinkError, match=f"127.0.0.1:{port}") as caught:
                client.ping(timeout=3)
            assert isinstance(caught.value, ConnectionError)
            assert time.monotonic() - began < 10


@pytest.mark.parametrize("wrong", ["text", 7, ["x"]])
def test_a_body_is_bytes(world: World, wrong: Any) -> None:
    with opened(world) as (topic, _, producer, _), pytest.raises(TypeError, match=r"a body is bytes.*not ") as caught:
        world.send(producer, world.message(topic, wrong))
    assert type(wrong).__name__ in str(caught.value)


@pytest.mark.parametrize("wrong", [{"nonsense": 1}, {"compression": "rar"}])
def test_wrong_options_are_refused_by_name(world: World, wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with world.client() as client, pytest.raises((ConfigError, TypeError), match=name):
        world.producer(client, "never", **wrong)


def test_properties_are_text(world: World) -> None:
    with opened(world) as (topic, _, producer, _), pytest.raises(TypeError, match="not int"):
        world.send(producer, world.message(topic, b"x", n=1))  # type: ignore[arg-type]


def test_views_cost_no_copy_and_any_buffer_is_a_body(world: World) -> None:
    with opened(world) as (topic, _, producer, consumer):
        producer.send_many([world.message(topic, body) for body in (bytearray(b"a"), memoryview(b"xbx")[1:2], b"c")])
        messages = taken(consumer, 3)
        assert [message.body for message in messages] == [b"a", b"b", b"c"]
        consumer.ack(messages)


def test_everything_can_tell_what_it_does(world: World) -> None:
    with opened(world) as (_, client, _, consumer):
        for thing in (client, consumer):
            told = thing.diagnose()
            assert isinstance(told, dict)
            assert told
