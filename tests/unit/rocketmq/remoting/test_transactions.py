"""Transactions: nobody reads a half message; how it ended is told once, and again when the broker asks."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError, LinkError
from mqclient.rocketmq.model import Message, NotSafeError, Receipt, TransactionState
from mqclient.rocketmq.remoting import sending
from mqclient.rocketmq.remoting import transactions as module
from mqclient.rocketmq.remoting.outgoing import Stored
from mqclient.rocketmq.remoting.producer_options import ProducerOptions
from mqclient.rocketmq.remoting.transactions import Deciding, TransactionEngine
from tests.unit.rocketmq.remoting.cluster import VirtualClient, VirtualCluster

COMMIT, ROLLBACK, UNKNOWN = TransactionState.COMMIT, TransactionState.ROLLBACK, TransactionState.UNKNOWN


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec, transactionTimeOut=2000, transactionCheckInterval=1000)
    cluster.topic("paid", 1)
    return cluster


@pytest.fixture(name="client")
def client_fixture(cluster: VirtualCluster) -> VirtualClient:
    return cluster.client()


def engine_of(client: VirtualClient, check: Any = lambda message: UNKNOWN, threads: int = 2) -> TransactionEngine:
    with client.driver.enter():
        return TransactionEngine.of(client.engine, "pay", ProducerOptions(), check, threads)


def begin(engine: TransactionEngine, body: bytes = b"x") -> Receipt:
    prepared = engine.prepare(Message("paid", body))
    driver: Any = engine.producer.client.driver
    with driver.enter():
        slot = engine.begin(prepared, None)
    receipt: Receipt = driver.wait(slot)
    return receipt


def end(engine: TransactionEngine, receipt: Receipt, state: TransactionState) -> None:
    with engine.producer.client.driver.enter():
        engine.end(receipt, state)


def bodies(cluster: VirtualCluster) -> list[bytes]:
    views, _ = cluster.broker.broker.topics["paid"].queue(0).log.read(0, 1000, 1 << 30)
    return [message.body for message in cluster.codec.remoting.decode_messages(b"".join(views))]


def test_only_what_was_committed_can_be_read(cluster: VirtualCluster, client: VirtualClient) -> None:
    engine = engine_of(client)
    first, second, third = (begin(engine, body) for body in (b"1", b"2", b"3"))
    assert bodies(cluster) == []
    end(engine, third, COMMIT)
    end(engine, first, ROLLBACK)
    end(engine, second, UNKNOWN)
    cluster.world.run()
    assert bodies(cluster) == [b"3"]
    assert engine.counts == {"committed": 1, "rolled_back": 1, "unknown": 1, "checked": 0, "dropped": 0}


def test_the_broker_asks_and_the_check_answers(cluster: VirtualCluster, client: VirtualClient) -> None:
    asked: list[Any] = []

    def check(message: Any) -> TransactionState:
        asked.append(message)
        return COMMIT if message.body == b"paid" else ROLLBACK

    engine = engine_of(client, check)
    receipts = [begin(engine, b"paid"), begin(engine, b"cancelled")]
    cluster.world.advance(10)
    assert bodies(cluster) == [b"paid"]
    assert {message.message_id for message in asked} == {receipt.message_id for receipt in receipts}
    assert {message.topic for message in asked} == {"paid"}
    assert engine.counts["checked"] == 2
    asked.clear()
    cluster.world.advance(10)
    assert asked == []


@pytest.mark.parametrize("wrong", [None, True, ValueError("the database is away")])
def test_a_check_that_does_not_know_is_asked_again(
    cluster: VirtualCluster, client: VirtualClient, wrong: Any, caplog: pytest.LogCaptureFixture
) -> None:
    answers = [wrong, COMMIT]

    def check(message: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    engine = engine_of(client, check)
    begin(engine)
    cluster.world.advance(20)
    assert (answers, bodies(cluster)) == ([], [b"x"])
    assert "checkLocalTransactionState" in caplog.text


def test_another_member_of_the_group_answers_for_one_that_is_gone(
    cluster: VirtualCluster, client: VirtualClient
) -> None:
    begin(engine_of(client))
    with client.driver.enter():
        slot = client.engine.shutdown()
    client.driver.wait(slot)
    heir = engine_of(cluster.client(), lambda message: COMMIT)
    end(heir, begin(heir, b"of the heir"), COMMIT)
    cluster.world.advance(10)
    assert bodies(cluster) == [b"of the heir", b"x"]


def test_stored_with_less_safety_is_rolled_back(cluster: VirtualCluster, client: VirtualClient) -> None:
    engine = engine_of(client)
    begin(engine)
    cluster.control.answer("SEND_MESSAGE_V2", 10, "")
    with pytest.raises(NotSafeError, match="FLUSH_DISK_TIMEOUT") as caught:
        begin(engine)
    assert caught.value.receipt.status == "FLUSH_DISK_TIMEOUT"
    assert engine.counts["rolled_back"] == 0  # the answer did not tell what to roll back


def test_a_half_message_that_is_not_safe_is_taken_back_where_it_lies(
    cluster: VirtualCluster, client: VirtualClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Weaker(Stored):
        __slots__ = ()

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.status = "FLUSH_DISK_TIMEOUT"

    asked: list[Any] = []
    engine = engine_of(client, asked.append)
    monkeypatch.setattr(sending, "Stored", Weaker)
    with pytest.raises(NotSafeError):
        begin(engine)
    assert engine.counts["rolled_back"] == 1
    cluster.world.advance(60)
    assert (asked, bodies(cluster)) == ([], [])  # the broker knows how it ended, and asks nobody


def test_questions_beyond_what_is_kept_are_the_brokers_to_ask_again(
    cluster: VirtualCluster, client: VirtualClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine = engine_of(client, lambda message: COMMIT)
    monkeypatch.setattr(module, "MAX_CHECKS", 0)
    begin(engine)
    cluster.world.advance(5)
    assert engine.counts["checked"] == 0
    assert engine.counts["dropped"] > 0
    assert "unanswered transaction checks: one dropped" in caplog.text
    monkeypatch.undo()
    cluster.world.advance(20)
    assert (engine.counts["checked"], bodies(cluster)) == (1, [b"x"])


def test_a_broker_that_does_not_know_us_gets_no_half_message(cluster: VirtualCluster, client: VirtualClient) -> None:
    engine = engine_of(client)
    cluster.control.answer("HEART_BEAT", 1, "no")
    with pytest.raises(LinkError, match="heartbeat"):
        begin(engine)
    assert cluster.control.count("SEND_MESSAGE_V2") == 0
    begin(engine)
    beats = cluster.control.count("HEART_BEAT")
    begin(engine)
    assert cluster.control.count("HEART_BEAT") == beats


def test_the_close_lets_checks_under_way_end(cluster: VirtualCluster, client: VirtualClient) -> None:
    engine = engine_of(client, lambda message: COMMIT)
    begin(engine)
    with client.driver.enter():
        slot = client.engine.shutdown()
    client.driver.wait(slot)
    assert client.engine.closed


def test_what_is_wrong_is_said(client: VirtualClient) -> None:
    with pytest.raises(ConfigError, match="check="):
        engine_of(client, None)
    with pytest.raises(ConfigError, match="check_threads=0"):
        engine_of(client, threads=0)
    engine = engine_of(client)
    with pytest.raises(ConfigError, match="cannot be delayed"):
        engine.prepare(Message("paid", b"x", delay_level=1))


@pytest.mark.parametrize(("outcome", "state"), [(COMMIT, COMMIT), ("commit", UNKNOWN), (KeyError("k"), UNKNOWN)])
def test_a_local_transaction_decides(outcome: Any, state: TransactionState) -> None:
    ended: list[Any] = []

    def decide() -> None:
        with Deciding(lambda state, remark: ended.append(state)) as deciding:
            if isinstance(outcome, Exception):
                raise outcome
            deciding.outcome = outcome

    if state is UNKNOWN:
        with pytest.raises((TypeError, KeyError)):
            decide()
    else:
        decide()
    assert ended == [state]
