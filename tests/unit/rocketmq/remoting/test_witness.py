"""A topic that was made anew is known by the store time of a message that we consumed (story 3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqclient.rocketmq.model import MessageQueue
from tests.unit.rocketmq.remoting.cluster import VirtualCluster

QUEUE = MessageQueue("news", "broker-a", 0)


def listen(cluster: VirtualCluster, folder: Path, got: list[bytes]) -> Any:
    client = cluster.client(offset_dir=str(folder))

    def handle(messages: Any) -> None:
        got.extend(one.body for one in messages)

    push = client.push("audit", "news", handle, model="broadcasting", start="first")
    cluster.world.advance(6)
    return push


@pytest.mark.parametrize("count", [3, 5, 8], ids=["shorter", "as long", "longer"])
def test_a_topic_made_anew_is_read_from_its_beginning(
    codec: Any, tmp_path: Path, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("news", 1)
    cluster.fill("news", 5)
    before: list[bytes] = []
    listen(cluster, tmp_path, before).close()
    assert len(before) == 5
    cluster.world.advance(1000)
    del cluster.broker.broker.topics["news"]
    cluster.topic("news", 1)
    cluster.fill("news", count)
    after: list[bytes] = []
    push = listen(cluster, tmp_path, after)
    assert len(after) == count
    assert push.member.corrected == 0
    assert sum("was made anew" in record.getMessage() for record in caplog.records) == 1
    push.close()
    again: list[bytes] = []
    listen(cluster, tmp_path, again)
    assert again == []


@pytest.mark.parametrize("trim", [0, 4, 7])
def test_the_same_topic_goes_on_where_it_was(codec: Any, tmp_path: Path, trim: int) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("news", 1)
    cluster.fill("news", 5)
    listen(cluster, tmp_path, []).close()
    cluster.world.advance(1000)
    cluster.fill("news", 4)
    cluster.broker.broker.topics["news"].queues[0].log.trim(trim)
    after: list[bytes] = []
    listen(cluster, tmp_path, after)
    assert len(after) == min(4, 9 - trim)


def test_who_cannot_look_goes_on_as_stored(codec: Any, tmp_path: Path) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("news", 1)
    cluster.fill("news", 5)
    listen(cluster, tmp_path, []).close()
    cluster.control.answer("SEARCH_OFFSET_BY_TIMESTAMP", 1, "no", times=99)
    del cluster.broker.broker.topics["news"]
    cluster.topic("news", 1)
    cluster.world.advance(1000)
    cluster.fill("news", 6)
    after: list[bytes] = []
    push = listen(cluster, tmp_path, after)
    assert len(after) == 1
    assert push.member.queues[QUEUE].started_at == 5
