"""The embedded broker's life: quick to start, ports of its own, stopped twice without harm."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from mqclient import _schema
from mqclient._impl import select
from mqclient.broker import EmbeddedBroker
from mqclient.broker.broker import DOORS
from mqclient.errors import ConfigError


def reachable(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as sock:
        return sock.connect_ex((host, int(port))) == 0


def test_it_is_ready_in_no_time_and_several_live_side_by_side(codec: Any) -> None:
    EmbeddedBroker(doors=["rocketmq"], impl=codec)  # what is imported first is not counted
    started = time.monotonic()
    with EmbeddedBroker(doors=["rocketmq"], impl=codec, brokers=2) as one:
        assert time.monotonic() - started < 0.3
        with EmbeddedBroker(doors=["rocketmq"], impl=codec) as two:
            assert one.name_server != two.name_server
            assert set(one.addresses()) == {"name_server", "broker-a", "broker-b"}
            assert all(map(reachable, [*one.addresses().values(), *two.addresses().values()]))
        assert reachable(one.name_server)
        assert not reachable(two.name_server)


def test_started_and_stopped_twice(codec: Any) -> None:
    broker = EmbeddedBroker(doors=["rocketmq"], impl=codec)
    assert broker.start() is broker.start()
    broker.stop()
    broker.stop()


def test_the_implementation_is_found_by_its_name() -> None:
    assert EmbeddedBroker(doors=["rocketmq"], impl="pure").house.impl.name == "pure"


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(ConfigError, match="'kafka' is not known"):
        EmbeddedBroker(doors=["kafka"], impl="pure")
    with pytest.raises(ConfigError, match="brokers=0"):
        EmbeddedBroker(doors=["rocketmq"], impl="pure", brokers=0)
    with pytest.raises(ConfigError, match="no pulsar_url"):
        EmbeddedBroker(doors=["rocketmq"], impl="pure").pulsar_url  # noqa: B018


def test_a_door_that_cannot_open_fails_the_start(codec: Any) -> None:
    broker = EmbeddedBroker(doors=["rocketmq"], impl=codec, host="203.0.113.1")  # not ours to listen on
    with pytest.raises(OSError, match=r"203\.0\.113\.1|assign"):
        broker.start()
    broker.stop()


def test_every_door_has_its_module() -> None:
    assert set(DOORS) >= {"rocketmq"}


def test_as_a_process_it_prints_its_addresses_and_ends_on_sigterm() -> None:
    command = [sys.executable, "-m", "mqclient.broker", "--door", "rocketmq", "--impl", "pure", "--brokers", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().strip() for _ in range(3)]
        assert [line.partition("=")[0] for line in lines] == ["name_server", "broker-a", "broker-b"]
        assert all(reachable(line.partition("=")[2]) for line in lines)
        process.terminate()
        assert process.wait(10) == 0


def test_fsync_wants_a_folder() -> None:
    with pytest.raises(ConfigError, match="fsync=True needs data="):
        EmbeddedBroker(fsync=True)


def test_a_folder_is_free_again_after_a_start_that_failed(tmp_path: Path) -> None:
    with EmbeddedBroker(doors=["pulsar"]) as other:
        taken = int(other.pulsar_url.rpartition(":")[2])
        broker = EmbeddedBroker(doors=["pulsar"], data=tmp_path, pulsar_port=taken)
        with pytest.raises(OSError, match="in use"):
            broker.start()
    with broker:
        assert broker.overview() == []
    with broker:  # stopped and started again: what it held is still there
        assert [log for log, _ in broker._logs()] == []


@pytest.mark.parametrize("door", ["rocketmq", "pulsar"])
def test_what_cannot_be_written_is_not_acknowledged(
    door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The disk is full for a while: clients are cut off instead of being told what is not so."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with EmbeddedBroker(doors=[door], data=tmp_path) as broker:
        address = next(iter(broker.addresses().values()))

        def send() -> bytes:
            return asked(broker.addresses()["broker-a"] if door == "rocketmq" else address, door)

        assert send() != b""
        with monkeypatch.context() as patch:
            patch.setattr(os, "writev", full)
            assert send() == b""
        assert "No space left on device" in caplog.text
        assert send() != b""


def asked(address: str, door: str) -> bytes:
    """What is answered to a request that changes something."""
    host, _, port = address.rpartition("/")[2].rpartition(":")
    impl = select("pure")
    if door == "rocketmq":
        request = impl.remoting.encode_send(1, "g", "orders", 0, b"", b"body", born_at=1)
    else:
        command = _schema.message("CommandConnect")(client_version="t", protocol_version=21).SerializeToString()
        request = impl.pulsar.encode_command(2, command)
        producer = _schema.message("CommandProducer")(topic=f"orders-{uuid4()}", producer_id=1, request_id=1)
        request += impl.pulsar.encode_command(5, producer.SerializeToString())
    with socket.create_connection((host, int(port)), 10) as sock:
        sock.sendall(request)
        try:
            return sock.recv(65536)
        except ConnectionResetError:
            return b""


def test_addresses_are_where_they_were(tmp_path: Path) -> None:
    with EmbeddedBroker(brokers=2, data=tmp_path) as broker:
        before = broker.addresses()
    with EmbeddedBroker(brokers=2, data=tmp_path) as broker:
        assert broker.addresses() == before
    taken = socket.create_server(("127.0.0.1", int(before["name_server"].rpartition(":")[2])))
    with taken, EmbeddedBroker(brokers=2, data=tmp_path) as broker:
        assert broker.addresses().pop("name_server") != before["name_server"]
        moved = broker.addresses()
    with EmbeddedBroker(brokers=2, data=tmp_path) as broker:
        assert broker.addresses() == moved
    assert {**moved, "name_server": before["name_server"]} == before


def test_ports_that_are_asked_for() -> None:
    with EmbeddedBroker(doors=["rocketmq"]) as broker:
        ports = {name: int(address.rpartition(":")[2]) for name, address in broker.addresses().items()}
    settings: dict[str, Any] = {"name_server_port": ports["name_server"], "broker_a_port": ports["broker-a"]}
    with EmbeddedBroker(doors=["rocketmq"], **settings) as broker:
        assert {name: int(address.rpartition(":")[2]) for name, address in broker.addresses().items()} == ports
        with pytest.raises(OSError, match="in use"):
            EmbeddedBroker(doors=["rocketmq"], **settings).start()
