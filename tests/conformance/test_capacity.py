"""What a broker of its own process takes in and gives out for how much processor time, and what it needs to store it.

The client is floor/load.c. Rates of a busy machine say nothing, so that processor time stands for them: half a million
messages a second is two microseconds each.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.load import (
    BrokerProcess,
    Request,
    Spent,
    broker,
    pulsar_receive,
    pulsar_send,
    rocketmq_batch,
    rocketmq_pull,
)

pytestmark = pytest.mark.ci

ROUNDS = 8
IN, OUT = 2.0, 0.4
"""Microseconds of the broker's processor time for a message."""
COUNTS = {"ci": 1_000_000, "soak": 10_000_000}
EACH = 250
"""Bytes of memory for a stored message of 100 bytes: 2.5 GB for ten million."""
ALONE = 100 << 20
"""What a broker and its requests take besides."""
BODY = b"x" * 100


@pytest.fixture(name="running")
def running_fixture() -> Iterator[BrokerProcess]:
    with broker("--impl", "native") as running:
        yield running


def cheapest(running: BrokerProcess, request: Request, total: int) -> Spent:
    """The best of some rounds: neighbours on a core slow down who has done nothing, too."""
    return min((running.run(request, total) for _ in range(ROUNDS)), key=lambda spent: spent.cpu)


def test_half_a_million_messages_a_second_come_in(running: BrokerProcess) -> None:
    assert cheapest(running, rocketmq_batch("small", 32, 100), 4000).cpu < IN
    assert cheapest(running, rocketmq_batch("large", 1000, 100), 200).cpu < IN
    assert cheapest(running, pulsar_send("in", [BODY] * 1000), 200).cpu < IN


def test_two_million_messages_a_second_go_out(running: BrokerProcess) -> None:
    running.run(rocketmq_batch("out", 1024, 128), 4)
    spent = cheapest(running, rocketmq_pull("out", 1024), 400)
    assert spent.bytes > spent.messages * 128, "the messages came"
    assert spent.cpu < OUT
    running.run(pulsar_send("out", [BODY] * 1000), 1000)
    spent = cheapest(running, pulsar_receive("out", 1000, 4), 250)
    assert spent.bytes > spent.messages * 100, "the messages came"
    assert spent.cpu < OUT


@pytest.mark.timeout(600)
@pytest.mark.parametrize("protocol", ["rocketmq", "pulsar"])
def test_what_is_stored_fits_into_memory(running: BrokerProcess, protocol: str, scale: str) -> None:
    count = COUNTS[scale]
    request = rocketmq_batch("kept", 1000, 100) if protocol == "rocketmq" else pulsar_send("kept", [BODY] * 1000)
    running.run(request, count // 1000)
    assert count * 100 < running.memory() < count * EACH + ALONE * (scale != "soak")
