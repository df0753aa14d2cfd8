"""Asking again: while it helps and there is time, and no longer."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.pulsar.codes import BrokerError, ServerError
from mqclient.pulsar.names import TopicName
from mqclient.pulsar.patience import partitions_steps
from tests.support.pulsar_world import PulsarWorld


def ask(world: PulsarWorld, seconds: float) -> int:
    client = world.client()
    return world.steps(client, lambda: partitions_steps(client, TopicName.parse("t"), world.world.mono + seconds))


def test_it_asks_again_while_there_is_time(codec: Any) -> None:
    world = PulsarWorld(codec)
    world.control.answer("PARTITIONED_METADATA", ServerError.ServiceNotReady, "soon", times=3)
    assert ask(world, 10) == 0
    world.control.answer("PARTITIONED_METADATA", ServerError.ServiceNotReady, "soon", times=100)
    with pytest.raises(BrokerError, match="soon"):
        ask(world, 1)
    assert world.world.mono < 1013


def test_what_will_not_change_is_told_at_once(codec: Any) -> None:
    world = PulsarWorld(codec)
    world.control.answer("PARTITIONED_METADATA", ServerError.AuthorizationError, "not you", times=1)
    with pytest.raises(BrokerError, match="not you"):
        ask(world, 10)
    assert world.world.mono < 1001
