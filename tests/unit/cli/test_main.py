"""The command line: its help, and its errors."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from mqclient import __version__
from mqclient.cli.__main__ import COMMANDS, main


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    assert all(command in text for command in COMMANDS)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"mqclient {__version__}\n"


def test_unknown_command_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["brocker"])
    assert left.value.code == 2
    assert "broker" in capsys.readouterr().err


def test_errors_of_ours_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broker", "--brokers", "0"]) == 1
    assert capsys.readouterr().err == "mqclient broker: brokers=0: at least one is needed\n"


def test_broker_prints_addresses_and_ends_on_a_signal() -> None:
    command = [sys.executable, "-m", "mqclient.cli", "broker", "--brokers", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(5)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert [line.partition("=")[0] for line in lines] == [
        "name_server",
        "broker-a",
        "broker-b",
        "pulsar_url",
        "pulsar_rest",
    ]
