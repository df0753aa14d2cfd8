"""Owns writing to RocketMQ for Spark: which columns there are, and how a task sends them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from mqclient.spark import schema
from mqclient.spark.options import ROCKETMQ_SINK, WriteOptions
from mqclient.spark.rocketmq_source import client
from mqclient.spark.sink import Place, Send

OPTIONS: Final = ROCKETMQ_SINK
COLUMNS: Final = schema.ROCKETMQ_SINK
NAMES: Final = {"value": "body", "key": "keys", "tag": "tag", "properties": "properties"}


@contextmanager
def opened(options: WriteOptions, place: Place) -> Iterator[Send]:
    """A producer over this process' client."""
    with client(options.address) as borrowed, borrowed.producer(options.group) as producer:

        def send(topic: str, batch: Any, names: Mapping[str, str]) -> Any:
            return producer.send_arrow(batch, topic, columns=names, timeout=options.timeout)

        yield send
