"""Many micro-batches, few clients: each worker keeps its own, with a connection to each broker."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mqclient import rocketmq
from mqclient.broker import EmbeddedBroker
from mqclient.spark import rocketmq_writer
from tests.spark.support import taken

BATCHES = {"test": 5, "ci": 100, "soak": 1000}
WORKERS = 2 * 2
"""Of local[2], for reading and for writing: Spark may take another process for each."""


def connections(*addresses: str) -> int:
    """Of whatever process to these addresses, as the system counts them."""
    ports = {int(address.rpartition(":")[2]) for address in addresses}
    found = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, _, remote, state = line.split()[:4]
        found += state == "01" and int(remote.partition(":")[2], 16) in ports
    return found


@pytest.mark.ci
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="counts sockets as Linux tells them")
def test_clients_and_connections_stay_few(
    spark: Any, broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str, tmp_path: Path, scale: str
) -> None:
    addresses = (broker.addresses()["name_server"], broker.addresses()["broker-a"])
    most = batches = 0
    with rocketmq_client.admin() as admin:
        for name in (topic, f"{topic}-out"):
            admin.create_topic(name, 1)
        with rocketmq_client.producer("filler") as producer:
            producer.send_many([rocketmq.Message(topic, b"x") for _ in range(BATCHES[scale])])
        before = connections(*addresses)
        writer = rocketmq_writer(broker.name_server, topic=f"{topic}-out")

        def write(frame: Any, batch_id: int) -> None:
            nonlocal most, batches
            assert writer(frame, batch_id) == 1
            batches += 1
            most = max(most, connections(*addresses) - before)

        stream = spark.readStream.format("mq-rocketmq").options(nameServer=broker.name_server, topic=topic)
        frame = stream.options(startingOffsets="earliest", maxOffsetsPerTrigger="1").load().select("value")
        query = frame.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path))
        assert query.trigger(availableNow=True).start().awaitTermination(3000)
    assert batches == BATCHES[scale]
    # Of each message the client that sent it: address, process, and a number that every client draws for itself.
    seen = {message.message_id[:20] for message in taken(rocketmq_client, f"{topic}-out")}
    print(f"{batches} batches: {len(seen)} client ids, {most} connections")
    assert 0 < len(seen) <= WORKERS + 1 + 1
    assert most <= (WORKERS + 1 + 1) * 2
