"""Rows of Arrow columns become batch requests: every row once, in order, with its tag, keys and properties."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError, MQError
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting import columns as module
from mqclient.rocketmq.remoting.columns import Sheaf, cuts, prepare_rows
from mqclient.rocketmq.remoting.producer import ProducerEngine
from tests.unit.rocketmq.remoting.cluster import VirtualCluster

pa: Any = pytest.importorskip("pyarrow")
QUEUE = MessageQueue("orders", "broker-a", 1)


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 2)
    return cluster


def rows(count: int, **more: Any) -> Any:
    return pa.RecordBatch.from_pydict({"body": [b"%d" % number for number in range(count)], **more})


def send(cluster: VirtualCluster, batch: Any, topic: str = "orders", **given: Any) -> Any:
    client = cluster.client()
    with client.driver.enter():
        engine = ProducerEngine(client.engine, "g")
    sheaf = Sheaf(engine, topic, prepare_rows(batch, given.get("columns")), None, given.get("queue"))
    return client.driver.wait(sheaf.submit(client.driver))


def stored(cluster: VirtualCluster, queue: MessageQueue = QUEUE) -> list[Any]:
    log = cluster.broker.broker.topics[queue.topic].queue(queue.queue_id).log
    views, _ = log.read(0, 100_000, 1 << 30)
    return list(cluster.codec.remoting.decode_messages(b"".join(views)))


def test_rows_arrive_in_order_with_what_belongs_to_them(cluster: VirtualCluster) -> None:
    maps = pa.array([[("a", "1")], [], [("b", "2"), ("c", "3")]], pa.map_(pa.string(), pa.string()))
    batch = rows(3, keys=["k0", None, "k2 x"], tag=[None, "t", "t"], properties=maps)
    outcome = send(cluster, batch, queue=QUEUE)
    assert [(part.start, part.stop, part.ok) for part in outcome] == [(0, 3, True)]
    assert (outcome[0].outcome.queue, outcome[0].outcome.offset) == (QUEUE, 0)
    found = stored(cluster)
    assert [message.body for message in found] == [b"0", b"1", b"2"]
    assert [(message.keys, message.tag) for message in found] == [(("k0",), None), ((), "t"), (("k2", "x"), "t")]
    assert [message.property("b") for message in found] == [None, None, "2"]
    assert len({message.message_id for message in found}) == 3


def test_many_rows_are_cut_and_spread(cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BATCH", 10)
    outcome = send(cluster, rows(35))
    assert [(part.start, part.stop) for part in outcome] == [(0, 10), (10, 20), (20, 30), (30, 35)]
    both = [[message.body for message in stored(cluster, QUEUE._replace(queue_id=number))] for number in (0, 1)]
    assert sorted(len(bodies) for bodies in both) in ([15, 20],)
    assert sorted(int(body) for bodies in both for body in bodies) == list(range(35))


def test_a_size_is_kept_and_one_row_always_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BATCH_BYTES", 1000)
    batch = pa.RecordBatch.from_pydict({"body": [b"x" * 300] * 5 + [b"y" * 5000] + [b"z"] * 5})
    prepared, count = prepare_rows(batch, None)
    assert cuts(prepared, count) == [(0, 2), (2, 4), (4, 5), (5, 6), (6, 11)]


def test_properties_count_for_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BATCH_BYTES", 1000)
    maps = pa.array([[("name", "v" * 700)]] * 3, pa.map_(pa.string(), pa.string()))
    prepared, count = prepare_rows(rows(3, properties=maps), None)
    assert cuts(prepared, count) == [(0, 1), (1, 2), (2, 3)]


def test_what_cannot_be_sent(cluster: VirtualCluster) -> None:
    for batch, columns, message in (
        (pa.RecordBatch.from_pydict({"body": [b"a", b"", b"c"]}), None, "row 1: an empty or null body"),
        (rows(1), {"keys": "body"}, "body is needed"),
        (rows(1), {"body": "body", "colour": "body"}, r"not \['colour'\]"),
    ):
        with pytest.raises(ConfigError, match=message):
            send(cluster, batch, columns=columns)
    with pytest.raises(ConfigError, match="a topic is needed"):
        send(cluster, rows(1), topic="")


def test_a_refusal_names_the_rows(cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BATCH", 2)
    cluster.topic("closed", 1)
    cluster.broker.broker.topics["closed"].perm = 4
    outcome = send(cluster, rows(3), queue=MessageQueue("closed", "broker-a", 0), topic="closed")
    assert [(part.start, part.stop, part.ok) for part in outcome] == [(0, 2, False), (2, 3, False)]
    assert isinstance(outcome[0].outcome, MQError)


def test_no_rows_send_nothing(cluster: VirtualCluster) -> None:
    assert send(cluster, rows(1)[1:]) == []
