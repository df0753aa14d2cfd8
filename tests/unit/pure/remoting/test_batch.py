"""Messages to bytes: batch elements, by both twins."""

from __future__ import annotations

from types import ModuleType

import pytest

from mqclient._impl import Impl
from mqclient.errors import ConfigError
from tests.support.remoting import SHEET_ELEMENT


@pytest.fixture
def remoting(codec: Impl) -> ModuleType:
    return codec.remoting


def test_the_sheets_batch_element(remoting: ModuleType) -> None:
    builder = remoting.BatchBuilder()
    assert builder.add(b"ab", remoting.encode_properties({"TAGS": "A"})) == len(SHEET_ELEMENT)
    assert builder.seal() == SHEET_ELEMENT
    assert remoting.split_batch(SHEET_ELEMENT) == [(0, b"ab", b"TAGS\x01A\x02")]


def test_what_does_not_fit_an_element_is_refused(remoting: ModuleType) -> None:
    with pytest.raises(ConfigError):
        remoting.BatchBuilder().add(b"", bytes(32768))
    with pytest.raises(ConfigError):
        remoting.BatchBuilder().add(b"", b"", 2**31)


def test_a_builder_starts_anew_after_sealing(remoting: ModuleType) -> None:
    builder = remoting.BatchBuilder()
    assert builder.seal() == b""
    assert builder.add_many([b"a", b"b", b"c"], [b""] * 3, 1, 10**6, 1) == 2
    assert builder.add_many([b"a", b"b", b"c"], [b""] * 3, 2, 30) == 2
    assert (builder.count, builder.size) == (1, 23)
    assert remoting.split_batch(builder.seal()) == [(0, b"b", b"")]
    assert (builder.count, builder.size, builder.seal()) == (0, 0, b"")
    with pytest.raises(ConfigError):
        builder.add_many([b"a"], [])
