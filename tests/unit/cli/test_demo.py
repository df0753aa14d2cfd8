"""The demo as a user runs it: every finding as it must be, on both protocols."""

from __future__ import annotations

import re

import pytest

from mqclient.cli.__main__ import main


def test_demo_finds_everything_as_it_must_be(capfd: pytest.CaptureFixture[str]) -> None:
    """All four stories: no code 25 over joins and leaves, equal ids named, every member reset, permits that add up."""
    assert main(["demo", "--pace", "0"]) == 0
    shown = capfd.readouterr()
    assert shown.err == ""
    assert re.search(r"(\d+) of \1 findings as they must be", shown.out)
    assert "code 25 over the whole time: 0" in shown.out
    assert re.search(
        r"both own the same 4 of 8 queues.*\n.*each names the other's address; [1-9][\d,]* messages", shown.out
    )
