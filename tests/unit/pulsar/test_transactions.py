"""Coordinators found and found again, and a transaction's end: whatever was begun in it is waited for."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.core.slot import Slot
from mqclient.core.steps import run_steps
from mqclient.errors import ClosedError, ConfigError, DeadlineError, MQError, TransactionError
from mqclient.pulsar import transactions
from mqclient.pulsar.codes import BrokerError, ServerError
from mqclient.pulsar.transactions import ASSIGN, Transaction
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def begin(world: PulsarWorld, client: Any, ttl: float = 60.0) -> Transaction:
    return world.do(client, lambda: transactions.begin(client, ttl, None))


def ask(world: PulsarWorld, client: Any, make: Any) -> Slot[Any]:
    return world.ask(client, lambda: run_steps(make()))


def end(world: PulsarWorld, txn: Transaction, how: Any = transactions.commit) -> None:
    world.do(txn._client, lambda: how(txn))


def test_found_once_and_told_hello_once(world: PulsarWorld) -> None:
    client = world.client()
    first, second = begin(world, client), begin(world, client)
    assert first.id != second.id
    assert str(first) == f"transaction {first.id[0]}:{first.id[1]}"
    assert world.control.count("TC_CLIENT_CONNECT_REQUEST") == 1
    end(world, first)
    end(world, second, transactions.abort)
    assert (first.state, second.state) == ("committed", "aborted")


def test_a_lost_connection(world: PulsarWorld) -> None:
    client = world.client()
    txn = begin(world, client)
    world.cut()
    world.world.advance(1)
    end(world, txn)
    assert txn.state == "committed"


def test_a_coordinator_that_moves(world: PulsarWorld) -> None:
    client = world.client()
    txn = begin(world, client)
    world.control.answer("END_TXN", ServerError.TransactionCoordinatorNotFound, "moved")
    end(world, txn)
    assert txn.state == "committed"


def test_a_broker_without_coordinators(codec: Any) -> None:
    world = PulsarWorld(codec)
    client = world.client()
    found = client.partitions_steps

    def none(topic: Any, deadline: float) -> Any:
        if topic == ASSIGN:
            return 0
        count: int = yield from found(topic, deadline)
        return count

    client.partitions_steps = none  # type: ignore[method-assign]
    with pytest.raises(ConfigError, match="transactionCoordinatorEnabled=true"):
        begin(world, client)


def test_turned_off(codec: Any) -> None:
    world = PulsarWorld(codec, transactionCoordinatorEnabled=False)
    with pytest.raises(MQError, match="coordinator"):
        begin(world, world.client(operation_timeout=3.0))


def test_an_end_waits_for_what_was_begun(world: PulsarWorld) -> None:
    client = world.client()
    txn = begin(world, client)
    with client.driver.enter():
        txn.began()
        txn.began()
        ending = transactions.commit(txn)
        txn.ended(None)
    world.world.run()
    assert not ending.done
    assert txn.state == "committing"
    with client.driver.enter():
        txn.ended(None)
    world.world.run()
    assert ending.done


def test_a_failure_inside_makes_a_commit_an_abort(world: PulsarWorld) -> None:
    client = world.client()
    txn = begin(world, client)
    undone: list[str] = []
    with client.driver.enter():
        txn.on_abort(lambda: undone.append("x"))
        txn.began()
        txn.ended(ValueError("odd"))
    with pytest.raises(TransactionError, match="something in it failed: ValueError"):
        end(world, txn)
    assert (txn.state, undone) == ("aborted", ["x"])


@pytest.mark.parametrize("code", [ServerError.TransactionNotFound, ServerError.InvalidTxnStatus])
def test_an_end_that_is_not_known(world: PulsarWorld, code: ServerError) -> None:
    client = world.client()
    txn = begin(world, client)
    world.control.answer("END_TXN", code, "which?")
    with pytest.raises(TransactionError, match="not known any more") as failed:
        end(world, txn)
    assert failed.value.outcome_unknown
    assert txn.state == "unknown"


def test_an_end_without_an_answer(world: PulsarWorld) -> None:
    client = world.client(operation_timeout=2.0)
    txn = begin(world, client)
    world.control.delay("END_TXN", 50.0)
    with pytest.raises(DeadlineError) as failed:
        end(world, txn)
    assert failed.value.outcome_unknown
    assert txn.state == "unknown"


def test_it_expires(world: PulsarWorld) -> None:
    client = world.client()
    txn, undone = begin(world, client, 5.0), list[str]()
    call = lambda: undone.append("x")  # noqa: E731
    with client.driver.enter():
        txn.on_abort(call)
        txn.on_abort(call)
    world.world.advance(6)
    assert (txn.state, undone) == ("expired", ["x"])
    with pytest.raises(TransactionError, match="has ended: expired"):
        end(world, txn)


def test_a_topic_that_cannot_take_part(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    sender: Any = world.sender(producer)
    txn = begin(world, client)
    face = transactions_face(txn)
    world.control.answer("ADD_PARTITION_TO_TXN", ServerError.TransactionNotFound, "gone")
    with pytest.raises(BrokerError, match="gone"):
        sender.send(b"x", txn=face)
    sender.send(b"plain")  # nobody waits for room that nobody gives back
    with pytest.raises(TransactionError, match="something in it failed"):
        end(world, txn)


def test_ended_while_a_message_waits_for_its_topic(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    txn = begin(world, client)
    world.control.delay("ADD_PARTITION_TO_TXN", 1.0)
    message = producer.prepare(b"x", txn=transactions_face(txn))
    sent = world.ask(client, lambda: producer.send(message))
    ending = world.ask(client, lambda: transactions.commit(txn))
    world.world.advance(3)
    assert ending.done
    assert (sent.error, ending.error, txn.state) == (None, None, "committed")


def test_the_producer_ends_while_a_message_waits_for_room(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t", max_pending=1)
    txn = begin(world, client)
    face = transactions_face(txn)
    world.sender(producer).send(b"x", txn=face)
    world.control.delay("SEND", 5.0)
    for body in (b"1", b"2"):
        message = producer.prepare(body, txn=face)
        sent = world.ask(client, lambda message=message: producer.send(message))  # type: ignore[misc]
    with client.driver.enter():
        producer.abandon(ClosedError("gone"))
    world.world.advance(10)
    assert isinstance(sent.error, ClosedError)
    with pytest.raises(TransactionError, match="something in it failed: gone"):
        end(world, txn)


def test_left_with_an_error_that_says_more(world: PulsarWorld, caplog: pytest.LogCaptureFixture) -> None:
    client = world.client()
    world.control.answer("END_TXN", ServerError.TransactionNotFound, "which?")
    with pytest.raises(ZeroDivisionError), transactions_face(begin(world, client)):
        raise ZeroDivisionError
    assert "was not aborted" in caplog.text
    with transactions_face(begin(world, client)) as face:
        face.abort()
    assert face.state == "aborted"


def transactions_face(txn: Transaction) -> Any:
    from mqclient.pulsar import sync

    driver: Any = txn._client.driver
    return sync.Transaction(driver, txn)
