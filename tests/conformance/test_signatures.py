"""Every difference between the two protocols' verbs is declared with its reason, and none that is not there."""

from __future__ import annotations

import inspect

import pytest

from mqclient import pulsar, rocketmq
from mqclient.pulsar import aio as pulsar_aio
from mqclient.rocketmq import aio as rocketmq_aio
from tests.conformance import signatures
from tests.conformance.differences import SIGNATURES


def test_what_is_not_taken_alike_is_declared() -> None:
    assert {difference.verb for difference in signatures.differences()} == set(SIGNATURES)


@pytest.mark.parametrize(
    ("sync", "asynchronous"),
    [
        (getattr(one, name), getattr(other, name))
        for one, other, names in (
            (rocketmq, rocketmq_aio, ("Client", "Producer", "PopConsumer", "PullConsumer", "PushConsumer", "Admin")),
            (pulsar, pulsar_aio, ("Client", "Producer", "Consumer", "Reader", "TableView")),
        )
        for name in names
    ],
)
def test_the_asyncio_twin_takes_the_same(sync: type, asynchronous: type) -> None:
    common = signatures.public(sync) & signatures.public(asynchronous)
    assert {"close"} <= common
    for verb in common:
        mine, its = signatures.parameters(sync, verb), signatures.parameters(asynchronous, verb)
        assert signatures.alike(mine, its), verb
        assert {one.name for one in mine} == {one.name for one in its}, verb


def test_differences_are_seen() -> None:
    def parameters(call: object) -> list[inspect.Parameter]:
        return list(inspect.signature(call).parameters.values())  # type: ignore[arg-type]

    base = parameters(lambda a, b=1, *, c=2: None)
    assert signatures.alike(base, parameters(lambda a, b=1, *, d=3: None))
    assert not signatures.alike(base, parameters(lambda b=1, a=2, *, c=2: None))
    assert not signatures.alike(base, parameters(lambda a, b=2, *, c=2: None))
    assert not signatures.alike(base, parameters(lambda a, b=1, *, c=3: None))
    assert not signatures.alike(base, parameters(lambda a, b=1, c=2: None))
    assert signatures.shown(base, parameters(lambda x, c=1: None)) == "(a, b=1, *, c=2)"
