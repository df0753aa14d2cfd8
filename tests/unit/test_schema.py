"""The protobuf classes of cold commands: complete, private, and up to date with proto/."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest
from google.protobuf import descriptor_pool

from mqclient import _schema

ROOT = Path(__file__).resolve().parents[2]


def test_every_command_type_is_the_number_of_its_field() -> None:
    base = _schema.message("BaseCommand").DESCRIPTOR
    numbers = {field.number for field in base.fields if field.name != "type"}
    assert numbers == set(_schema.enum("BaseCommand.Type").values())
    assert len(numbers) == 70
    for number in numbers:
        assert _schema.command(number) is not None


def test_a_command_comes_back_as_it_was_written() -> None:
    written = _schema.message("CommandSubscribe")(
        topic="persistent://public/default/t",
        subscription="s",
        subType=_schema.enum("CommandSubscribe.SubType")["Key_Shared"],
        consumer_id=0,
        request_id=7,
    )
    read = _schema.read_command(4, written.SerializeToString())
    assert read == written
    assert read.durable is True
    assert not read.HasField("start_message_id")


def test_absent_and_zero_are_told_apart() -> None:
    metadata = _schema.message("MessageMetadata")
    assert metadata.FromString(b"\x58\x01").HasField("num_messages_in_batch")
    assert not metadata.FromString(b"").HasField("num_messages_in_batch")


def test_repeated_numbers_are_written_unpacked_and_read_both_ways() -> None:
    ids = _schema.message("MessageIdData")
    assert ids(ledgerId=1, entryId=2, ack_set=[3, -1]).SerializeToString() == (
        b"\x08\x01\x10\x02\x28\x03\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    )
    packed = ids.FromString(b"\x08\x01\x10\x02\x2a\x02\x03\x04")
    assert list(packed.ack_set) == [3, 4]  # type: ignore[attr-defined]


def test_an_unknown_command_is_none_and_an_unknown_message_an_error() -> None:
    assert _schema.read_command(4711, b"\x08\x01") is None
    with pytest.raises(KeyError):
        _schema.message("CommandOfNobody")


def test_the_default_pool_does_not_know_our_names() -> None:
    _schema.message("CommandConnect")
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("pulsar.proto.CommandConnect")


@pytest.mark.skipif(find_spec("grpc_tools") is None and which("protoc") is None, reason="no protoc found")
def test_the_descriptor_sets_are_what_the_texts_say() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / "gen_schema.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
