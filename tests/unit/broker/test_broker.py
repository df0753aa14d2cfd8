"""The embedded broker's life: quick to start, ports of its own, stopped twice without harm."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from typing import Any

import pytest

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
