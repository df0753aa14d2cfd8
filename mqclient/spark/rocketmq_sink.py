"""Owns writing to RocketMQ for Spark: which queue a row goes to, and how a task sends its rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from mqclient import rocketmq
from mqclient.errors import ConfigError, MQError
from mqclient.spark import write_options
from mqclient.spark.access import rocketmq_client
from mqclient.spark.rows import Place, bytes_of, delayed, first_empty, groups, properties_of, taken, text_of
from mqclient.spark.sink import Refused, Task, among, check, check_each
from mqclient.spark.write_options import WriteOptions

OPTIONS: Final = write_options.ROCKETMQ_SINK
COLUMNS: Final = write_options.ROCKETMQ_COLUMNS
DROP: Final = rocketmq.RESERVED_PROPERTIES
"""What came with a message from a broker and is made anew for each message sent."""
NAMES: Final = {"body": "value", "keys": "key", "tag": "tag", "properties": "properties"}


@contextmanager
def opened(options: WriteOptions, place: Place) -> Iterator[Task]:
    """A producer over this process' client."""
    with rocketmq_client(options.access) as borrowed, borrowed.producer(options.group) as producer:
        yield RocketmqTask(borrowed, producer, options)


class RocketmqTask:
    """One task's way to RocketMQ."""

    def __init__(self, client: Any, producer: Any, options: WriteOptions) -> None:
        self._client = client
        self._producer = producer
        self._timeout = options.timeout
        self._queues: dict[str, list[rocketmq.MessageQueue]] = {}

    def send(self, topic: str, batch: Any, /) -> None:
        empty = first_empty(batch.column("value"))
        if empty is not None:
            raise Refused(empty, 1, ConfigError("an empty or null value cannot be sent: brokers fail on it."))
        for queue, rows in self._by_queue(topic, batch):
            with among(rows):
                self._to_queue(topic, queue, taken(batch, rows))

    def _to_queue(self, topic: str, queue: Any, batch: Any) -> None:
        """What is delayed travels message by message: brokers delay no batch."""
        import pyarrow.compute as pc

        mask = delayed(batch)
        if mask is None:
            self._together(topic, queue, batch)
            return
        late, prompt = pc.indices_nonzero(mask), pc.indices_nonzero(pc.invert(mask))
        if len(prompt):
            with among(prompt):
                self._together(topic, queue, batch.take(prompt))
        with among(late):
            self._alone(topic, queue, batch.take(late))

    def _together(self, topic: str, queue: Any, batch: Any) -> None:
        names = {codec: column for codec, column in NAMES.items() if column in batch.schema.names}
        check(self._producer.send_arrow(batch, topic, columns=names, queue=queue, timeout=self._timeout))

    def _alone(self, topic: str, queue: Any, batch: Any) -> None:
        sent = [self._submitted(topic, queue, row) for row in batch.to_pylist()]
        check_each([_outcome(one, self._timeout) for one in sent])

    def _submitted(self, topic: str, queue: Any, row: dict[str, Any]) -> Any:
        """The future of a row, or why it was not taken."""
        try:
            return self._producer.submit(message_of(topic, row), queue=queue)
        except MQError as error:
            return error

    def _by_queue(self, topic: str, batch: Any) -> Iterator[tuple[Any, Any]]:
        """A queue's number is that of the broker which the row names; else it counts over all brokers, by name."""
        if "queue" not in batch.schema.names:
            yield None, None
            return
        for number, rows in groups(batch, "queue"):
            part = taken(batch, rows)
            for broker, inner in groups(part, "broker") if "broker" in batch.schema.names else [(None, None)]:
                chosen = rows if inner is None else inner if rows is None else rows.take(inner)
                with among(chosen):
                    queue = None if number is None or number < 0 else self._queue(topic, broker, number)
                yield queue, chosen

    def _queue(self, topic: str, broker: str | None, number: int) -> rocketmq.MessageQueue:
        known = self._queues.get(topic)
        if known is None:
            with self._client.admin() as admin:
                known = self._queues[topic] = sorted(admin.offsets(topic, timeout=self._timeout))
        found = [queue for queue in known if broker in (None, queue.broker_name)]
        if broker is not None:
            found = [queue for queue in found if queue.queue_id == number]
            number = 0
        if number >= len(found):
            there = ", ".join(f"{queue.broker_name}:{queue.queue_id}" for queue in known)
            raise Refused(0, 1, ConfigError(f"there is no such queue of topic {topic!r}; it has {there}."))
        return found[number]


def message_of(topic: str, row: dict[str, Any]) -> rocketmq.Message:
    """A row that travels alone."""
    level, moment, seconds = row.get("delayLevel") or 0, row.get("deliverAt"), row.get("delaySeconds")
    key = text_of(row.get("key"))
    return rocketmq.Message(
        topic,
        bytes_of(row["value"]) or b"",
        tag=row.get("tag"),
        keys=key.split() if key else (),
        properties=properties_of(row),
        delay_level=level,
        deliver_at=moment if not level and moment else None,
        deliver_after=float(seconds) if seconds and not level and not moment else None,
    )


def _outcome(sent: Any, timeout: float) -> Any:
    if isinstance(sent, MQError):
        return sent
    try:
        return sent.result(timeout)
    except MQError as error:
        return error
