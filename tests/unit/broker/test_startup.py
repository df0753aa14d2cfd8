"""How soon a broker is there, by its processor time: what a busy machine makes of that says nothing of the broker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from struct import Struct

import pytest

from mqclient._impl import select
from mqclient.broker import EmbeddedBroker
from mqclient.broker.data import ENTRY, RECORDS
from mqclient.broker.data_files import FRAME, MARK
from mqclient.rocketmq.codes import Request
from tests.unit.broker.remoting.raw import Raw

pytestmark = pytest.mark.skipif(not hasattr(os, "wait4"), reason="what a child has used is asked by wait4")

READY = 0.3
"""Seconds until every port is open, the interpreter's own start included."""
MANY = 1_000_000
FULL = 2.0
"""Seconds until so many messages are there again, each of which was sent alone."""
BARE = "import asyncio, json, logging, ssl"
QUIET = 0.058
"""Processor seconds of an interpreter that does BARE on the machine of the bounds while it does nothing else."""
ROUNDS = 4
ONE = Struct("<BxxxIIIQqiI")
"""Entry, block and columns of a frame that is one record."""
INSIDE = """
import time
from mqclient.broker import EmbeddedBroker
with EmbeddedBroker():
    print(time.process_time())
"""


def environment(folder: Path) -> dict[str, str]:
    """As where mqclient is installed: compiled to bytecode before it is started."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(folder)}


def until_ready(command: list[str], **more: object) -> tuple[float, dict[str, str]]:
    """Processor seconds of a broker process from its birth until its end, right after its addresses; and those."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **more) as process:  # type: ignore[call-overload]
        assert process.stdout is not None
        lines = [process.stdout.readline().strip() for _ in range(4)]
        process.terminate()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime, dict(line.split("=", 1) for line in lines)


def spent(command: list[str], **more: object) -> float:
    """Processor seconds of a process from its birth until its end."""
    with subprocess.Popen(command, **more) as process:  # type: ignore[call-overload]
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return float(used.ru_utime + used.ru_stime)


def best(run: Callable[[], float], environ: dict[str, str]) -> float:
    """Seconds of the best of some rounds, as they were on a quiet machine: neighbours on a core take half of it unseen,
    so that a bare interpreter right before each tells how much slower than that machine this one is now."""
    run()  # compiles, and brings files into memory
    bare = [sys.executable, "-c", BARE]
    slowness = (max(1.0, spent(bare, env=environ) / QUIET) for _ in range(ROUNDS))
    return min(run() / slow for slow in slowness)


def test_a_broker_in_this_process_is_ready_at_once(tmp_path: Path) -> None:
    environ = environment(tmp_path)

    def run() -> float:
        command = [sys.executable, "-c", INSIDE]
        return float(subprocess.run(command, env=environ, capture_output=True, check=True).stdout)

    assert best(run, environ) < READY


def test_a_broker_process_is_ready_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mqclient.cli", "broker", "--quiet"]
    environ = environment(tmp_path)
    assert {"name_server", "broker-a", "pulsar_url", "pulsar_rest"} == until_ready(command, env=environ)[1].keys()
    assert best(lambda: until_ready(command, env=environ)[0], environ) < READY


def fill(folder: Path, count: int) -> None:
    """A data folder with so many messages in four queues, each written by a turn of its own."""
    broker = EmbeddedBroker(doors=["rocketmq"], data=folder)
    service = broker._doors[0].services[0]  # type: ignore[attr-defined]
    house, store = broker.house, service.broker
    assert house.data is not None
    house.data.open()
    queues = [store.make_topic("orders", 4).queue(number) for number in range(4)]
    assert house.save()
    numbers = [house.data._by_log[id(queue.log)].number for queue in queues]
    broker.stop()
    house.data.close()
    remoting, checksum = house.impl.remoting, house.impl.digest.crc32c
    properties = remoting.encode_properties({"UNIQ_KEY": "7F00000100002A139A5518B4AAC20000", "WAIT": "true"})
    (path,) = folder.glob("*.mqdata")
    physical = 0
    with path.open("ab") as file:
        for number in range(count):
            queue, offset = number % 4, number // 4
            place = {"queue_id": queue, "offset": offset, "physical_offset": physical}
            record = remoting.encode_message(b"x" * 100, "orders", properties=properties, born_at=1, **place)
            physical += len(record)
            head = ONE.pack(RECORDS, ONE.size - ENTRY.size + len(record), numbers[queue], 1, offset, 1, 0, len(record))
            file.write(FRAME.pack(MARK, len(head) + len(record), checksum(record, checksum(head))) + head + record)


def seconds_on(folder: Path, count: int) -> float:
    """Processor seconds of a process that reads the folder; all of it is there."""
    environ = environment(folder / "compiled")
    command = [sys.executable, "-m", "mqclient.cli", "broker", "--quiet", "--data", str(folder), "--impl", "native"]
    seconds = best(lambda: until_ready(command, env=environ)[0], environ)
    with (
        EmbeddedBroker(data=folder, impl="native") as broker,
        Raw(select("native").remoting, broker.addresses()["broker-a"]) as raw,
    ):
        tops = [raw.ask(Request.GET_MAX_OFFSET, topic="orders", queueId=queue).field("offset") for queue in range(4)]
        assert tops == [str(count // 4)] * 4
        assert raw.pull("g", "orders", count // 4 - 1, 3).code == 0
    return seconds


@pytest.mark.ci
@pytest.mark.timeout(600)
def test_a_million_messages_are_there_again_within_two_seconds(tmp_path: Path) -> None:
    fill(tmp_path, MANY)
    assert seconds_on(tmp_path, MANY) < FULL
