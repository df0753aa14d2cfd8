"""A batch as an Arrow record batch: the same rows as its messages, with types that people expect."""

from __future__ import annotations

import sys
from datetime import datetime, timezone
from typing import Any

import pytest

from mqclient.broker.remoting.state import Incoming
from tests.unit.rocketmq.remoting.cluster import VirtualCluster

pa = pytest.importorskip("pyarrow")


@pytest.fixture(name="batch")
def batch_fixture(codec: Any) -> Any:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    broker = cluster.broker.broker
    for number in range(3):
        text = b"TAGS\x01t%d\x02region\x01eu\x02" % number if number else b""
        broker.store(Incoming("orders", 0, b"body-%d" % number, text))
    views, _ = broker.topics["orders"].queue(0).log.read(0, 99, 1 << 20)
    return codec.remoting.decode_messages(b"".join(views))


def test_rows_are_the_messages(batch: Any) -> None:
    table = batch.to_arrow()
    assert isinstance(table, pa.RecordBatch)
    rows = table.to_pylist()
    assert [row["body"] for row in rows] == [message.body for message in batch]
    assert [row["tag"] for row in rows] == [None, "t1", "t2"]
    assert [dict(row["properties"]).get("region") for row in rows] == [None, "eu", "eu"]
    assert [row["offset"] for row in rows] == [0, 1, 2]
    stored = datetime.fromtimestamp(batch[0].stored_at / 1000, timezone.utc)
    assert rows[0]["stored_at"] == stored
    assert table.schema.field("queue_id").type == pa.int32()


def test_only_what_is_asked_for(batch: Any) -> None:
    assert batch.to_arrow(["body", "offset"]).schema.names == ["body", "offset"]
    assert batch[1:].to_arrow(["offset"]).to_pydict() == {"offset": [1, 2]}
    assert batch[3:].to_arrow().num_rows == 0


def test_without_pyarrow_the_cure_is_named(batch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Absent:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name == "pyarrow":
                raise ImportError(name)

    monkeypatch.delitem(sys.modules, "pyarrow")
    monkeypatch.setattr(sys, "meta_path", [Absent, *sys.meta_path])
    with pytest.raises(ImportError, match=r"mqclient\[arrow\]"):
        batch.to_arrow()
