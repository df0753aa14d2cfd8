"""RocketMQ push consumers over the embedded broker: shares, acknowledgements, retries, broadcasting, resets."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.errors import ConfigError
from mqclient.rocketmq.aio import Client, Message
from tests.support.pace.aio import Event, sleep
from tests.support.seen import unique

Generation = Any
"""The embedded broker, and real ones from 4.9.7 to the one with the changes of story 3 (tests/real/fixtures.py)."""
WITHIN = 20.0


@pytest.fixture(name="broker", scope="module")
def broker_fixture() -> Iterator[EmbeddedBroker]:
    """One broker in the old form of resets, with the operator's changes."""
    with EmbeddedBroker(doors=["rocketmq"], impl="pure", server_side_reset=False, mqcloud_patch=True) as broker:
        yield broker


class Seen:
    """A handler that counts; made for threads, and good for a loop."""

    def __init__(self, wanted: int) -> None:
        self.bodies: list[bytes] = []
        self.lock = threading.Lock()
        self.wanted = wanted
        self.full = Event()

    async def __call__(self, messages: Any) -> None:
        with self.lock:
            self.bodies += [message.body for message in messages]
            if len(self.bodies) >= self.wanted:
                self.full.set()

    async def wait(self, wanted: int | None = None) -> list[bytes]:
        """The bodies in order, when so many came."""
        if wanted is not None:
            self.wanted = wanted
            if len(self.bodies) < wanted:
                self.full.clear()
        await self.full.wait(WITHIN)
        return sorted(self.bodies)


def bodies(count: int) -> list[bytes]:
    return [b"%04d" % number for number in range(count)]


async def fill(client: Client, topic: str, count: int, queues: int = 4) -> None:
    """A topic with so many messages, spread over its queues."""
    async with client.admin() as admin:
        await admin.create_topic(topic, queues)
    async with client.producer(unique("p")) as producer:
        keyed = {b"%04d" % number: str(number % queues) for number in range(count)}
        messages = [Message(topic, body) for body in keyed]
        results = await producer.send_many(messages, key=lambda message: keyed[bytes(message.body)])
    assert all(result.ok for result in results)


async def test_every_message_once_for_the_group_and_no_code_25(generation: Generation, impl: str) -> None:
    topic, group, seen = unique("orders"), unique("billing"), Seen(200)
    async with Client(generation.name_server, impl=impl) as one, Client(generation.name_server, impl=impl) as two:
        await fill(one, topic, 100)
        async with (
            one.push_consumer(group, topic, seen, start="first") as first,
            two.push_consumer(group, topic, seen, start="first") as second,
        ):
            async with one.producer(unique("p")) as producer:
                await producer.send_many([Message(topic, b"more-%d" % number) for number in range(100)])
            got = await seen.wait()
            assert set(bodies(100)) < set(got)
            states = [first.diagnose(), second.diagnose()]
        assert [state["code_25"] for state in states] == [0, 0]
        assert not set(states[0]["queues"]) & set(states[1]["queues"])


