"""Unique keys and offset ids, by both twins."""

from __future__ import annotations

import time
from array import array
from types import ModuleType

import pytest

from mqclient._impl import Impl
from mqclient.errors import ConfigError


@pytest.fixture
def remoting(codec: Impl) -> ModuleType:
    return codec.remoting


def test_unique_keys_tell_time_and_order(remoting: ModuleType) -> None:
    keys = remoting.UniqueKeys(bytes([10, 0, 0, 1]), 65537, 0xDEADBEEF, 0xFFFF)
    now = 1_700_000_000_123
    one, two = keys.next(now), keys.next(now + 1)
    assert one.startswith("0A000001" + "0001" + "DEADBEEF")
    ip, pid, salt, since, counter = remoting.parse_unique_key(one)
    assert (ip, pid, salt, counter) == (bytes([10, 0, 0, 1]), 1, 0xDEADBEEF, 0xFFFF)
    assert remoting.parse_unique_key(two)[3:] == (since + 1, 0)
    here = time.localtime(now / 1000)
    assert since == now - 1000 * time.mktime((here.tm_year, here.tm_mon, 1, 0, 0, 0, 0, 0, -1))
    assert remoting.parse_unique_key(keys.next(now - since - 10))[3] == 0
    assert remoting.parse_unique_key(keys.next(now - since - 2_000_000))[3] == 2**32 - 2_000_000
    assert len(remoting.UniqueKeys(bytes(16), 1, 2).next(now)) == 56
    with pytest.raises(ConfigError):
        remoting.UniqueKeys(b"abc", 1, 2)


def test_a_new_month_starts_a_new_count(remoting: ModuleType) -> None:
    keys = remoting.UniqueKeys(bytes(4), 1, 2)
    december = int(1000 * time.mktime((2023, 12, 31, 23, 59, 59, 0, 0, -1)))
    assert remoting.parse_unique_key(keys.next(december))[3] > 30 * 86_400_000
    assert remoting.parse_unique_key(keys.next(december + 1500))[3] == 500


def test_ids_of_a_row_of_messages(remoting: ModuleType) -> None:
    ends = array("I", [100, 300, 310]).tobytes()
    ids = [remoting.offset_id("10.0.0.1", 10911, place) for place in (7, 107, 307)]
    assert remoting.offset_ids("10.0.0.1", 10911, 7, ends).split(",") == ids
    assert remoting.offset_ids("::1", 1, 7, ends[:4]) == remoting.offset_id("::1", 1, 7)
    assert remoting.offset_ids("::1", 1, 7, b"") == ""
    for host, port, place, row in (
        ("nowhere", 1, 0, ends),
        ("nowhere", 1, 0, b""),
        ("1.2.3.4", 2**31, 0, ends),
        ("1.2.3.4", 1, 2**63 - 300, ends),
        ("1.2.3.4", 1, 2**63 - 300, array("I", [400, 0]).tobytes()),
        ("1.2.3.4", 1, 2**63, b""),
        ("1.2.3.4", 1, 0, ends[:5]),
    ):
        with pytest.raises(ConfigError):
            remoting.offset_ids(host, port, place, row)


def test_offset_ids(remoting: ModuleType) -> None:
    assert remoting.offset_id("10.0.0.1", 10911, 1024) == "0A00000100002A9F0000000000000400"
    assert remoting.parse_offset_id("0a00000100002a9f0000000000000400") == ("10.0.0.1", 10911, 1024)
    wide = remoting.offset_id("::1", 1, -1)
    assert remoting.parse_offset_id(wide) == ("::1", 1, -1)
    for wrong in ("", "0" * 31, "g" * 32, "0" * 55, " " * 32):
        with pytest.raises(ConfigError):
            remoting.parse_offset_id(wrong)
        with pytest.raises(ConfigError):
            remoting.parse_unique_key(wrong)
    for host, port in (("nowhere", 1), ("1.2.3.4\0", 1), ("1.2.3.4", 2**31)):
        with pytest.raises(ConfigError):
            remoting.offset_id(host, port, 0)
