"""The stored form: one message and a whole batch, by both twins."""

from __future__ import annotations

from array import array
from types import ModuleType

import pytest

from mqclient._impl import Impl
from mqclient.errors import ConfigError, ProtocolError


@pytest.fixture
def remoting(codec: Impl) -> ModuleType:
    return codec.remoting


def batch(remoting: ModuleType, *messages: tuple[bytes, bytes]) -> bytes:
    builder = remoting.BatchBuilder()
    for body, properties in messages:
        builder.add(body, properties, 7)
    sealed: bytes = builder.seal()
    return sealed


def test_what_does_not_fit_a_message_is_refused(remoting: ModuleType) -> None:
    for options in (
        {"queue_id": 2**31},
        {"offset": 2**63},
        {"properties": bytes(32768)},
        {"born_host": ("nowhere", 1)},
        {"store_host": ("::1", 2**31)},
    ):
        with pytest.raises(ConfigError):
            remoting.encode_message(b"", "T", **options)
    with pytest.raises(ConfigError):
        remoting.encode_message(b"", "x" * 32768)


def test_a_batch_becomes_records_at_consecutive_places(remoting: ModuleType) -> None:
    body = batch(remoting, (b"one", b"TAGS\x01a\x02"), (b"three", b""), (b"", "TAGS\x01K\u00e4se\U0001f9c0".encode()))
    host = {"born_host": ("10.0.0.1", 5), "store_host": ("::1", 6)}
    records, ends, tags = remoting.store_batch(
        body, "T", queue_id=3, offset=40, physical_offset=1000, born_at=1, stored_at=2, **host
    )
    messages = list(remoting.decode_messages(records, check_crc=True))
    assert [(message.offset, message.body, message.flag) for message in messages] == [
        (40, b"one", 7),
        (41, b"three", 7),
        (42, b"", 7),
    ]
    sizes = [message.stored_size for message in messages]
    assert [message.physical_offset for message in messages] == [1000, 1000 + sizes[0], 1000 + sum(sizes[:2])]
    assert {(message.queue_id, message.born_host, message.store_host) for message in messages} == {
        (3, "10.0.0.1:5", "[::1]:6")
    }
    assert array("I", ends).tolist() == [sizes[0], sum(sizes[:2]), sum(sizes)]
    assert array("i", tags).tolist() == [97, 0, -1931922291]


@pytest.mark.parametrize(
    ("text", "timed"),
    [
        (b"", False),
        (b"KEYS\x01DELAY\x02TAGS\x01TIMER_DEL\x02", False),
        (b"DELAY\x013\x02", True),
        (b"TAGS\x01a\x02TIMER_DELIVER_MS\x015", True),
        (b"TAGS\x01a\x02\x02TIMER_DELAY_SEC\x015\x02", True),
    ],
)
def test_what_is_timed_is_found_in_properties_alone(remoting: ModuleType, text: bytes, timed: bool) -> None:
    body = batch(remoting, (b"DELAY\x01 TIMER_DELIVER_MS\x01", b""), (b"two", text))
    assert remoting.is_timed(body) is timed
    assert remoting.is_timed(body[:-1]) is False


def test_nothing_becomes_nothing(remoting: ModuleType) -> None:
    assert remoting.store_batch(b"", "T") == (b"", b"", b"")


def test_a_batch_that_is_none_says_where(remoting: ModuleType) -> None:
    body = batch(remoting, (b"one", b""), (b"two", b""))
    with pytest.raises(ProtocolError, match=r"cut off|bytes"):
        remoting.store_batch(body[:-1], "T")


@pytest.mark.parametrize("options", [{"offset": 2**63 - 1}, {"physical_offset": 2**63 - 5}, {"queue_id": 2**31}])
def test_a_batch_beyond_its_numbers_is_refused(remoting: ModuleType, options: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        remoting.store_batch(batch(remoting, (b"one", b"")), "T", **options)
