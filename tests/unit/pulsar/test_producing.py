"""How producers come to be: one topic, all partitions, or an error with its cure."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ClosedError, ConfigError
from mqclient.pulsar import producing
from mqclient.pulsar.codes import BrokerError, ServerError
from mqclient.pulsar.names import TopicName
from mqclient.pulsar.partitioned import PartitionedProducer
from mqclient.pulsar.producer import ProducerEngine
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def test_one_topic_or_its_partitions(world: PulsarWorld) -> None:
    world.door.topics.partition(TopicName.parse("parted"), 2)
    client = world.client()
    assert isinstance(world.producer(client, "plain"), ProducerEngine)
    assert isinstance(world.producer(client, "parted"), PartitionedProducer)
    assert isinstance(world.producer(client, "parted-partition-1"), ProducerEngine)


def test_a_wrong_option_is_told_before_anything_is_asked(world: PulsarWorld) -> None:
    with pytest.raises(ConfigError, match="batch_max_bytes"):
        world.producer(world.client(), "t", batch_max_byte=1)
    with pytest.raises(ConfigError, match="compression='gzip'"):
        world.producer(world.client(), "t", compression="gzip")


def test_a_refused_one_leaves_nothing(world: PulsarWorld) -> None:
    client = world.client()
    world.control.answer("PRODUCER", ServerError.NotAllowedError, "no")
    with pytest.raises(BrokerError, match="no"):
        world.producer(client, "t")
    assert not client._members


def test_a_closed_client_opens_nothing(world: PulsarWorld) -> None:
    client = world.client()
    world.steps(client, client.close_steps)
    with pytest.raises(ClosedError):
        world.do(client, lambda: producing.open_producer(client, "t", {}, None))
