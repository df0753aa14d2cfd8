"""One entry on its way: outcomes by index, callbacks once, waits that end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mqclient.errors import LinkError, MQError
from mqclient.pulsar.batch import Batch
from mqclient.pulsar.client import ClientEngine
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def batch(client: ClientEngine, count: int = 3) -> Batch:
    with client.driver.enter():
        made = Batch(client, -1, 10, client.driver.now.mono + 30)
    made.count = count
    return made


def test_outcomes(world: PulsarWorld, codec: Any) -> None:
    client = world.client()
    made = batch(client)
    assert (made.last_sequence_id, made.done, made.error) == (12, False, None)
    with client.driver.enter():
        made.complete(5, 6)
    assert made.outcome(1) == codec.pulsar.MessageId(5, 6, -1, 1, 3)
    assert [at.batch_index for at in made.outcomes(1, 3)] == [1, 2]
    alone = batch(client, 1)
    alone.batched = False
    with client.driver.enter():
        alone.complete(5, 7)
    assert alone.outcome(0) == codec.pulsar.MessageId(5, 7)


def test_an_error_is_every_message_s(world: PulsarWorld) -> None:
    client = world.client()
    made = batch(client)
    error = LinkError("gone")
    with client.driver.enter():
        made.fail(error)
    assert made.outcomes(0, 3) == [error] * 3


def test_callbacks_come_once_each_before_and_after(world: PulsarWorld, codec: Any) -> None:
    client = world.client()
    told: list[Any] = []
    made = batch(client)
    made.on_done(told.append, 0)
    made.on_done(told.append, 1)
    with client.driver.enter():
        made.complete(1, 2)
    assert told == []  # not inside
    world.world.run()
    made.on_done(told.append, 2)
    world.world.run()
    assert told == [codec.handover.SendFuture(made, index) for index in range(3)]


def test_a_callback_that_fails_keeps_no_other_from_its_call(
    world: PulsarWorld, caplog: pytest.LogCaptureFixture
) -> None:
    client = world.client()
    told: list[Any] = []
    made = batch(client)
    made.on_done(lambda future: 1 / 0, 0)
    made.on_done(told.append, 1)
    with client.driver.enter():
        made.complete(1, 2)
    world.world.run()
    assert [future.index for future in told] == [1]
    assert "callback" in caplog.text


def test_watchers_are_told_inside(world: PulsarWorld) -> None:
    client = world.client()
    told: list[Any] = []
    made = batch(client)
    made.then(told.append)
    with client.driver.enter():
        made.complete(1, 2)
        assert told == [made]
        made.then(told.append)
    assert told == [made, made]


def test_waiting(world: PulsarWorld) -> None:
    client = world.client()
    made = batch(client)
    assert not made.wait(0.5)

    def complete() -> None:
        with client.driver.enter():
            made.complete(1, 2)

    world.world.at(world.world.mono + 1, complete)
    assert made.wait(5)
    with pytest.raises(MQError, match="await"):
        batch(world.client(blocking=False)).wait(1)


def test_waited_for_by_engine_and_tasks(world: PulsarWorld) -> None:
    client, error = world.client(), LinkError("gone")

    async def outcomes(made: Batch, end: Callable[[], None]) -> list[Any]:
        loop = asyncio.get_running_loop()
        slot, waits = made.watch(0), [made.awaited(index, loop) for index in range(3)]

        async def one(wait: Any) -> Any:
            return await wait

        tasks = [asyncio.create_task(one(wait)) for wait in waits]
        await asyncio.sleep(0)
        with client.driver.enter():
            end()
        assert slot.done
        return await asyncio.gather(*tasks, return_exceptions=True)

    good, bad = batch(client), batch(client)
    found = asyncio.run(outcomes(good, lambda: good.complete(5, 6)))
    assert [(one.entry, one.batch_index) for one in found] == [(6, 0), (6, 1), (6, 2)]
    assert asyncio.run(outcomes(bad, lambda: bad.fail(error))) == [error] * 3


def test_in_parts_the_first_is_remembered(world: PulsarWorld, codec: Any) -> None:
    client = world.client()
    made = batch(client, 1)
    made.batched, made.chunks = False, 2
    assert [made.arrive(5, 6), made.arrive(5, 7)] == [False, True]
    with client.driver.enter():
        made.complete(5, 7)
    assert made.outcome(0).first_chunk == codec.pulsar.MessageId(5, 6)
