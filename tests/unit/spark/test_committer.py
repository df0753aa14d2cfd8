"""Telling brokers how far a query is: the last word counts, nobody waits, nothing raises."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from mqclient.errors import LinkError
from mqclient.spark.committer import Committer


def test_the_last_word_counts_and_nobody_waits() -> None:
    told: list[Any] = []
    begun, go_on = threading.Event(), threading.Event()

    def commit(places: Any) -> None:
        told.append(places)
        begun.set()
        assert go_on.wait(60)

    committer = Committer(commit)
    committer.tell(1)
    assert begun.wait(60)
    for places in (2, 3, 4):
        committer.tell(places)
    go_on.set()
    committer.close(60)
    assert told == [1, 4]


def test_a_failure_is_a_warning_and_the_next_is_told(caplog: pytest.LogCaptureFixture) -> None:
    told: list[Any] = []
    failed = threading.Event()

    def commit(places: Any) -> None:
        told.append(places)
        if places == 1:
            failed.set()
            raise LinkError("away")

    committer = Committer(commit)
    with caplog.at_level(logging.WARNING):
        committer.tell(1)
        assert failed.wait(60)
        committer.tell(2)
        committer.close(60)
    assert told == [1, 2]
    assert "were not told how far the query is: away" in caplog.text


def test_without_a_word_there_is_no_thread() -> None:
    committer = Committer(print)
    committer.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "mqclient-spark-commit"]
