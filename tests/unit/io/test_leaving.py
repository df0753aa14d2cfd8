"""The last words: what nobody closed is sent if that is quick, else told, in the log or where nobody reads one."""

from __future__ import annotations

import logging
import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from weakref import WeakSet

import pytest

from mqclient.core.slot import Slot
from mqclient.errors import ClosedError, DeadlineError
from mqclient.io import leaving


class Engine:
    """Holds so many messages; lets go of them when it is asked to, if it can."""

    def __init__(self, left: int, sends: bool) -> None:
        self.left = left
        self.sends = sends

    def on_exit(self) -> Slot[None]:
        slot: Slot[None] = Slot()
        if self.sends:
            self.left = 0
            slot.complete(None)
        return slot

    def unsettled(self) -> dict[str, int]:
        return {"producer 'p'": self.left} if self.left else {}


class Driver:
    """Has an engine, and waits as it is told to."""

    def __init__(self, engine: object, error: BaseException | None = None) -> None:
        self._alarmed = engine
        self.error = error
        self.pid = os.getpid()
        self.left: dict[str, int] = {}

    def enter(self) -> AbstractContextManager[None]:
        return nullcontext()

    def wait(self, slot: Slot[Any], deadline: float) -> None:
        if self.error is not None:
            raise self.error


@pytest.fixture(name="words", autouse=True)
def words_fixture(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    monkeypatch.setattr(leaving, "_in_loops", WeakSet())
    return caplog


def test_what_can_be_sent_is_not_told(words: pytest.LogCaptureFixture) -> None:
    leaving.farewell([Driver(Engine(3, sends=True)), Driver(None), Driver(object())])
    assert words.text == ""


@pytest.mark.parametrize("error", [DeadlineError("late"), ClosedError("closed"), KeyboardInterrupt()])
def test_what_is_left_is_counted(words: pytest.LogCaptureFixture, error: BaseException) -> None:
    leaving.farewell([Driver(Engine(3, sends=False), error)])
    assert "ended without close(), and messages were unsent, or unanswered: 3 of producer 'p'." in words.text


def test_a_client_of_a_loop_can_only_be_told_about(words: pytest.LogCaptureFixture) -> None:
    ours, parents, closed = (Driver(Engine(2, sends=True)) for _ in range(3))
    parents.pid = -1
    for driver in (ours, parents, closed):
        leaving.note(driver)
    leaving.forget(closed)
    leaving.tell_of_loops()
    assert words.text.count("2 of producer") == 1


def test_what_was_left_when_the_tasks_were_ended_is_told(words: pytest.LogCaptureFixture) -> None:
    driver = Driver(None)
    driver.left = {"producer 'q'": 7}
    leaving.note(driver)
    leaving.tell_of_loops()
    assert "7 of producer 'q'" in words.text


def test_where_nobody_configured_logging_it_goes_to_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = logging.Logger("alone")
    alone.addHandler(logging.NullHandler())
    monkeypatch.setattr(leaving, "logger", alone)
    leaving.tell(Driver(Engine(1, sends=False)))
    assert capsys.readouterr().err.startswith("mqclient: the process ended without close()")
    alone.addHandler(logging.StreamHandler())
    leaving.tell(Driver(Engine(1, sends=False)))
    assert "mqclient: " not in capsys.readouterr().err
