"""Queue locks: one owner a queue, by client id, until it expires."""

from __future__ import annotations

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.requests import lock_body
from tests.unit.broker.remoting.conftest import Connect
from tests.unit.broker.remoting.raw import Raw, body_of

QUEUES = [MessageQueue("orders", "broker-a", number) for number in range(2)]


def lock(raw: Raw, client_id: str, group: str = "orderly") -> list[int]:
    answer = raw.ask(Request.LOCK_BATCH_MQ, lock_body(group, client_id, QUEUES))
    return [entry["queueId"] for entry in body_of(answer)["lockOKMQSet"]]


def test_granted_once_given_back_by_the_owner_alone(connect: Connect) -> None:
    one, two = connect(), connect()
    assert lock(one, "one@1") == [0, 1]
    assert lock(two, "two@1") == []
    assert two.ask(Request.UNLOCK_BATCH_MQ, lock_body("orderly", "two@1", QUEUES)).code == 0
    assert lock(two, "two@1") == []
    one.ask(Request.UNLOCK_BATCH_MQ, lock_body("orderly", "one@1", QUEUES[:1]))
    assert lock(two, "two@1") == [0]


def test_equal_ids_share_a_lock(connect: Connect) -> None:
    assert [lock(connect(), "same@1", "twins") for _ in range(2)] == [[0, 1], [0, 1]]


def test_a_lock_expires_after_a_minute(raw: Raw, broker: EmbeddedBroker) -> None:
    lock(raw, "one@1", "forgetful")
    held = broker._doors[0].services[0].locks.held  # type: ignore[attr-defined]
    assert held("forgetful")
    broker.control.move_clock(61)
    assert not held("forgetful")
    assert lock(raw, "two@1", "forgetful") == [0, 1]
