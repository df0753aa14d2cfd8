"""The compacted view: what is left, told as recorded in tombstone_and_compacted, and read."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient import _schema
from mqclient.broker.pulsar import compacted
from mqclient.broker.pulsar.compacted import Compacted
from mqclient.broker.store import Log
from mqclient.core.compress import compress
from mqclient.pulsar.codes import ServerError
from tests.support.pulsar_world import PulsarWorld, RawClient

T = "persistent/public/default/t"


@pytest.fixture
def raw(codec: Any) -> RawClient:
    raw = RawClient(PulsarWorld(codec))
    raw.ask("PRODUCER", topic="t", producer_id=9)
    return raw


def batch(raw: RawClient, *messages: tuple[str | None, bytes], compression: int = 0) -> None:
    builder = raw.codec.BatchBuilder()
    for number, (key, body) in enumerate(messages):
        builder.add(body, key, None, 0, None, number)
    payload, count = builder.seal()
    size = len(payload)
    if compression:
        payload = compress(compacted.COMPRESSIONS[compression], payload)
    options = {"num_messages": count, "compression": compression, "uncompressed_size": size, "partition_key": "k0"}
    raw.write(raw.codec.encode_send(9, 0, raw.codec.encode_metadata("p", 0, 1, **options), payload, num_messages=count))


def plain(raw: RawClient, key: str | None, body: bytes, **options: Any) -> None:
    raw.write(raw.codec.encode_send(9, 0, raw.codec.encode_metadata("p", 0, 1, partition_key=key, **options), body))


def run(raw: RawClient) -> None:
    assert raw.world.rest("PUT", f"{T}/compaction") is None
    raw.world.world.run()
    assert raw.world.rest("GET", f"{T}/compaction") == {"status": "SUCCESS", "lastError": ""}


def read(raw: RawClient, **fields: Any) -> list[tuple[int, bytes]]:
    reader = RawClient(raw.world)
    start = {"ledgerId": 2**64 - 1, "entryId": 2**64 - 1}
    given = {"durable": False, "start_message_id": start, "read_compacted": True, "subscription": "r", **fields}
    assert reader.subscribe(**given)[0] == "SUCCESS"
    found = []
    for entry in reader.flow(1000):
        messages = raw.codec.decode_messages(entry, decompress=compacted._decompress)
        found += [(entry.entry, message.body) for message in messages]
    reader.lose()
    return found


def test_as_recorded(raw: RawClient) -> None:
    batch(raw, *((f"k{number % 3}", b"v%d" % number) for number in range(10)))
    batch(raw, ("k1", b""))
    run(raw)
    topic = raw.world.door.topics.make("t")
    assert topic.compacted is not None
    assert list(topic.compacted.entries) == [0]
    stored = raw.codec.Entry.from_stored(topic.compacted.entries[0])
    assert bytes(stored.payload) == b"\x00\x00\x00\x04\x18\x00 \x01" * 8 + (
        b"\x00\x00\x00\x08\x12\x02k2\x18\x02@\x08v8\x00\x00\x00\x08\x12\x02k0\x18\x02@\tv9"
    )
    told: Any = _schema.message("MessageMetadata").FromString(stored.metadata)
    assert (told.num_messages_in_batch, list(told.compacted_batch_indexes), told.uncompressed_size) == (10, [8, 9], 92)
    assert read(raw) == [(0, b"v8"), (0, b"v9")]
    reader = RawClient(raw.world)
    reader.subscribe(subscription="other", read_compacted=True)
    last = reader.ask("GET_LAST_MESSAGE_ID", consumer_id=0)[1].last_message_id
    assert (last.entryId, last.batch_index) == (0, 9)


def test_plain_entries_and_the_tail(raw: RawClient) -> None:
    for key, body in (("a", b"1"), (None, b"nobody's"), ("b", b"2"), ("a", b"3"), ("b", b"")):
        plain(raw, key, body)
    run(raw)
    plain(raw, "a", b"4")
    plain(raw, None, b"5")
    assert read(raw) == [(3, b"3"), (5, b"4"), (6, b"5")]
    assert len(read(raw, read_compacted=False, subscription="all")) == 7
    run(raw)
    assert read(raw) == [(5, b"4")]


@pytest.mark.parametrize("compression", [2, 4])
def test_compressed_batches(raw: RawClient, compression: int) -> None:
    if compression == 4:
        pytest.importorskip("cramjam", reason="snappy needs it: pip install mqclient[compress]")
    batch(raw, ("a", b"1"), ("b", b"2"), compression=compression)
    batch(raw, ("a", b"3"), compression=compression)
    run(raw)
    assert read(raw) == [(0, b"2"), (1, b"3")]


def test_what_cannot_be_read_stays(raw: RawClient) -> None:
    plain(
        raw,
        "a",
        b"secret",
        encryption_keys=[_schema.message("EncryptionKeys")(key="k", value=b"v").SerializeToString()],
    )
    plain(raw, "a", b"part", uuid="u", num_chunks=2, chunk_id=0)
    plain(raw, None, b"garbage", num_messages=3)
    plain(raw, None, b"\x00\x00\x00\x02\xff\xff", num_messages=1)
    plain(raw, None, b"garbage", num_messages=3, compression=2, uncompressed_size=50)
    run(raw)
    topic = raw.world.door.topics.make("t")
    assert topic.compacted is not None
    assert topic.compacted.entries == dict.fromkeys(range(5), b"")


def test_in_steps(raw: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compacted, "STEP", 2)
    for number in range(9):
        plain(raw, str(number % 2), b"%d" % number)
    run(raw)
    assert read(raw) == [(7, b"7"), (8, b"8")]


def test_who_may_read_it(raw: RawClient) -> None:
    for kind in (1, 3):
        assert raw.subscribe(read_compacted=True, subType=kind)[1].error == ServerError.NotAllowedError
    assert raw.subscribe(read_compacted=True, subType=2)[0] == "SUCCESS"


def test_the_view() -> None:
    log = Log()
    for record in (b"0", b"1", b"2", b"3"):
        log.append(record, 0)
    view = Compacted(2, {1: b"", 2: b"two"})
    assert [view.leaves_out(entry) for entry in range(4)] == [True, False, False, False]
    assert [bytes(view.record(entry, log)) for entry in (1, 2, 3)] == [b"1", b"two", b"3"]
    assert (view.last_seen(3), view.last_seen(2), Compacted(2).last_seen(2)) == (3, 2, -1)
