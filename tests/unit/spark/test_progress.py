"""Lag from the progress that Spark reports, and the listener that tells it."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from mqclient.spark import lag_listener
from mqclient.spark.progress import Lag, Report, entries, lags, report

T = "persistent://public/default/t"


def source(end: Any, latest: Any, *, text: bool = True) -> dict[str, Any]:
    return {"endOffset": json.dumps(end) if text else end, "latestOffset": json.dumps(latest) if text else latest}


ROCKETMQ = source(
    {"v": 1, "q": {"t": {"a": {"0": 7, "1": 5}}}, "init": {}}, {"v": 1, "q": {"t": {"a": {"0": 9, "1": 5, "2": 4}}}}
)
PULSAR = source(
    {"v": 1, "p": {T: [7, 3, -1], T + "2": None}}, {"v": 1, "p": {T: [7, 9, 4], T + "2": [8, 0, 0]}}, text=False
)


def test_what_is_behind() -> None:
    assert [lag.behind for lag in lags(0, ROCKETMQ)] == [2, 0, 4]
    assert lags(1, PULSAR) == [Lag(1, T, 6), Lag(1, T + "2", None)]
    assert (entries((7, 3, 2), (7, 3, 2)), entries((7, 3, 2), (7, 3, 4)), entries((7, 3, -1), (8, 0, 0))) == (
        0,
        1,
        None,
    )


@pytest.mark.parametrize(
    "other",
    [
        {},
        source("x", "y"),
        source({"logOffset": 5}, {"logOffset": 6}),
        {"endOffset": "not JSON", "latestOffset": None},
        source({"v": 1, "start": "latest"}, {"v": 1, "q": {}}),
    ],
)
def test_sources_of_others_say_nothing(other: dict[str, Any]) -> None:
    assert lags(0, other) == []


def test_a_report() -> None:
    found = report({"name": None, "id": "1-2", "batchId": 3, "numInputRows": 4, "sources": [ROCKETMQ, PULSAR]})
    assert (found.query, found.batch, found.rows, found.rows_a_second, found.behind) == ("1-2", 3, 4, 0.0, 12)
    assert str(found) == "1-2 batch 3: 4 rows, 0 a second, 12 behind and 1 topics by a ledger or more"


def test_the_listener_tells_queries_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("pyspark.sql.streaming", reason="pyspark is not installed")
    told: list[Report] = []
    listener: Any = lag_listener(told.append)
    for sources in ([ROCKETMQ], [source({"logOffset": 5}, {"logOffset": 6})]):
        progress = SimpleNamespace(json=json.dumps({"name": "q", "batchId": 1, "sources": sources}))
        listener.onQueryProgress(SimpleNamespace(progress=progress))
    for event in ("onQueryStarted", "onQueryIdle", "onQueryTerminated"):
        getattr(listener, event)(None)
    assert [one.behind for one in told] == [6]
    with caplog.at_level(logging.INFO, "mqclient.spark"):
        silent: Any = lag_listener()
        progress = SimpleNamespace(json=json.dumps({"sources": [ROCKETMQ]}))
        silent.onQueryProgress(SimpleNamespace(progress=progress))
    assert "6 behind" in caplog.text
