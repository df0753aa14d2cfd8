"""`python -m mqclient.broker`, in this process: options, addresses, and the end by a signal."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqclient.broker.__main__ import MOST_FILES, add_arguments, main, make, open_many_files, port, setting


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """The signals are those of before again afterwards."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    assert {number: signal.getsignal(number) for number in before} == before


def test_it_serves_until_a_signal(capsys: pytest.CaptureFixture[str]) -> None:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
    assert main(["--door", "rocketmq", "--impl", "pure"]) == 0
    names = [line.partition("=")[0] for line in capsys.readouterr().out.splitlines()]
    assert names == ["name_server", "broker-a"]


def test_an_unknown_option_ends_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--doors"])
    assert caught.value.code == 2
    assert "mqclient.broker" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["name_server", "=1", "pulsar=x", "pulsar=70000"])
def test_ports_that_are_none(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--port", text])
    assert "is not NAME=NUMBER, such as name_server=9876" in capsys.readouterr().err


def test_ports_by_their_printed_names() -> None:
    assert [port("broker-a=10911"), port("pulsar_url=6650"), port("pulsar_rest=0")] == [
        ("broker_a_port", 10911),
        ("pulsar_port", 6650),
        ("pulsar_rest_port", 0),
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("enablePropertyFilter=true", ("enablePropertyFilter", True)),
        ("transactionTimeOut=1000", ("transactionTimeOut", 1000)),
        ("messageDelayLevel=1s 5s", ("messageDelayLevel", "1s 5s")),
        ('accounts=[{"accessKey": "a"}]', ("accounts", [{"accessKey": "a"}])),
        ("tlsServerMode=", ("tlsServerMode", "")),
    ],
)
def test_options_are_what_they_mean(text: str, wanted: tuple[str, object]) -> None:
    assert setting(text) == wanted


def test_options_that_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("enablePropertyFilter", "=1", "a b=1"):
        with pytest.raises(SystemExit):
            main(["--set", text])
        assert "is not NAME=VALUE, such as enablePropertyFilter=true" in capsys.readouterr().err


def test_options_and_the_seed_reach_the_broker() -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    broker = make(parser.parse_args(["--set", "enablePropertyFilter=true", "--seed", "7", "--set", "mqcloud_patch=1"]))
    assert broker.house.settings == {"enablePropertyFilter": True, "mqcloud_patch": 1}
    assert broker.control.seed == 7


def test_what_the_system_refuses_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["--door", "pulsar", "--port", f"pulsar={port}"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("mqclient.broker: the broker cannot start: ")
    assert f"('127.0.0.1', {port})" in said
    file = tmp_path / "file"
    file.touch()
    assert main(["--data", str(file / "folder")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("mqclient.broker: the broker cannot start: [Errno 20] Not a directory")
    assert said.count("\n") == 1


def test_a_broker_process_may_have_as_many_connections_as_the_system_allows() -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (700, hard))
    try:
        open_many_files()
        raised, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        open_many_files()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert raised == (MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES))


def test_errors_of_ours_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--fsync"]) == 1
    assert capsys.readouterr().err.startswith("mqclient.broker: fsync=True needs data=")
