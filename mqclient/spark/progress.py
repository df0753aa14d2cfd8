"""Owns what a query's progress tells about lag: how far each queue or topic is behind, and a listener."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from mqclient.spark.plan import flat
from mqclient.spark.pulsar_places import BEGIN, behind
from mqclient.spark.pulsar_places import flat as flat_places

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryListener

log = logging.getLogger("mqclient.spark")


class Lag(NamedTuple):
    """One queue or topic of one source. RocketMQ: messages. Pulsar: entries, None where the end lies in another ledger,
    for brokers alone know how many the ones between have."""

    source: int
    name: str
    behind: int | None


class Report(NamedTuple):
    """What came out of one trigger."""

    query: str
    batch: int
    rows: int
    rows_a_second: float
    lags: tuple[Lag, ...]

    @property
    def behind(self) -> int:
        """The sum of what is known."""
        return sum(lag.behind or 0 for lag in self.lags)

    def __str__(self) -> str:
        unknown = sum(lag.behind is None for lag in self.lags)
        more = f" and {unknown} topics by a ledger or more" if unknown else ""
        speed = f"{self.rows} rows, {self.rows_a_second:.0f} a second"
        return f"{self.query} batch {self.batch}: {speed}, {self.behind} behind{more}"


def report(progress: Mapping[str, Any]) -> Report:
    """From a progress as JSON: `query.lastProgress`, or `event.progress.json`.

    >>> places = {"endOffset": '{"v":1,"q":{"t":{"a":{"0":7}}}}', "latestOffset": '{"v":1,"q":{"t":{"a":{"0":9}}}}'}
    >>> told = {"name": "orders", "batchId": 3, "numInputRows": 4, "processedRowsPerSecond": 2.0, "sources": [places]}
    >>> str(report(told))
    'orders batch 3: 4 rows, 2 a second, 2 behind'
    """
    sources = progress.get("sources") or ()
    return Report(
        str(progress.get("name") or progress.get("id") or "query"),
        int(progress.get("batchId", 0)),
        int(progress.get("numInputRows") or 0),
        float(progress.get("processedRowsPerSecond") or 0.0),
        tuple(lag for number, source in enumerate(sources) for lag in lags(number, source)),
    )


def lags(number: int, source: Mapping[str, Any]) -> list[Lag]:
    """How far one source is behind; nothing for sources of others."""
    end, latest = offset(source.get("endOffset")), offset(source.get("latestOffset"))
    if end is None or latest is None or end.keys() & latest.keys() & {"q", "p"} == set():
        return []
    if "q" in end:
        reached, heads = flat(end, "endOffset"), flat(latest, "latestOffset")
        return [Lag(number, str(queue), max(0, head - reached.get(queue, 0))) for queue, head in sorted(heads.items())]
    places, ends = flat_places(end, "endOffset"), flat_places(latest, "latestOffset")
    return [Lag(number, topic, entries(places.get(topic, BEGIN), ends[topic])) for topic in sorted(ends)]


def offset(value: Any) -> dict[str, Any] | None:
    """Spark gives offsets as JSON, or as the text of it; ours say which version they are of."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    return value if isinstance(value, dict) and value.get("v") == 1 else None


def entries(reached: tuple[int, int, int], head: tuple[int, int, int]) -> int | None:
    if not behind(reached, head):
        return 0
    return max(1, head[1] - reached[1]) if reached[0] == head[0] else None


def lag_listener(told: Callable[[Report], object] | None = None) -> StreamingQueryListener:
    """A listener for `spark.streams.addListener`: calls `told` after each trigger, or logs where none is given.

    spark.streams.addListener(mqclient.spark.lag_listener(lambda report: gauge.set(report.behind)))
    """
    from pyspark.sql.streaming.listener import StreamingQueryListener

    tell = told if told is not None else lambda one: log.info("%s", one)

    class LagListener(StreamingQueryListener):
        """Hears of all queries of the session, and tells those with a source of ours."""

        def onQueryStarted(self, event: Any) -> None:
            """Nothing is behind yet."""

        def onQueryProgress(self, event: Any) -> None:
            found = report(json.loads(event.progress.json))
            if found.lags:
                tell(found)

        def onQueryIdle(self, event: Any) -> None:
            """Told by the last progress."""

        def onQueryTerminated(self, event: Any) -> None:
            """Spark itself tells."""

    return LagListener()
