"""What a handler failed on goes back to the broker, or stays with whoever gets the queue."""

from __future__ import annotations

from typing import Any

from mqclient.core.steps import run_steps
from mqclient.rocketmq.remoting.failures import DEAD, SendBack
from tests.unit.rocketmq.remoting.cluster import VirtualCluster


def test_until_the_broker_has_it_or_the_queue_is_gone(codec: Any) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    batches: list[Any] = []
    push = cluster.client().push("g", "orders", batches.append, start="first")
    cluster.fill("orders", 1)
    cluster.world.advance(1)
    (held,) = (held for held in push.member.queues.values() if held.queue.topic == "orders")
    send_back = SendBack(push.member, 16)

    def give(level: int) -> Any:
        with push.driver.enter():
            return run_steps(send_back.steps(held, batches[0][0], level))

    assert cluster.world.result(give(DEAD)) is True
    assert cluster.broker.broker.topics["%DLQ%g"].queues[0].log.next == 1
    cluster.control.answer("CONSUMER_SEND_MSG_BACK", 1, "no", times=1)
    slot = give(0)
    cluster.world.advance(4)
    assert not slot.done
    cluster.world.advance(2)
    assert slot.result() is True
    cluster.control.answer("CONSUMER_SEND_MSG_BACK", 1, "no", times=99)
    slot = give(0)
    with push.driver.enter():
        held.drop()
    cluster.world.advance(6)
    assert slot.result() is False
