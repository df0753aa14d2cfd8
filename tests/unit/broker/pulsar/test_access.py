"""Who may produce: the rules alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mqclient.broker.pulsar.access import Access
from mqclient.broker.pulsar.refused import Refused
from mqclient.pulsar.codes import ProducerAccessMode, ServerError

SHARED, ALONE, WAITING, FENCING = ProducerAccessMode


def producer(name: str, mode: int, epoch: int | None = None) -> Any:
    return SimpleNamespace(name=name, mode=mode, topic_epoch=epoch)


def test_epochs_count_who_was_alone() -> None:
    access = Access()
    for number in range(3):
        alone = producer("a", ALONE)
        assert access.enter(alone)
        assert (access.epoch, alone.topic_epoch) == (number, number)
        assert access.leave(alone) is None
    back = producer("a", ALONE, 2)
    assert access.enter(back)
    assert access.epoch == 2
    access.leave(back)
    with pytest.raises(Refused) as refused:
        access.enter(producer("old", FENCING, 1))
    assert refused.value.code == ServerError.ProducerFenced


def test_waiting_is_in_order_and_can_be_given_up() -> None:
    access = Access()
    first, second, third = (producer(name, WAITING) for name in "abc")
    assert access.enter(first)
    assert not access.enter(second)
    assert not access.enter(third)
    with pytest.raises(Refused) as refused:
        access.enter(producer("d", SHARED))
    assert refused.value.code == ServerError.ProducerBusy
    assert access.leave(second) is None
    assert access.leave(first) is third
    assert access.exclusive is third
    assert access.leave(first) is None


def test_what_is_told() -> None:
    access = Access()
    access.enter(producer("a", SHARED))
    with pytest.raises(Refused, match="existing shared producers"):
        access.enter(producer("b", ALONE))
    access.enter(producer("w", WAITING))
    access.producers.clear()
    with pytest.raises(Refused, match="wait to be alone"):
        access.enter(producer("b", SHARED))
