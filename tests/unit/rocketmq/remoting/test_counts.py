"""Totals, and the figures of the last minute."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mqclient.core.driver import Now
from mqclient.rocketmq.remoting.counts import Counts


def test_totals_stay_and_minutes_pass() -> None:
    driver: Any = SimpleNamespace(now=Now(100.0, 0))
    counts = Counts(SimpleNamespace(driver=driver))
    counts.handled("t", 120)
    counts.failed("t", 6)
    counts.took("t", 0.5)
    counts.took("t", 1.5)
    assert counts.status("t")["consumeOKTPS"] == 2.0
    driver.now = Now(161.0, 0)
    counts.handled("t", 1)
    status = counts.status("t")
    assert (status["consumeOKTPS"], status["consumeFailedTPS"], status["consumeRT"]) == (2.0, 0.1, 1000.0)
    driver.now = Now(400.0, 0)
    counts.handled("t", 60)
    assert counts.status("t")["consumeOKTPS"] == 1.0  # of the minute that runs: the one before was silent
    assert (counts.all_handled, counts.all_failed) == (181, 6)
    assert counts.status("other")["consumeRT"] == 0.0
