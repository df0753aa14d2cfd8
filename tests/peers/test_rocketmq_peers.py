"""Clients of RocketMQ in Go, JavaScript and Java use the embedded broker; what arrives is what was sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqclient import rocketmq
from mqclient.broker import EmbeddedBroker
from tests.peers import tools
from tests.real import jars
from tests.real.rocketmq import VERSION

pytestmark = [pytest.mark.ci, pytest.mark.timeout(900), pytest.mark.xdist_group("peers")]


@pytest.fixture(name="broker", scope="module")
def broker_fixture() -> Iterator[EmbeddedBroker]:
    options: dict[str, Any] = {"transactionTimeOut": 1000, "transactionCheckInterval": 1000}
    with EmbeddedBroker(doors=["rocketmq"], impl="pure", mqcloud_patch=True, **options) as broker:
        yield broker


def test_the_go_client(broker: EmbeddedBroker, tmp_path: Path) -> None:
    address, program = broker.addresses()["broker-a"], str(tools.go_program("rocketmq"))
    # Broadcasting offsets lie in the home folder.
    told = tools.scenarios([program, broker.name_server, address, "transactions"], HOME=str(tmp_path))
    sent = ["async", "batch-0", "batch-1", "batch-2", "delayed", "one way", *(f"one-{n}" for n in range(6))]
    assert told == {
        "admin": ["GoTopic"],
        "send": [*(f"one-{n}" for n in range(6)), "true", "true"],
        "clustering": sent,
        "retried": ["true"],
        "broadcasting": sorted([*sent, "other tag"]),
        "orderly": [str(number) for number in range(8)],
        "transactions": ["check", "commit"],
    }


def test_the_javascript_client(broker: EmbeddedBroker) -> None:
    node, modules = tools.tool("node"), tools.node_modules()
    with rocketmq.Client(broker.name_server) as client, client.admin() as admin:
        admin.create_topic("JsTopic", queues=4)
    program = str(Path(__file__).parent / "js" / "rocketmq.js")
    told = tools.scenarios([node, program, broker.name_server, "JsTopic"], NODE_PATH=str(modules))
    everything = [f"m{number}" for number in range(10)]
    assert told == {
        "send": ["SEND_OK"] * 10,
        "clustering": everything,
        "tags": everything[1::2],
        "broadcasting": everything,
    }


def test_the_java_client(broker: EmbeddedBroker, tmp_path: Path) -> None:
    try:
        classpath = jars.compiled(Path(__file__).parent / "java" / "JavaPeer.java", jars.rocketmq(VERSION))
    except jars.Unavailable as error:
        pytest.skip(f"left out: {error}")
    flags = [f"-Duser.home={tmp_path}", "-XX:TieredStopAtLevel=1", "-Drocketmq.client.rebalance.waitInterval=2000"]
    wanted = ["admin", "pull", "reset", "transactions"]
    told = tools.scenarios(["java", *flags, "-cp", classpath, "JavaPeer", broker.name_server, *wanted])
    assert told == {
        "route": ["3"],
        "topic list": ["JavaMade"],
        "cluster": ["broker-a"],
        "config": ["broker-a"],
        "config changed": ["65536"],
        "max offset": ["0"],
        "deleted": ["MQClientException"],
        "pull": ["p0", "p2", "committed 3", "p1", "p3", "committed 3"],
        "pull statuses": ["NO_MATCHED_MSG", "NO_NEW_MSG", "OFFSET_ILLEGAL"] * 2,
        "reset": ["0"],
        "reset members": ["12", "12", "6"],
        "transactions": ["COMMIT_MESSAGE", "UNKNOW"],
    }
