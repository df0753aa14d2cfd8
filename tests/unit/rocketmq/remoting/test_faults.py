"""Which brokers are left alone, and for how long."""

from __future__ import annotations

import pytest

from mqclient.rocketmq.remoting.faults import Faults


@pytest.mark.parametrize(("took", "pause"), [(0.1, 0), (0.55, 2), (2, 5), (3, 6), (5, 10), (20, 30)])
def test_the_slower_the_longer(took: float, pause: float) -> None:
    faults = Faults()
    faults.answered("a", took, 100.0)
    assert faults.avoided(100.0) == ({"a"} if pause else set())
    assert faults.avoided(100.0 + pause) == set()


def test_a_failure_isolates_until_an_answer_comes() -> None:
    faults = Faults()
    before = dict(faults.until)
    faults.failed("a", 0.0)
    faults.failed("b", 5.0)
    assert faults.avoided(9.0) == {"a", "b"}
    assert (before, list(faults.until)) == ({}, ["a", "b"])
    assert faults.avoided(10.0) == {"b"}
    faults.answered("b", 0.01, 11.0)
    assert faults.avoided(11.0) == set()
