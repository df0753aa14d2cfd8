"""Bytes recorded from RocketMQ 5.5.0 and its Java client decode to what their README says, and back to equal bytes."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from mqclient._impl import Impl

FOLDER = Path(__file__).parent / "rocketmq"
ROW = re.compile(r"^\| (\S+\.bin) \| (\d+) \| (.+?) \| ([0-9a-f]{64}) \|$", re.M)
FRAME = re.compile(r"(request|response) code (\d+), (JSON|binary) header, flag (\d+), body (\d+)")


class Vector(NamedTuple):
    name: str
    size: int
    content: str
    sha256: str

    @property
    def data(self) -> bytes:
        return (FOLDER / self.name).read_bytes()


VECTORS = [
    Vector(name, int(size), content, digest)
    for name, size, content, digest in ROW.findall((FOLDER / "README.md").read_text(encoding="utf-8"))
]
FRAMES = [vector for vector in VECTORS if vector.name.endswith(".frame.bin")]
BODIES = [vector for vector in VECTORS if vector.name.startswith("pull-body-")]


def vector(name: str) -> bytes:
    return (FOLDER / f"{name}.frame.bin").read_bytes()


def test_every_file_is_described_and_unchanged() -> None:
    assert {one.name for one in VECTORS} == {path.name for path in FOLDER.glob("*.bin")}
    for one in VECTORS:
        assert (len(one.data), hashlib.sha256(one.data).hexdigest()) == (one.size, one.sha256), one.name


@pytest.mark.parametrize("one", FRAMES, ids=lambda one: one.name)
def test_frame_is_what_the_readme_says(codec: Impl, one: Vector) -> None:
    reader = codec.remoting.FrameReader()
    (frame,) = reader.feed(one.data)
    said = FRAME.fullmatch(one.content)
    assert said is not None
    kind, code, form, flag, body = said.groups()
    assert reader.error is None
    assert reader.pending == 0
    assert (frame.code, frame.flag, len(frame.body)) == (int(code), int(flag), int(body))
    assert frame.serialize == (codec.remoting.JSON if form == "JSON" else codec.remoting.ROCKETMQ)
    assert frame.is_response == (kind == "response")
    assert frame.is_oneway == bool(int(flag) & 2)
    assert (frame.language, frame.version) in (("JAVA", 513), ("JAVA", 515))  # 515: the hand-made requests


@pytest.mark.parametrize("one", FRAMES, ids=lambda one: one.name)
def test_frame_is_encoded_to_equal_bytes(codec: Impl, one: Vector) -> None:
    """Both header forms have one spelling for a given order of fields, that of the Java writer."""
    (frame,) = codec.remoting.FrameReader().feed(one.data)
    written = b'"extFields"' in one.data or frame.serialize == codec.remoting.ROCKETMQ
    again = codec.remoting.encode_frame(
        frame.code,
        frame.opaque,
        flag=frame.flag,
        fields=frame.fields if written else None,
        body=frame.body,
        remark=frame.remark,
        language=frame.language,
        version=frame.version,
        serialize=frame.serialize,
    )
    assert again == one.data


@pytest.mark.parametrize("one", BODIES, ids=lambda one: one.name)
def test_pull_body_holds_the_messages_described(codec: Impl, one: Vector) -> None:
    size = 100 if "100B" in one.name else 1024
    topic = "Vec100" if size == 100 else "Vec1K"
    batch = codec.remoting.decode_messages(one.data, check_crc=True)
    assert len(batch) == batch.scanned == int(one.name.split("-")[-1].removesuffix(".bin"))
    assert (batch.first_offset, batch.last_offset) == (0, len(batch) - 1)
    assert batch.size == size * len(batch)
    assert sum(message.stored_size for message in batch) == one.size
    for i, message in enumerate(batch):
        assert message.body == bytes(97 + (i + k) % 26 for k in range(size))
        assert (message.topic, message.queue_id, message.offset) == (topic, 0, i)
        assert (message.tag, message.keys, message.property("n")) == (f"Tag{i % 3}", (f"key-{i}",), str(i))
        assert message.property("color") in ("red", "blue")
        assert message.message_id == message.properties["UNIQ_KEY"]
        assert set(message.properties) == {
            *("TAGS", "KEYS", "color", "n", "WAIT", "UNIQ_KEY", "CLUSTER", "MSG_REGION", "TRACE_ON")
        }
        assert message.store_host in ("127.0.0.1:10911", "127.0.0.1:10951")
        assert 0 < message.born_at <= message.stored_at


@pytest.mark.parametrize("one", BODIES, ids=lambda one: one.name)
def test_stored_messages_are_encoded_to_equal_bytes(codec: Impl, one: Vector) -> None:
    again = b"".join(stored_again(codec, message) for message in codec.remoting.decode_messages(one.data))
    assert again == one.data


def stored_again(codec: Impl, message: object) -> bytes:
    names = ("queue_id", "flag", "offset", "physical_offset", "sys_flag", "born_at", "stored_at", "attempts")
    numbers = {name: getattr(message, name) for name in (*names, "prepared_transaction_offset")}
    hosts = {name: address(getattr(message, name)) for name in ("born_host", "store_host")}
    text = message.properties_text  # type: ignore[attr-defined]
    encoded: bytes = codec.remoting.encode_message(
        message.body,  # type: ignore[attr-defined]
        message.topic,  # type: ignore[attr-defined]
        properties=text,
        **numbers,
        **hosts,
    )
    return encoded


def address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


@pytest.mark.parametrize("name", ["pull-found-json-resp", "pull-found-bin-resp", "pull-found-serverbinary-100B-32"])
def test_found_reply_carries_messages(codec: Impl, name: str) -> None:
    (frame,) = codec.remoting.FrameReader().feed(vector(name))
    batch = codec.remoting.decode_messages(frame.body, check_crc=True)
    assert int(frame.field("nextBeginOffset")) == batch.last_offset + 1
    assert all(message.property("UNIQ_KEY") == message.message_id for message in batch)


def test_tags_are_rechecked_by_text(codec: Impl) -> None:
    data = (FOLDER / "pull-body-100B-32.bin").read_bytes()
    batch = codec.remoting.decode_messages(data, {"Tag1", "other"})
    assert [message.offset for message in batch] == list(range(1, 32, 3))
    assert batch.scanned == 32


def test_check_transaction_carries_the_half_message(codec: Impl) -> None:
    (frame,) = codec.remoting.FrameReader().feed(vector("check-transaction-39-json"))
    (message,) = codec.remoting.decode_messages(frame.body)
    assert message.property("TRAN_MSG") == "true"
    assert message.prepared_transaction_offset == 0 or message.sys_flag & 0x4
    assert message.offset_id == frame.field("offsetMsgId")
    assert message.transaction_id == frame.field("transactionId")


@pytest.mark.parametrize("form", ["bin", "json"])
@pytest.mark.parametrize("name", ["send", "send-delay", "send-timer", "send-txhalf", "send-zlib", "send-batch"])
def test_send_requests_equal_the_java_clients(codec: Impl, name: str, form: str) -> None:
    data = vector(f"{name}-{form}-req")
    (frame,) = codec.remoting.FrameReader().feed(data)
    fields = frame.fields
    again = codec.remoting.encode_send(
        frame.opaque,
        fields["a"],
        fields["b"],
        int(fields["e"]),
        fields["i"].encode(),
        frame.body,
        born_at=int(fields["g"]),
        code=frame.code,
        sys_flag=int(fields["f"]),
        batch=fields["m"] == "true",
        broker=fields["n"],
        language=frame.language,
        version=frame.version,
        serialize=frame.serialize,
    )
    assert again == data


def test_pull_request_equals_the_java_clients(codec: Impl) -> None:
    data = vector("pull-found-bin-req")
    (frame,) = codec.remoting.FrameReader().feed(data)
    fields = frame.fields
    again = codec.remoting.encode_pull(
        frame.opaque,
        fields["consumerGroup"],
        fields["topic"],
        int(fields["queueId"]),
        int(fields["queueOffset"]),
        max_messages=int(fields["maxMsgNums"]),
        sys_flag=int(fields["sysFlag"]),
        commit_offset=int(fields["commitOffset"]),
        suspend_ms=int(fields["suspendTimeoutMillis"]),
        sub_version=int(fields["subVersion"]),
        expression_type=fields["expressionType"],
        max_bytes=int(fields["maxMsgBytes"]),
        broker=fields["bname"],
        language=frame.language,
        version=frame.version,
        serialize=frame.serialize,
    )
    assert again == data


def test_batch_send_is_taken_apart_and_built_again(codec: Impl) -> None:
    (frame,) = codec.remoting.FrameReader().feed(vector("send-batch-json-req"))
    elements = codec.remoting.split_batch(frame.body)
    builder = codec.remoting.BatchBuilder()
    for flag, body, text in elements:
        builder.add(body, text, flag)
    assert [body for _, body, _ in elements] == [b"batch 0", b"batch 1", b"batch 2"]
    assert builder.seal() == frame.body


def test_pop_reply_numbers_above_sixteen_bits(codec: Impl) -> None:
    (frame,) = codec.remoting.FrameReader().feed(vector("pop-200050-req"))
    assert frame.code == 200050
    (reply,) = codec.remoting.FrameReader().feed(vector("pop-200050-resp"))
    assert len(codec.remoting.decode_messages(reply.body)) > 0


def test_unique_keys_of_the_java_client_parse(codec: Impl) -> None:
    (frame,) = codec.remoting.FrameReader().feed(vector("send-json-resp"))
    ip, _, _, since, counter = codec.remoting.parse_unique_key(frame.field("transactionId"))
    assert (ip, counter) == (bytes([192, 0, 2, 2]), 0)
    assert 0 < since < 31 * 86_400_000
    assert codec.remoting.parse_offset_id(frame.field("msgId"))[:2] == ("127.0.0.1", 10911)
