"""`mqclient broker`: what it shows of topics, groups, rates and permits, on a terminal and in a pipe."""

from __future__ import annotations

import argparse
import io
import threading
from typing import Any

import pytest
from rich.console import Console
from rich.live import Live

from mqclient.broker.overview import GroupRow, TopicRow
from mqclient.cli import broker as command

ROWS = [TopicRow("pulsar", "orders", 1200, 5_000_000, [GroupRow("billing", 2, 900, 300, 950)])]


class Looks(threading.Event):
    """Nobody stops it for so many looks."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.left = count

    def wait(self, timeout: float | None = None) -> bool:
        self.left -= 1
        return self.left < 0


class Shown:
    """A broker whose overview is one of these, the last one for ever."""

    def __init__(self, *overviews: list[TopicRow]) -> None:
        self._overviews = list(overviews)

    def overview(self) -> list[TopicRow]:
        return self._overviews.pop(0) if len(self._overviews) > 1 else self._overviews[0]


def test_speeds_are_what_grew_since_the_last_look() -> None:
    clock = iter([10.0, 12.0, 12.0, 13.0])
    speeds = command.Speeds(lambda: next(clock))
    assert [speeds(("a",), value) for value in (100, 300, 300, 200)] == [0, 100, 0, 0]


def test_lines_for_a_pipe_come_only_when_something_moved(capsys: pytest.CaptureFixture[str]) -> None:
    more = [ROWS[0]._replace(groups=[ROWS[0].groups[0]._replace(behind=0)])]
    shown: Any = Shown(ROWS, ROWS, more)
    command.tell(shown, Looks(4), 0.0)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "topic=pulsar:orders  messages=1,200  in/s=0  kept=5.0 MB",
        "topic=pulsar:orders  group=billing  members=2  out/s=0  behind=300  permits=950",
        "topic=pulsar:orders  group=billing  members=2  out/s=0  behind=0  permits=950",
    ]


def test_a_table_on_a_terminal() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    shown: Any = Shown([], ROWS)
    command.show(shown, Looks(2), lambda first, **options: Live(first, console=console, **options))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "no topics yet" in text
    assert all(word in text for word in ("pulsar:orders", "1,200", "5.0 MB", "billing", "300", "950", "permits"))


def test_without_a_terminal_lines_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    shown: Any = Shown(ROWS)
    command.watch(shown, Looks(1))
    assert "topic=pulsar:orders" in capsys.readouterr().out


def test_quiet_shows_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def serve(options: Any, watch: Any) -> int:
        asked.append(watch)
        return 0

    monkeypatch.setattr("mqclient.broker.__main__.serve", serve)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert command.run(parser.parse_args([])) == command.run(parser.parse_args(["--quiet"])) == 0
    assert asked == [command.watch, None]


def test_on_a_terminal_rich_draws(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    shown: Any = Shown(ROWS)
    command.watch(shown, Looks(1))
    assert "topic=" not in capsys.readouterr().out
