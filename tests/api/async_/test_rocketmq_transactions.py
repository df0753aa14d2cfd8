"""RocketMQ transactions on both brokers: what is committed is read, what is not told is asked about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.aio import Client, Message, TransactionState
from tests.real.fixtures import ON_ROCKETMQ
from tests.real.rocketmq import RealRocketMQ
from tests.support.pace.aio import Event, sleep
from tests.support.seen import unique


@pytest.fixture(name="name_server", scope="module", params=["embedded", pytest.param("real", marks=ON_ROCKETMQ)])
def name_server_fixture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker of our own: one that has seen a transaction spins a core from then on (upstream #10966)."""
    if request.param == "embedded":
        with EmbeddedBroker(
            doors=["rocketmq"], impl="pure", transactionTimeOut=500, transactionCheckInterval=200
        ) as one:
            yield one.name_server
    elif "rocketmq" not in str(request.config.getoption("--real", "")).split(","):
        pytest.skip("needs a real broker: run `make real`")
    else:
        with RealRocketMQ(tmp_path_factory.mktemp("transactions"), brokers=1) as real:
            yield real.name_server


async def ready(client: Client) -> str:
    topic = unique("paid")
    async with client.admin() as admin:
        await admin.create_topic(topic, queues=1)
    return topic


def unasked(message: Any) -> TransactionState:
    raise AssertionError(f"nobody should have asked about {message}")


async def test_commit_and_rollback_in_every_way(name_server: str, impl: str) -> None:
    async with (
        Client(name_server, impl=impl) as client,
        client.transactional_producer(unique("pay"), check=unasked) as producer,
    ):
        topic = await ready(client)
        committed = await producer.send_in_transaction(Message(topic, b"1"), lambda receipt: TransactionState.COMMIT)
        dropped = await producer.send_in_transaction(Message(topic, b"2"), lambda receipt: TransactionState.ROLLBACK)
        assert (committed.state, dropped.state) == (TransactionState.COMMIT, TransactionState.ROLLBACK)
        async with await producer.begin(Message(topic, b"3" * 5000, tag="t")) as transaction:
            assert transaction.receipt.ok

        async def fails() -> None:
            async with await producer.begin(Message(topic, b"4")):
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fails()
        by_hand = await producer.begin(Message(topic, b"5"))
        by_hand.commit()
        with pytest.raises(ValueError, match="has ended already"):
            by_hand.rollback()
        got: dict[str, bytes] = {}
        async with client.pull_consumer(unique("g"), topic, start="first") as consumer:
            while len(got) < 3:
                got.update({one.message_id: one.body for one in await consumer.receive_many(9, timeout=10)})
        assert set(got.values()) == {b"1", b"3" * 5000, b"5"}
        assert committed.receipt.message_id in got


async def test_the_broker_asks_what_became_of_it(name_server: str, impl: str) -> None:
    asked: set[bytes] = set()
    all_asked = Event()

    async def check(message: Any) -> TransactionState:
        asked.add(message.body)
        if len(asked) == 3:
            all_asked.set()
        return TransactionState.COMMIT if message.body == b"paid" else TransactionState.ROLLBACK

    async with (
        Client(name_server, impl=impl) as client,
        client.transactional_producer(unique("pay"), check=check, check_threads=2) as producer,
    ):
        topic = await ready(client)
        silent = [await producer.begin(Message(topic, body)) for body in (b"paid", b"cancelled")]
        with pytest.raises(TypeError, match="TransactionState is wanted"):
            await producer.send_in_transaction(Message(topic, b"odd"), lambda receipt: True)
        async with client.pull_consumer(unique("g"), topic, start="first") as consumer:
            message = await consumer.receive(timeout=60)
        assert (message.body, message.message_id) == (b"paid", silent[0].receipt.message_id)
        await all_asked.wait(60)
        assert asked == {b"paid", b"cancelled", b"odd"}


async def test_no_more_checks_run_at_once_than_the_user_allows(name_server: str, impl: str) -> None:
    running = [0, 0]  # now, and at most
    answered: set[bytes] = set()
    all_answered = Event()

    async def check(message: Any) -> TransactionState:
        running[0] += 1
        running[1] = max(running)
        await sleep(0.1)
        running[0] -= 1
        answered.add(message.body)
        if len(answered) == 8:
            all_answered.set()
        return TransactionState.ROLLBACK

    async with (
        Client(name_server, impl=impl) as client,
        client.transactional_producer(unique("pay"), check=check, check_threads=2) as producer,
    ):
        topic = await ready(client)
        for number in range(8):
            await producer.begin(Message(topic, b"%d" % number))
        await all_answered.wait(60)
    assert running[1] == 2


async def test_the_broker_asks_in_the_namespace(name_server: str, impl: str) -> None:
    asked: list[tuple[bytes, str]] = []

    async def check(message: Any) -> TransactionState:
        asked.append((message.body, message.topic))
        return TransactionState.COMMIT

    async with (
        Client(name_server, impl=impl, namespace="shop") as client,
        client.transactional_producer(unique("pay"), check=check) as producer,
    ):
        topic = await ready(client)
        await producer.begin(Message(topic, b"paid"))
        async with client.pull_consumer(unique("g"), topic, start="first") as consumer:
            message = await consumer.receive(timeout=60)
    assert (message.body, message.topic) == (b"paid", topic)
    assert asked[0] == (b"paid", topic)
