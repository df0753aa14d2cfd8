"""Tables that tell of their changes."""

from __future__ import annotations

from typing import Any

from mqclient.broker.watched import Watched


def test_a_watched_dict_tells_every_change() -> None:
    table: Watched[str, int] = Watched({"a": 1})
    told: list[Any] = []
    table.tell = told.append
    table.update({"b": 2}, c=3)
    del table["a"]
    table.touch("b")
    table.clear()
    assert told == ["b", "c", "a", "b", "b", "c"]
    assert table == {}


def test_who_is_told_nothing_is_a_dict() -> None:
    table: Watched[str, int] = Watched(a=1)
    assert (table.setdefault("a", 2), table.setdefault("b", 3), table.pop("a"), table.pop("a", None)) == (1, 3, 1, None)
    assert table == {"b": 3}
