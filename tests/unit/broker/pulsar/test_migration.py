"""Topics that are in another cluster: who is sent there, and when."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.pulsar_world import PulsarWorld, RawClient


@pytest.fixture
def raw(codec: Any) -> RawClient:
    return RawClient(PulsarWorld(codec))


@pytest.mark.parametrize("kind", [0, 1, 2, 3])
def test_consumers_leave_when_all_is_acknowledged(raw: RawClient, kind: int) -> None:
    door = raw.world.door
    raw.produce([b"1"], [b"2"])
    raw.subscribe(subType=kind)
    assert len(raw.flow(5)) == 2
    door.migrate("t", "pulsar://green:6650", "")
    raw.world.world.run()
    topic = door.topics.make("t")
    ids = [{"ledgerId": topic.ledger, "entryId": number} for number in (0, 1)]
    assert raw.tell("ACK", consumer_id=0, ack_type=0, message_id=ids[:1]) == []
    told = raw.tell("ACK", consumer_id=0, ack_type=0, message_id=ids[1:])
    assert [name for name, _ in told] == ["TOPIC_MIGRATED", "CLOSE_CONSUMER"]
    assert (told[0][1].resource_id, told[0][1].resource_type) == (0, 1)
    assert told[0][1].brokerServiceUrl == "pulsar://green:6650"
    assert list(topic.subscriptions) == ["s"]


def test_those_who_come_later(raw: RawClient) -> None:
    raw.produce([b"1"])
    raw.subscribe()
    raw.ask("CLOSE_CONSUMER", consumer_id=0)
    raw.world.door.migrate("t", "pulsar://green:6650", "pulsar+ssl://green:6651")
    raw.world.world.run()
    raw.events.clear()
    assert raw.ask("PRODUCER", topic="t", producer_id=7) is None
    assert [name for name, _ in raw.events] == ["TOPIC_MIGRATED", "CLOSE_PRODUCER"]
    assert raw.subscribe(1, subscription="new") is None
    assert raw.subscribe(2)[0] == "SUCCESS"  # there is something left for it
    assert list(raw.session.consumers) == [2]
