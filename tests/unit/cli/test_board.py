"""What commands show: plain lines for pipes, a live board for terminals, bars and rates."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from mqclient.cli import board


def test_plain_lines_tell_steps_and_findings(capsys: pytest.CaptureFixture[str]) -> None:
    with board.PlainBoard() as shown:
        shown.step("first")
        shown.panel("gauges", lambda: ["never shown"])
        shown.done("as it must be")
        shown.done("something is wrong", ok=False)
        shown.close_panel("gauges")
    assert capsys.readouterr().out == "== first\n   ok  as it must be\n   NOT OK  something is wrong\n"


def test_live_board_draws_open_panels() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with board.LiveBoard(console) as shown:
        shown.step("first")
        shown.panel("gauges", lambda: ["here 17"])
        shown.done("seen")
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "first" in text
    assert "gauges" in text
    assert "here 17" in text
    assert "✔" in text


def test_without_a_terminal_the_board_is_plain() -> None:
    assert isinstance(board.board(), board.PlainBoard)


@pytest.mark.parametrize(
    ("value", "shown"), [(-1, "    "), (0, "    "), (1, "█   "), (1.5, "█▌  "), (4, "████"), (9, "████")]
)
def test_bar_fills_in_eighths(value: float, shown: str) -> None:
    assert board.bar(value, 4, 4) == shown


def test_bar_of_nothing_is_empty() -> None:
    assert board.bar(3, 0, 2) == "  "


def test_rate_is_growth_over_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, count = [100.0], [0]
    monkeypatch.setattr("mqclient.cli.board.time.monotonic", lambda: clock[0])
    rate = board.Rate(lambda: count[0])
    assert rate() == 0.0
    clock[0], count[0] = 101.0, 50
    assert rate() == 50.0
    clock[0], count[0] = 110.0, 50
    assert rate() == 0.0, "what is old counts no more"
