"""The remoting codec: decoding pull replies, columns, encoding batches; native against pure against C.

One process, 128 B bodies, 4 properties (7 where said), batches of 32 and of 1,024.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.support import BUILD, Compare, Contender, floor, twins
from mqclient.rocketmq.model import MessageQueue, Receipt

native, pure = twins("remoting")

COLUMNS = ("body", "keys", "tag", "properties", "offset", "born_at", "stored_at")
BORN = 1_700_000_000_000
counts = pytest.mark.parametrize("count", [32, 1024])


def texts(i: int, properties: int) -> dict[str, str]:
    found = {"TAGS": f"Tag{i % 3}", "KEYS": f"key-{i}", "UNIQ_KEY": f"7F0000010000{i:020X}", "color": "red"}
    more = {"WAIT": "true", "CLUSTER": "DefaultCluster", "MSG_REGION": "DefaultRegion"}
    return found | more if properties == 7 else found


@cache
def reply(count: int, properties: int = 4) -> bytes:
    """The body of a pull reply."""
    messages = (
        pure.encode_message(
            bytes(97 + (i + k) % 26 for k in range(128)),
            "BenchTopic",
            properties=pure.encode_properties(texts(i, properties)),
            queue_id=3,
            offset=1000 + i,
            physical_offset=10**9 + 300 * i,
            born_at=BORN + i,
            born_host=("10.0.0.9", 40000),
            stored_at=BORN + i + 5,
            store_host=("10.0.0.1", 10911),
        )
        for i in range(count)
    )
    return b"".join(messages)


@cache
def reply_file(count: int) -> Path:
    """The same where the floor can read it."""
    BUILD.mkdir(parents=True, exist_ok=True)
    path = BUILD / f"remoting.{count}.bin"
    path.write_bytes(reply(count))
    return path


def touch_all(codec: Any, body: bytes) -> None:
    for message in codec.decode_messages(body):
        message.body  # noqa: B018
        message.keys  # noqa: B018
        message.tag  # noqa: B018


def touch_usual(codec: Any, body: bytes) -> None:
    for message in codec.decode_messages(body):
        message.body  # noqa: B018
        message.offset  # noqa: B018
        message.born_at  # noqa: B018
        message.tag  # noqa: B018


@counts
def bench_full(compare: Compare, count: int) -> None:
    body = reply(count)
    compare(
        f"remoting.full.{count}",
        per=count,
        native=lambda: touch_all(native, body),
        pure=lambda: touch_all(pure, body),
        asked=">= 25 x pure, pure <= 8 µs (body, keys, tag touched)",
    )


@counts
def bench_usual(compare: Compare, count: int) -> None:
    body = reply(count)
    compare(
        f"remoting.usual.{count}",
        per=count,
        native=lambda: touch_usual(native, body),
        pure=lambda: touch_usual(pure, body),
        floor=floor("remoting", "bodies", reply_file(count)),
        asked="<= 5 x C that copies the bodies (body, offset, born time, tag touched)",
    )


@counts
def bench_lazy(compare: Compare, count: int) -> None:
    body = reply(count)
    compare(
        f"remoting.lazy.{count}",
        per=count,
        native=lambda: native.decode_messages(body),
        pure=lambda: pure.decode_messages(body),
        floor=floor("remoting", "walk", reply_file(count)),
        asked="<= 4 x the C walk",
    )


def bench_properties(compare: Compare) -> None:
    """Each message's dict once; from the messages made to the dicts there."""
    body = reply(32, properties=7)

    def read(messages: list[Any]) -> None:
        for message in messages:
            message.properties  # noqa: B018

    compare(
        "remoting.properties.7",
        per=32,
        native=Contender(read, lambda: (list(native.decode_messages(body)),)),
        pure=Contender(read, lambda: (list(pure.decode_messages(body)),)),
        asked="<= 600 ns for 7 properties",
    )


@counts
def bench_columns(compare: Compare, count: int) -> None:
    body = reply(count)
    compare(
        f"remoting.columns.{count}",
        per=count,
        native=lambda: native.decode_messages(body).columns(COLUMNS),
        pure=lambda: pure.decode_messages(body).columns(COLUMNS),
        floor=floor("remoting", "columns", reply_file(count)),
        asked="<= 2.5 x C that copies the same columns",
    )


def build(codec: Any, bodies: list[bytes], properties: list[bytes]) -> None:
    builder = codec.BatchBuilder()
    builder.add_many(bodies, properties)
    builder.seal()


