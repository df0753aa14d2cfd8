"""PRODUCER, frame by frame: names, access modes, what comes with a producer."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.pulsar.codes import ProducerAccessMode, ServerError
from tests.support.pulsar_world import PulsarWorld, RawClient


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


@pytest.fixture
def raw(world: PulsarWorld) -> RawClient:
    return RawClient(world)


SHARED, ALONE, WAITING, FENCING = ProducerAccessMode


def test_the_same_id_again(world: PulsarWorld, raw: RawClient) -> None:
    name = raw.ask("PRODUCER", topic="t", producer_id=1)[1].producer_name
    assert raw.ask("PRODUCER", topic="t", producer_id=1)[1].producer_name == name
    world.control.delay("PRODUCER", 1.0)
    assert raw.ask("PRODUCER", topic="t", producer_id=2) is None
    assert raw.ask("PRODUCER", topic="t", producer_id=2)[1].error == ServerError.ServiceNotReady
    world.world.advance(2)
    assert raw.events[-1][0] == "PRODUCER_SUCCESS"


def test_closed_or_lost_while_in_progress(world: PulsarWorld, raw: RawClient) -> None:
    for leave in (lambda: raw.ask("CLOSE_PRODUCER", producer_id=1), raw.lose):
        world.control.delay("PRODUCER", 1.0)
        raw.ask("PRODUCER", topic="t", producer_id=1)
        leave()
        world.world.advance(2)
        assert world.door.topics.get("t") is None


def test_a_refusal_after_a_delay(world: PulsarWorld, raw: RawClient) -> None:
    world.control.delay("PRODUCER", 1.0)
    raw.ask("PRODUCER", topic="a/b/c", producer_id=1)
    world.world.advance(2)
    assert raw.events[-1][1].error == ServerError.TopicNotFound


def test_names(world: PulsarWorld, raw: RawClient) -> None:
    raw.ask("PRODUCER", topic="t", producer_id=1, producer_name="mine")
    assert raw.ask("PRODUCER", topic="t", producer_id=2, producer_name="mine")[1].error == ServerError.ProducerBusy
    other = RawClient(world)
    assert other.ask("PRODUCER", topic="t", producer_id=1, producer_name="mine") is None
    raw.write(raw.codec.PONG_FRAME)
    world.world.advance(0.2)
    assert other.events[-1][1].error == ServerError.ProducerBusy
    assert other.session.producers == {}
    assert other.ask("PRODUCER", topic="u", producer_id=1, producer_name="mine")[0] == "PRODUCER_SUCCESS"
    raw.lose()
    assert other.ask("PRODUCER", topic="t", producer_id=2, producer_name="mine")[0] == "PRODUCER_SUCCESS"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"schema": {"name": "x", "schema_data": b"{", "type": 4}}, ServerError.IncompatibleSchema),
    ],
)
def test_refusals(raw: RawClient, fields: dict[str, Any], code: ServerError) -> None:
    assert raw.ask("PRODUCER", **{"topic": "t", "producer_id": 1, **fields})[1].error == code
    assert raw.session.producers == {}


def make(raw: RawClient, producer_id: int, mode: int, **fields: Any) -> Any:
    return raw.ask("PRODUCER", topic="t", producer_id=producer_id, producer_access_mode=mode, **fields)[1]


def test_a_dead_holder_loses_its_name(world: PulsarWorld, raw: RawClient) -> None:
    raw.ask("PRODUCER", topic="t", producer_id=1, producer_name="mine")
    other = RawClient(world)
    assert other.ask("PRODUCER", topic="t", producer_id=1, producer_name="mine") is None
    world.world.advance(6)
    assert (other.events[-1][0], raw.open) == ("PRODUCER_SUCCESS", False)


def test_alone(raw: RawClient) -> None:
    """As recorded in errors_producer_access."""
    made = make(raw, 1, ALONE)
    assert (made.topic_epoch, made.producer_ready) == (0, True)
    for mode, code in ((SHARED, ServerError.ProducerBusy), (ALONE, ServerError.ProducerFenced)):
        refused = make(raw, 2, mode)
        assert refused.error == code
        assert refused.message == f"Topic has an existing exclusive producer: {made.producer_name}"
    assert make(raw, 3, FENCING).topic_epoch == 1
    assert list(raw.session.producers) == [3]
    assert make(raw, 1, ALONE, topic_epoch=0).error == ServerError.ProducerFenced
    raw.ask("CLOSE_PRODUCER", producer_id=3)
    assert "epoch has already moved" in make(raw, 1, ALONE, topic_epoch=0).message
    assert make(raw, 1, FENCING, topic_epoch=0).error == ServerError.ProducerFenced
    assert make(raw, 3, FENCING, topic_epoch=1).topic_epoch == 1
    raw.ask("CLOSE_PRODUCER", producer_id=3)
    shared = make(raw, 4, SHARED)
    assert shared.topic_epoch == 1
    assert make(raw, 5, ALONE).message == "Topic has existing shared producers"


def test_who_was_put_out_and_sends_loses_its_connection(world: PulsarWorld, raw: RawClient) -> None:
    make(raw, 1, SHARED)
    make(RawClient(world), 1, FENCING)
    raw.write(raw.codec.encode_send(1, 0, raw.codec.encode_metadata("p", 0, 1), b""))
    assert not raw.open


def test_waiting_to_be_alone(world: PulsarWorld, raw: RawClient) -> None:
    """As recorded in java_wait_for_exclusive."""
    make(raw, 1, ALONE)
    first = make(raw, 2, WAITING)
    assert (first.producer_ready, first.HasField("topic_epoch")) == (False, False)
    assert make(raw, 2, WAITING).error == ServerError.ServiceNotReady
    assert make(raw, 3, WAITING).producer_ready is False
    raw.ask("CLOSE_PRODUCER", producer_id=3)
    raw.ask("CLOSE_PRODUCER", producer_id=1)
    (name, told), (last, _) = raw.events
    assert (name, told.request_id, told.producer_name) == ("PRODUCER_SUCCESS", first.request_id, first.producer_name)
    assert (told.producer_ready, told.topic_epoch, last) == (True, 1, "SUCCESS")
    other = RawClient(world)
    waiting = make(other, 1, WAITING)
    assert waiting.producer_ready is False
    assert make(raw, 5, SHARED).error == ServerError.ProducerBusy
    other.events.clear()
    assert make(raw, 4, FENCING).topic_epoch == 2
    (_, refused), *_ = other.events
    assert (refused.request_id, refused.error) == (waiting.request_id, ServerError.ProducerFenced)
    assert other.session.producers == {}


def test_waiting_behind_shared_ones(raw: RawClient) -> None:
    make(raw, 1, SHARED)
    make(raw, 2, SHARED)
    assert make(raw, 3, WAITING).producer_ready is False
    raw.ask("CLOSE_PRODUCER", producer_id=1)
    assert [name for name, _ in raw.events] == ["SUCCESS"]
    raw.ask("CLOSE_PRODUCER", producer_id=2)
    assert [name for name, _ in raw.events] == ["PRODUCER_SUCCESS", "SUCCESS"]


def test_an_initial_subscription(world: PulsarWorld, raw: RawClient) -> None:
    asked = {"topic": "t", "initial_subscription_name": "init"}
    assert raw.ask("PRODUCER", producer_id=1, **asked)[0] == "PRODUCER_SUCCESS"
    raw.produce([b"a"])
    assert raw.ask("PRODUCER", producer_id=2, **asked)[0] == "PRODUCER_SUCCESS"
    raw.subscribe(subscription="init", initialPosition=0)
    assert len(raw.flow(5)) == 1
    world.rest("POST", "namespaces/public/default/autoSubscriptionCreation", {"allowAutoSubscriptionCreation": False})
    refused = raw.ask("PRODUCER", topic="t", producer_id=3, initial_subscription_name="other")[1]
    assert refused.error == ServerError.NotAllowedError
