"""Owns writing to Pulsar for Spark: which columns there are, and how a task sends them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from mqclient import pulsar
from mqclient.spark import schema
from mqclient.spark.options import PULSAR_SINK, WriteOptions
from mqclient.spark.pulsar_source import client
from mqclient.spark.sink import Place, Send

OPTIONS: Final = PULSAR_SINK
COLUMNS: Final = schema.PULSAR_SINK
NAMES: Final = {
    "value": "body",
    "key": "key",
    "orderingKey": "ordering_key",
    "eventTime": "event_time",
    "properties": "properties",
}


@contextmanager
def opened(options: WriteOptions, place: Place) -> Iterator[Send]:
    """Producers over this process' client, one for each topic that comes up.

    Of a partitioned topic a task takes one partition, the same when it is tried again.
    """
    with client(options.address, options.token) as borrowed, ExitStack() as stack:
        producers: dict[str, pulsar.Producer] = {}

        def send(topic: str, batch: Any, names: Mapping[str, str]) -> Any:
            producer = producers.get(topic)
            if producer is None:
                partitions = borrowed.partitions(topic, options.timeout)
                chosen = partitions[place.partition % len(partitions)]
                opening = borrowed.producer(chosen, timeout=options.timeout, send_timeout=options.timeout)
                producer = producers[topic] = stack.enter_context(opening)
            return producer.send_arrow(batch, columns=names)

        yield send
