"""The one door to JSON: both libraries give the same."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from mqclient.core import json

BOTH = [(json.loads, json.dumps), (json._standard_loads, json._standard_dumps)]
VALUES: list[Any] = [None, True, 0, -(2**53), 2**63 - 1, 1.5, "", "ä€😀\u0000\n", [], {}, {"a": [1, {"b": None}]}]


@pytest.mark.parametrize(("loads", "dumps"), BOTH, ids=["chosen", "standard"])
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back(loads: Any, dumps: Any, value: Any) -> None:
    text = dumps(value)
    assert isinstance(text, bytes)
    for form in (text, bytearray(text), memoryview(text), text.decode()):
        assert loads(form) == value


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_both_write_the_same_bytes(value: Any) -> None:
    assert json.dumps(value) == json._standard_dumps(value)


@pytest.mark.parametrize(("loads", "_dumps"), BOTH, ids=["chosen", "standard"])
@pytest.mark.parametrize("text", [b"", b"{", b"{'a':1}", b"NaN", b"Infinity", b"[1,]", b'"\xff"', b"1 2"])
def test_what_is_no_json_is_a_value_error(loads: Any, _dumps: Any, text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the libraries have their own words
        loads(text)


def test_the_library_is_named() -> None:
    assert json.library in ("orjson", "json")


def test_the_standard_library_is_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert json._choose()[0] == json.library
    monkeypatch.setitem(sys.modules, "orjson", None)
    assert json._choose() == ("json", json._standard_loads, json._standard_dumps)
