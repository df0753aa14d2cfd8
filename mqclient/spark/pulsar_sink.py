"""Owns writing to Pulsar for Spark: which partition a row goes to, and how a task sends its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from mqclient.errors import ConfigError
from mqclient.spark import write_options
from mqclient.spark.access import pulsar_client
from mqclient.spark.hashing import routes
from mqclient.spark.numbered import Numbered
from mqclient.spark.rows import Place, bytes_of, delayed, groups, properties_of, taken, text_of
from mqclient.spark.sink import Refused, Task, among, check, check_each
from mqclient.spark.write_options import WriteOptions

OPTIONS: Final = write_options.PULSAR_SINK
COLUMNS: Final = write_options.PULSAR_COLUMNS
DROP: Final[frozenset[str]] = frozenset()
ENTRY: Final = 1 << 20
"""Bytes of rows that travel as one entry, of a thousand rows at most. Each entry costs both sides as much as a hundred
rows of a kilobyte do; brokers take five times as much."""
NAMES: Final = {
    "body": "value",
    "key": "key",
    "ordering_key": "orderingKey",
    "event_time": "eventTime",
    "properties": "properties",
}


@contextmanager
def opened(options: WriteOptions, place: Place) -> Iterator[Task]:
    """Producers over this process' client, one for each topic or partition that comes up."""
    with pulsar_client(options.access) as borrowed, ExitStack() as stack:
        yield PulsarTask(borrowed, stack, options, place)


class PulsarTask:
    """One task's way to Pulsar."""

    def __init__(self, client: Any, stack: ExitStack, options: WriteOptions, place: Place) -> None:
        self._client = client
        self._stack = stack
        self._options = options
        self._place = place
        self._partitions: dict[str, list[str]] = {}
        self._producers: dict[str, Any] = {}

    def send(self, topic: str, batch: Any, /) -> None:
        if "eventTime" in batch.schema.names:
            batch = _filled(batch, "eventTime", 0)
        for number, rows in self._by_partition(topic, batch):
            with among(rows):
                self._to_partition(self._partitions[topic][number], taken(batch, rows))

    def _by_partition(self, topic: str, batch: Any) -> Iterator[tuple[int, Any]]:
        """The row's own choice, then its key's hash as all clients have it, then the one that the task stays with: the
        same when it is tried again."""
        partitions = self._partitions.get(topic)
        if partitions is None:
            partitions = self._partitions[topic] = self._client.partitions(topic, self._options.timeout)
        many, names = len(partitions), batch.schema.names
        default = self._place.partition % many
        column = "partition" if "partition" in names else "key" if "key" in names and many > 1 else None
        if column is None:
            yield default, None
            return
        if column == "key":
            batch = batch.append_column("partition", routes(batch.column("key"), many))
        for number, rows in groups(batch, "partition"):
            if number is not None and number >= many:
                with among(rows):
                    raise Refused(0, 1, ConfigError(f"topic {topic!r} has {many} partitions, none of number {number}."))
            yield default if number is None or number < 0 else number, rows

    def _to_partition(self, partition: str, batch: Any) -> None:
        """What is delayed travels message by message: a batch has no time of delivery."""
        import pyarrow.compute as pc

        producer = self._producer(partition)
        mask = delayed(batch)
        if mask is None:
            self._together(producer, batch)
        elif self._options.exactly_once:
            self._alone(producer, batch)  # numbers grow in the order of sending: all of them alone
        else:
            late, prompt = pc.indices_nonzero(mask), pc.indices_nonzero(pc.invert(mask))
            if len(prompt):
                with among(prompt):
                    self._together(producer, batch.take(prompt))
            with among(late):
                self._alone(producer, batch.take(late))

    def _together(self, producer: Any, batch: Any) -> None:
        names = {codec: column for codec, column in NAMES.items() if column in batch.schema.names}
        check(producer.send_arrow(batch, columns=names))

    def _alone(self, producer: Any, batch: Any) -> None:
        check_each(producer.send_many([message_of(row) for row in batch.to_pylist()]))

    def _producer(self, partition: str) -> Any:
        producer = self._producers.get(partition)
        if producer is None:
            if self._options.exactly_once:
                producer = Numbered(self._client, partition, self._options, self._place)
            else:
                timeout = self._options.timeout
                given: dict[str, Any] = {"timeout": timeout, "send_timeout": timeout, "batch_max_bytes": ENTRY}
                producer = self._client.producer(partition, **given)
            self._producers[partition] = producer = self._stack.enter_context(producer)
        return producer


def message_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row that travels alone, as `send_many` takes it."""
    moment, seconds, key = row.get("deliverAt"), row.get("delaySeconds"), row.get("key")
    found: dict[str, Any] = {
        "body": bytes_of(row["value"]),
        "key": text_of(key),
        "ordering_key": bytes_of(row.get("orderingKey")),
        "event_time": row.get("eventTime") or 0,
        "properties": properties_of(row),
    }
    if moment:
        found["deliver_at"] = moment
    elif seconds:
        found["deliver_after"] = float(seconds)
    return found


def _filled(batch: Any, column: str, value: Any) -> Any:
    at = batch.schema.names.index(column)
    return batch.set_column(at, column, batch.column(column).fill_null(value))
