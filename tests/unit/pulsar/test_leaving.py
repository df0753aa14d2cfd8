"""The end of a process that closed nothing: acknowledgements are told, what gathers is sent, the rest is counted."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.pulsar.outgoing import prepare
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def test_what_gathers_is_sent_and_acknowledgements_are_told(world: PulsarWorld) -> None:
    client = world.client()
    world.rest("PUT", "persistent/public/default/many/partitions", 2)
    producer = world.producer(client, "t", linger=50.0)
    consumers: list[Any] = [
        world.consumer(client, "t", "s", ack_grouping=50.0),
        world.consumers(client, ["t", "many"], "several", ack_grouping=50.0),
    ]
    world.send(producer, b"1")
    with client.driver.enter():
        producer.submit(prepare(b"2"))
        producer.submit(prepare(b"3"))
        assert client.unsettled() == {"the producer of persistent://public/default/t": 2}
    for consumer in consumers:
        face = world.face(consumer)
        face.ack(face.receive(1))
    said = world.do(client, client.on_exit)
    assert [slot.error for slot in said] == [None]
    world.world.run()
    assert client.unsettled() == {}
    assert world.control.count("ACK") == 2
    assert world.door.topics.make("t").log.next == 2


def test_partitions_are_one_topic_and_whoever_waits_for_room_counts(world: PulsarWorld) -> None:
    world.rest("PUT", "persistent/public/default/many/partitions", 3)
    client = world.client()
    producer = world.producer(client, "many", batching=False, max_pending=4)
    world.control.drop("SEND", times=100)
    for number in range(6):
        world.ask(client, lambda number=number: producer.send(prepare(b"%d" % number)))  # type: ignore[misc]
    world.world.run()
    assert client.unsettled() == {"the producer of persistent://public/default/many": 6}
    leaving = world.ask(client, client.on_exit)
    world.world.advance(1)
    assert not leaving.done
