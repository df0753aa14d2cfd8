"""Owns the protobuf classes of cold commands: descriptor sets checked in, loaded lazily into a pool of our own.

The pool is private, so the official packages, which register the same names in protobuf's default pool, can live in
the same process; and no generated code binds us to one version of protobuf. Compiled by `.ci/gen_schema.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message

PULSAR = "pulsar.proto"
_SETS = {PULSAR: "pulsar.binpb"}


@cache
def _pool(package: str) -> DescriptorPool:
    """The pool of one package; each has its own, so that loading one does not load the others."""
    pool = DescriptorPool()
    data = files(__name__).joinpath(_SETS[package]).read_bytes()
    for file in descriptor_pb2.FileDescriptorSet.FromString(data).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def _split(name: str) -> tuple[str, str]:
    """The package that a name belongs to, and its full name; names without a package are Pulsar's."""
    for package in _SETS:
        if name.startswith(package + "."):
            return package, name
    return PULSAR, f"{PULSAR}.{name}"


@cache
def message(name: str) -> type[Message]:
    """The class of a message; KeyError if there is none of that name.

    >>> message("CommandSuccess")(request_id=7).SerializeToString()
    b'\\x08\\x07'
    """
    package, full = _split(name)
    return message_factory.GetMessageClass(_pool(package).FindMessageTypeByName(full))


@cache
def enum(name: str) -> Mapping[str, int]:
    """The values of an enum by their names, in the order of the schema.

    >>> enum("CommandAck.AckType")["Cumulative"]
    1
    """
    package, full = _split(name)
    descriptor: EnumDescriptor = _pool(package).FindEnumTypeByName(full)
    return MappingProxyType({value.name: value.number for value in descriptor.values})


@cache
def _commands() -> Mapping[int, type[Message]]:
    fields = message("BaseCommand").DESCRIPTOR.fields
    return {field.number: message(field.message_type.full_name) for field in fields if field.message_type is not None}


def command(type: int) -> type[Message] | None:
    """The class of a Pulsar command by its type; None for one that we do not know.

    >>> command(13).DESCRIPTOR.name
    'CommandSuccess'
    """
    return _commands().get(type)


def read_command(type: int, body: bytes) -> Any:
    """A cold command from the bytes that the frame reader gave; None for a type that we do not know.

    Raises protobuf's DecodeError for bytes that are no such command.
    """
    cls = command(type)
    return None if cls is None else cls.FromString(body)
