"""Owns protobuf messages as values: the descriptor set that the broker is told, and classes made from one."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from mqclient.core.json import dumps, loads
from mqclient.errors import ConfigError, ProtocolError
from mqclient.pulsar.schema.base import Schema, SchemaInfo, SchemaType


class ProtobufNative(Schema[Any]):
    """Messages of one generated protobuf class."""

    def __init__(self, message: type[Message]) -> None:
        if not (isinstance(message, type) and issubclass(message, Message)):
            raise ConfigError(f"{message!r} is no protobuf class")
        self._class = message
        descriptor = message.DESCRIPTOR
        found: dict[str, FileDescriptorProto] = {}
        _collect(descriptor.file, found)
        files = FileDescriptorSet(file=found.values()).SerializeToString()
        text = {
            "fileDescriptorSet": b64encode(files).decode(),
            "rootMessageTypeName": descriptor.full_name,
            "rootFileDescriptorName": descriptor.file.name,
        }
        self.info = SchemaInfo("PROTOBUF_NATIVE", SchemaType.PROTOBUF_NATIVE, dumps(text))

    @classmethod
    def from_info(cls, info: SchemaInfo) -> ProtobufNative:
        """The schema of a topic, its class made from the definition."""
        try:
            text = loads(info.data)
            pool = DescriptorPool()
            for file in FileDescriptorSet.FromString(b64decode(text["fileDescriptorSet"])).file:
                pool.Add(file)
            return cls(GetMessageClass(pool.FindMessageTypeByName(text["rootMessageTypeName"])))
        except (ValueError, KeyError, TypeError, DecodeError) as error:
            raise ProtocolError(f"this protobuf definition cannot be used: {error}") from error

    def encode(self, value: Any) -> bytes:
        if not isinstance(value, self._class):
            raise TypeError(f"a {self._class.__name__} is needed, not {type(value).__name__}")
        return value.SerializeToString()

    def decode(self, body: bytes, writer: SchemaInfo | None = None) -> Any:
        try:
            return self._class.FromString(body)
        except DecodeError as error:
            raise ProtocolError(f"this body is no {self._class.__name__}: {error}") from error


def _collect(file: Any, found: dict[str, FileDescriptorProto]) -> None:
    """Those that a file needs first, each once."""
    for other in file.dependencies:
        _collect(other, found)
    if file.name not in found:
        proto = FileDescriptorProto()
        file.CopyToProto(proto)
        found[file.name] = proto
