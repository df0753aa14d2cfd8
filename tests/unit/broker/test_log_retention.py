"""What is too much or too old goes, the oldest of all logs first, and nobody trips over what is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqclient import pulsar
from mqclient.broker import EmbeddedBroker
from mqclient.broker.control import Clock
from mqclient.broker.log_retention import BESIDE, Retention
from mqclient.broker.store import Log
from mqclient.rocketmq.codes import Response
from tests.unit.broker.remoting.raw import Raw


class Frozen(Clock):
    def wall_ms(self) -> int:
        return 100_000


def filled(count: int, start: int, step: int) -> Log:
    """Records of 10 bytes, six to a block."""
    log = Log(64)
    for number in range(count):
        log.append(b"%010d" % number, start + step * number)
    return log


def look(logs: list[Log], limit: int = 1 << 40, seconds: float | None = None) -> list[tuple[int, int]]:
    Retention(Frozen(), lambda: [(log, log.trim) for log in logs], limit, seconds).look()
    return [(log.first, log.next) for log in logs]


def test_the_oldest_blocks_of_all_go_first() -> None:
    each = 10 + BESIDE
    logs = [filled(12, 1000, 1), filled(12, 500, 100), Log()]
    assert look(logs, 24 * each) == [(0, 12), (0, 12), (0, 0)]
    assert look(logs, 24 * each - 1) == [(0, 12), (6, 12), (0, 0)]
    assert look(logs, 18 * each - 1) == [(6, 12), (6, 12), (0, 0)]
    assert look(logs, 0) == [(12, 12), (12, 12), (0, 0)]
    assert look(logs, 0) == [(12, 12), (12, 12), (0, 0)]


def test_what_is_too_old_goes() -> None:
    logs = [filled(5, 97_000, 1000), filled(2, 1000, 1)]
    assert look(logs, seconds=2) == [(1, 5), (2, 2)]
    assert look(logs, seconds=0.5) == [(3, 5), (2, 2)]


def test_a_broker_forgets_and_says_so(codec: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"doors": ["rocketmq"], "impl": codec, "data": tmp_path, "retention_bytes": 4_000_000}
    with EmbeddedBroker(**options) as broker, Raw(codec.remoting, broker.addresses()["broker-a"]) as raw:
        raw.create_topic("orders", 1)
        for _ in range(40):
            raw.send("orders", b"x" * 200_000)
        broker.control.call(broker.retention.look)
        answer = raw.pull("g", "orders", 0)
        first = int(answer.field("minOffset"))
        assert answer.code == Response.PULL_OFFSET_MOVED
        assert 15 < first < 30
        assert raw.pull("g", "orders", first).code == 0
    with EmbeddedBroker(**options) as broker, Raw(codec.remoting, broker.addresses()["broker-a"]) as raw:
        assert int(raw.pull("g", "orders", 0).field("minOffset")) == first


@pytest.mark.parametrize("kind", ["exclusive", "shared"])
def test_subscriptions_go_on_behind_what_is_gone(codec: Any, kind: str) -> None:
    with (
        EmbeddedBroker(doors=["pulsar"], impl=codec, retention_bytes=4_000_000) as broker,
        pulsar.Client(broker.pulsar_url) as client,
    ):
        with (
            client.consumer("orders", "s", type=kind) as consumer,
            client.producer("orders", batch_max_messages=1) as producer,
        ):
            for number in range(40):
                producer.send(b"%04d" % number * 50_000)
            consumer.ack(consumer.receive(10))
        broker.control.call(broker.retention.look)
        with client.consumer("orders", "s", type=kind) as again:
            message = again.receive(10)
            assert 15 < int(message.body[:4]) < 30
            again.ack(message)