async def test_what_failed_comes_again_on_a_delay(
    broker: EmbeddedBroker, impl: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic, group, attempts = unique("fragile"), unique("g"), []
    seen = Seen(1)

    async def fail_once(messages: Any) -> None:
        for message in messages:
            attempts.append((message.topic, message.attempts))
            if message.attempts == 0:
                raise ValueError("not yet")
        await seen(messages)

    async with Client(broker.name_server, impl=impl) as client:
        await fill(client, topic, 1)
        async with client.push_consumer(group, topic, fail_once, start="first", batch=1) as consumer:
            while broker.control.count("CONSUMER_SEND_MSG_BACK") == 0:
                await sleep(0.01)
            await sleep(0.05)
            broker.control.move_clock(11)  # level 3 is 10 s
            assert await seen.wait() == [b"0000"]
            assert consumer.diagnose()["failed"] == 1
    assert attempts == [(topic, 0), (topic, 1)]
    assert any("the handler failed" in record.getMessage() for record in caplog.records)


async def test_tags_are_filtered(generation: Generation, impl: str) -> None:
    topic, seen = unique("tags"), Seen(2)
    async with Client(generation.name_server, impl=impl) as client:
        async with client.admin() as admin:
            await admin.create_topic(topic, 2)
        async with client.producer(unique("p")) as producer:
            for tag in ("paid", "void", "other", None):
                await producer.send(Message(topic, f"{tag}".encode(), tag=tag))
        async with client.push_consumer(unique("g"), {topic: "paid || void"}, seen, start="first"):
            assert await seen.wait() == [b"paid", b"void"]


async def test_every_broadcasting_member_gets_all_and_every_reset(
    generation: Generation, impl: str, tmp_path: Path
) -> None:
    topic, group = unique("news"), unique("audit")
    options: dict[str, Any] = {"model": "broadcasting", "start": "first"}
    folder = str(tmp_path)
    one, two = Seen(20), Seen(20)
    async with (
        Client(generation.name_server, impl=impl, offset_dir=folder) as client,
        Client(generation.name_server, impl=impl, offset_dir=folder) as other,
    ):
        await fill(client, topic, 20)
        async with (
            client.push_consumer(group, topic, one, **options),
            other.push_consumer(group, topic, two, **options),
        ):
            assert [await seen.wait() for seen in (one, two)] == [bodies(20)] * 2
            async with client.admin() as admin:
                report = await admin.reset_offset(group, topic, "earliest", model="broadcasting")
            assert set(report.offsets.values()) == {0}
            assert set(report.members) == {client.client_id, other.client_id}
            assert [await seen.wait(40) for seen in (one, two)] == [sorted(bodies(20) * 2)] * 2
        again = Seen(1)
        async with client.push_consumer(group, topic, again, **options) as consumer:
            states = consumer.diagnose()["queues"]
        assert again.bodies == []  # the file knows
        assert len(states) == len(report.offsets)


async def test_offsets_outlive_the_consumer(generation: Generation, impl: str) -> None:
    topic, group, seen = unique("progress"), unique("g"), Seen(50)
    async with Client(generation.name_server, impl=impl) as client:
        await fill(client, topic, 50)
        async with client.push_consumer(group, topic, seen, start="first"):
            await seen.wait()
        async with client.admin() as admin:
            state = await admin.offsets(topic, group)
        assert {queue: ends["committed"] or 0 for queue, ends in state.items()} == {
            queue: ends["max"] for queue, ends in state.items()
        }


async def test_a_group_has_one_consumer_a_client(broker: EmbeddedBroker, impl: str) -> None:
    topic, group = unique("t"), unique("g")
    async with Client(broker.name_server, impl=impl) as client:
        await fill(client, topic, 1)
        consumer = await client.push_consumer(group, topic, Seen(1))
        with pytest.raises(ConfigError, match="has a consumer"):
            await client.push_consumer(group, topic, Seen(1))
        await consumer.close()
        again = await client.push_consumer(group, topic, Seen(1))
        await again.close()


async def test_closing_waits_for_the_handler(generation: Generation, impl: str) -> None:
    topic, group, ended = unique("slow"), unique("g"), []
    began = Event()

    async def slow(messages: Any) -> None:
        began.set()
        await sleep(0.2)
        ended.append(len(messages))

    async with Client(generation.name_server, impl=impl) as client:
        await fill(client, topic, 1)
        async with client.push_consumer(group, topic, slow, start="first"):
            await began.wait(WITHIN)
        assert ended == [1]
        async with client.admin() as admin:
            state = await admin.offsets(topic, group)
        assert sum(ends["committed"] or 0 for ends in state.values()) == 1


def test_logging_is_silent_unless_configured() -> None:
    assert logging.getLogger("mqclient.remoting").handlers == []
