"""SUBSCRIBE, FLOW and leaving, frame by frame."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.pulsar.codes import ServerError
from tests.support.pulsar_world import PulsarWorld, RawClient


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


@pytest.fixture
def raw(world: PulsarWorld) -> RawClient:
    return RawClient(world)


def refused(answer: Any) -> ServerError:
    assert answer is not None
    assert answer[0] == "ERROR", answer
    return ServerError(answer[1].error)


def test_the_same_id_again_is_success_without_a_new_grant(raw: RawClient) -> None:
    assert raw.subscribe()[0] == "SUCCESS"
    raw.flow(10)
    assert raw.subscribe()[0] == "SUCCESS"
    assert (raw.consumer.permits, len(raw.consumer.subscription.consumers)) == (10, 1)


def test_the_same_id_in_progress_is_not_ready(world: PulsarWorld, raw: RawClient) -> None:
    world.control.delay("SUBSCRIBE", 1.0)
    assert raw.subscribe() is None
    assert refused(raw.subscribe()) == ServerError.ServiceNotReady
    world.world.advance(1.1)
    assert raw.events[-1][0] == "SUCCESS"
    assert raw.subscribe()[0] == "SUCCESS"


def test_closed_while_in_progress_leaves_nothing(world: PulsarWorld, raw: RawClient) -> None:
    world.control.delay("SUBSCRIBE", 1.0)
    assert raw.subscribe() is None
    assert raw.ask("CLOSE_CONSUMER", consumer_id=0)[0] == "SUCCESS"
    world.world.advance(2)
    assert raw.session.consumers == {}
    assert world.door.topics.get("t") is None


def test_a_connection_gone_while_in_progress_leaves_nothing(world: PulsarWorld, raw: RawClient) -> None:
    world.control.delay("SUBSCRIBE", 1.0)
    raw.subscribe()
    raw.lose()
    world.world.advance(2)
    assert world.door.topics.get("t") is None
    assert RawClient(world).subscribe()[0] == "SUCCESS"


def test_flow_of_nothing_is_refused(raw: RawClient) -> None:
    raw.subscribe()
    raw.flow(0)
    assert not raw.open


def test_flow_for_nobody_is_passed_over(raw: RawClient) -> None:
    raw.flow(5, consumer_id=77)
    assert raw.open


def test_a_living_holder_keeps_its_exclusive_place(world: PulsarWorld, raw: RawClient) -> None:
    raw.subscribe()
    other = RawClient(world)
    assert other.subscribe() is None  # the holder is asked whether it is there
    assert raw.events[-1] == (raw.codec.PING,)
    raw.write(raw.codec.PONG_FRAME)
    world.world.advance(0.5)
    assert refused(other.events[-1]) == ServerError.ConsumerBusy
    assert raw.subscribe()[0] == "SUCCESS"


def test_a_dead_holder_loses_its_exclusive_place(world: PulsarWorld, raw: RawClient) -> None:
    raw.subscribe()
    other = RawClient(world)
    other.subscribe()
    world.world.advance(6)
    assert other.events[-1][0] == "SUCCESS"
    assert not raw.open


def test_a_second_on_the_same_connection_is_refused_at_once(raw: RawClient) -> None:
    raw.subscribe()
    assert refused(raw.subscribe(1)) == ServerError.ConsumerBusy


def test_types_do_not_mix_but_change_when_all_are_gone(world: PulsarWorld, raw: RawClient) -> None:
    raw.subscribe(subType=1)
    assert refused(RawClient(world).subscribe(subType=2)) == ServerError.ConsumerBusy
    raw.ask("CLOSE_CONSUMER", consumer_id=0)
    assert raw.subscribe(subType=2)[0] == "SUCCESS"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"subscription": ""}, ServerError.ProducerBusy),
        ({"subscription": "pulsar.dedup"}, ServerError.ProducerBusy),
        ({"subscription": "pulsar.repl.there"}, ServerError.ProducerBusy),
        ({"topic": "a/b"}, ServerError.InvalidTopicName),
        ({"topic": "a/b/c"}, ServerError.TopicNotFound),
        ({"topic": "non-persistent://public/default/t", "read_compacted": True}, ServerError.NotAllowedError),
        ({"topic": "new", "force_topic_creation": False}, ServerError.TopicNotFound),
        ({"read_compacted": True, "subType": 1}, ServerError.NotAllowedError),
        ({"subType": 3, "keySharedMeta": {"keySharedMode": 1}}, ServerError.ConsumerAssignError),
        ({"schema": {"name": "x", "schema_data": b"{", "type": 4}}, ServerError.IncompatibleSchema),
    ],
)
def test_refusals(raw: RawClient, fields: dict[str, Any], code: ServerError) -> None:
    assert refused(raw.subscribe(**fields)) == code
    assert raw.session.consumers == {}


def test_durable_and_not_do_not_share_a_name(world: PulsarWorld, raw: RawClient) -> None:
    raw.subscribe()
    raw.ask("CLOSE_CONSUMER", consumer_id=0)
    assert refused(raw.subscribe(durable=False)) == ServerError.NotAllowedError


def test_a_durable_subscription_ignores_the_start_once_it_is_there(raw: RawClient) -> None:
    raw.produce([b"0"], [b"1"], [b"2"])
    raw.subscribe(initialPosition=1)
    raw.ask("CLOSE_CONSUMER", consumer_id=0)
    raw.subscribe(initialPosition=0)
    assert [entry.entry for entry in raw.flow(10)] == [0, 1, 2]


def test_where_a_subscription_without_memory_starts(raw: RawClient) -> None:
    raw.produce([b"0"], [b"1"], [b"2"])
    ledger = raw.session.topics.make("t").ledger
    cases: list[tuple[dict[str, Any], list[int]]] = [
        ({"ledgerId": 2**64 - 1, "entryId": 2**64 - 1}, [0, 1, 2]),
        ({"ledgerId": 2**63 - 1, "entryId": 2**63 - 1}, []),
        ({"ledgerId": ledger, "entryId": 1}, [1, 2]),
        ({"ledgerId": ledger + 1, "entryId": 0}, []),
        ({"ledgerId": 0, "entryId": 5}, [0, 1, 2]),
    ]
    for start, expected in cases:
        raw.subscribe(durable=False, start_message_id=start)
        assert [entry.entry for entry in raw.flow(10)] == expected, start
        raw.ask("CLOSE_CONSUMER", consumer_id=0)
        assert raw.session.topics.make("t").subscriptions == {}


def test_a_lost_connection_hands_on_what_it_had(world: PulsarWorld, raw: RawClient) -> None:
    raw.produce([b"0"], [b"1"], [b"2"])
    raw.subscribe(subType=1)
    assert len(raw.flow(2)) == 2
    other = RawClient(world)
    other.subscribe(subType=1)
    other.flow(10)
    raw.lose()
    assert sorted((entry.entry, entry.redelivery_count) for entry in other.entries()) == [(0, 0), (1, 0), (2, 0)]


def test_unsubscribe(world: PulsarWorld, raw: RawClient) -> None:
    assert refused(raw.ask("UNSUBSCRIBE", consumer_id=5)) == ServerError.MetadataError
    raw.subscribe(subType=1)
    other = RawClient(world)
    other.subscribe(subType=1)
    assert refused(raw.ask("UNSUBSCRIBE", consumer_id=0)) == ServerError.MetadataError
    assert raw.ask("UNSUBSCRIBE", consumer_id=0, force=True)[0] == "SUCCESS"
    assert [name for name, _ in other.events[-1:]] == ["CLOSE_CONSUMER"]
    assert world.door.topics.make("t").subscriptions == {}


def test_stats(raw: RawClient) -> None:
    raw.produce([b"0", b"1"], [b"2"])
    raw.subscribe(subType=1, consumer_name="me")
    raw.flow(1)
    shown = raw.ask("CONSUMER_STATS", consumer_id=0)[1]
    assert (shown.consumerName, shown.unackedMessages, shown.msgBacklog, shown.type) == ("me", 2, 2, "Shared")
    assert shown.availablePermits == 0
    assert raw.ask("CONSUMER_STATS", consumer_id=9)[1].error_code == ServerError.ConsumerNotFound


def test_a_reader_that_begins_some_time_ago(world: PulsarWorld, raw: RawClient) -> None:
    for body in (b"0", b"1", b"2"):
        raw.produce([body])
        world.world.advance(10)
    start = {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1}
    asked: dict[str, Any] = {"durable": False, "start_message_id": start, "start_message_rollback_duration_sec": 25}
    raw.subscribe(subscription="r", **asked)
    assert [entry.entry for entry in raw.flow(10)] == [1, 2]
