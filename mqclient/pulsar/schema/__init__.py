"""Schemas: what a producer's bodies mean, checked by the broker, and what `Message.value` gives.

@dataclass
class Order:
    number: int
    shop: str | None = None

with client.producer("orders", schema=Avro(Order)) as producer:
    producer.send(Order(42, "north"))
"""

from __future__ import annotations

from mqclient.pulsar.schema.auto import AUTO_CONSUME, schema_of
from mqclient.pulsar.schema.base import BYTES, Schema, SchemaInfo
from mqclient.pulsar.schema.key_value import KeyValue
from mqclient.pulsar.schema.native import ProtobufNative
from mqclient.pulsar.schema.primitives import BOOLEAN, DOUBLE, FLOAT, INT8, INT16, INT32, INT64, STRING, TIMESTAMP
from mqclient.pulsar.schema.records import Avro, Json

__all__ = ["AUTO_CONSUME", "BOOLEAN", "BYTES", "DOUBLE", "FLOAT", "INT8", "INT16", "INT32", "INT64", "STRING",
           "TIMESTAMP", "Avro", "Json", "KeyValue", "ProtobufNative", "Schema", "SchemaInfo", "schema_of"]  # fmt: skip