def build_singly(codec: Any, bodies: list[bytes], properties: list[bytes]) -> None:
    builder = codec.BatchBuilder()
    for body, text in zip(bodies, properties, strict=True):
        builder.add(body, text)
    builder.seal()


@pytest.mark.parametrize(("name", "run"), [("encode", build), ("encode_singly", build_singly)])
def bench_encode(compare: Compare, name: str, run: Any) -> None:
    """1,000 messages of 100 B into a batch, properties prepared as a producer does before."""
    bodies = [bytes([i % 256]) * 100 for i in range(1000)]
    properties = [pure.encode_properties(texts(i, 4)) for i in range(1000)]
    compare(
        f"remoting.{name}",
        per=1000,
        native=lambda: run(native, bodies, properties),
        pure=lambda: run(pure, bodies, properties),
        asked="<= 150 ns, >= 20 x pure (add_many)" if name == "encode" else "<= 150 ns (add)",
    )


def bench_store_batch(compare: Compare) -> None:
    """The body of a batch send into what a broker keeps."""
    builder = pure.BatchBuilder()
    builder.add_many([b"x" * 100] * 1000, [pure.encode_properties(texts(i, 4)) for i in range(1000)])
    body = builder.seal()
    compare(
        "remoting.store_batch",
        per=1000,
        native=lambda: native.store_batch(body, "BenchTopic"),
        pure=lambda: pure.store_batch(body, "BenchTopic"),
        asked="500,000/s through the broker: <= 2,000 ns of all",
    )


def bench_encode_columns(compare: Compare) -> None:
    """Rows of 100 B with key and tag, a unique key made for each."""
    batch = pure.decode_messages(reply(1024))
    columns = batch.columns(("keys", "tag"))
    ends = b"".join((100 * i).to_bytes(4, "little") for i in range(1025))
    columns["body"] = (None, ends, b"x" * 102400)

    def encode(codec: Any) -> bytes:
        keys = codec.UniqueKeys(b"\x7f\0\0\1", 4711, 42)
        body: bytes = codec.encode_columns(columns, 0, 1024, unique=keys, now_ms=BORN)
        return body

    compare(
        "remoting.encode_columns",
        per=1024,
        native=lambda: encode(native),
        pure=lambda: encode(pure),
        asked="<= 100 ns a row",
    )


def bench_many(compare: Compare) -> None:
    """What the codec does for a `send_many` of 32: messages made, written, sent, and their receipts."""
    text = pure.encode_properties({"WAIT": "true"})
    ids = ",".join(pure.offset_id("127.0.0.1", 10911, 200 * i) for i in range(32))
    answer = pure.encode_frame(0, 7, flag=1, fields={"queueId": "1", "queueOffset": "5", "msgId": ids})
    queue, none = MessageQueue("orders", "broker-a", 1), frozenset[str]()
    ways: dict[Any, Any] = {}
    for codec in (native, pure):
        keys = codec.UniqueKeys(b"\x7f\0\0\1", 4711, 42)
        head = codec.SendHead("group", "orders", 1, code=320, batch=True, broker="broker-a")
        ways[codec] = keys, head, codec.FrameReader(), codec.BatchBuilder()

    def there_and_back(codec: Any) -> None:
        keys, head, reader, builder = ways[codec]
        own: list[str] = []
        messages = [codec.Outgoing("orders", b"x" * 128) for _ in range(32)]
        codec.add_messages(builder, messages, 0, "orders", keys, BORN, own, none, kind=codec.Outgoing)
        head.frame(7, text, builder.seal(), BORN)
        (frame,) = reader.feed(answer)
        codec.receipts(Receipt, frame, queue, own, "SEND_OK")

    compare(
        "remoting.many.32",
        per=32,
        native=lambda: there_and_back(native),
        pure=lambda: there_and_back(pure),
        asked="issue 5: <= 1,500 ns a message, the engine's part of the request among them",
    )


def bench_frame(compare: Compare) -> None:
    """A send's way: encoded, and its reply cut and read."""
    text = pure.encode_properties(texts(1, 4))
    fields = {"queueId": "1", "transactionId": "7F0000010000", "msgId": "7F00000100002A9F", "queueOffset": "5"}
    answer = pure.encode_frame(0, 7, flag=1, fields=fields)

    def there_and_back(codec: Any) -> None:
        codec.encode_send(7, "group", "orders", 3, text, b"x" * 100, born_at=BORN, broker="broker-a")
        for frame in codec.FrameReader().feed(answer):
            frame.field("queueOffset")

    compare(
        "remoting.send",
        per=1,
        native=lambda: there_and_back(native),
        pure=lambda: there_and_back(pure),
        asked="(none)",
    )
