"""docs/spark.md runs from its first block to its last, as one program, and what it says comes to pass."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mqclient import pulsar, rocketmq
from mqclient.broker import EmbeddedBroker
from tests.docs.test_guides import BLOCK, NAME_SERVER, SERVICE
from tests.spark.support import environment, received, taken
from tests.support.tree import ROOT, text

ORDERS = 30
DATA = "/data/checkpoints"
END = """
copies.processAllAvailable()     # it begins with what is new, so something new has to come
orders.select("value").write.format("mq-pulsar").options(serviceUrl=SERVICE, topic="events").mode("append").save()
for running in (query, copies):
    running.processAllAvailable()
    running.stop()
print("read", orders.count(), events.count())
spark.stop()
"""


@pytest.mark.ci
def test_the_guide_runs_from_its_first_block_to_its_last(tmp_path: Path) -> None:
    blocks = BLOCK.findall(text("docs/spark.md"))
    assert len(blocks) > 5
    with EmbeddedBroker() as broker:
        fill(broker)
        program = "\n".join([*blocks, END.replace("SERVICE", f'"{SERVICE}"')])
        for told, found in ((NAME_SERVER, broker.name_server), (SERVICE, broker.pulsar_url), (DATA, str(tmp_path))):
            assert told in program
            program = program.replace(told, found)
        own = environment() | {"PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell"}
        line = [sys.executable, "-c", program]
        done = subprocess.run(line, cwd=ROOT, env=own, capture_output=True, text=True, check=False, timeout=280)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"read {ORDERS} {ORDERS + 3}" in done.stdout
        assert " behind" in done.stdout  # the listener
        with rocketmq.Client(broker.name_server) as client, pulsar.Client(broker.pulsar_url) as other:
            assert len(taken(client, "copies")) == ORDERS
            assert len(received(other, "out")) == ORDERS
            assert [(message.key, message.body) for message in received(other, "totals")] == [
                ("paid", b'{"tag":"paid","count":%d}' % ORDERS)
            ]


def fill(broker: EmbeddedBroker) -> None:
    """What the guide takes for granted."""
    with rocketmq.Client(broker.name_server) as client, client.admin() as admin, client.producer("p") as producer:
        for topic in ("orders", "copies"):
            admin.create_topic(topic, 2)
        producer.send_many([rocketmq.Message("orders", b"%d" % number, tag="paid") for number in range(ORDERS)])
    with pulsar.Client(broker.pulsar_url) as other, other.producer("events") as events:
        events.send_many([b"a", b"b", b"c"])
