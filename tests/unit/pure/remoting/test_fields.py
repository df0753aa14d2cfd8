"""The fields of a message to send: what is given in other forms, and what is no body."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from mqclient._pure.remoting import Outgoing


def test_what_is_not_given() -> None:
    fields = Outgoing("t", b"x")
    assert (fields.topic, fields.body, fields.tag, fields.keys, fields.properties) == ("t", b"x", None, [], {})
    assert (fields.delay_level, fields.deliver_at, fields.deliver_after, fields.flag) == (0, None, None, 0)


def test_other_forms() -> None:
    given = {"a": "b"}
    when = datetime(2026, 1, 2, tzinfo=timezone.utc)
    fields = Outgoing("t", bytearray(b"x"), keys="one", properties=given, deliver_at=when)
    assert (fields.keys, fields.deliver_at) == (["one"], 1767312000000)
    assert fields.properties == given
    assert fields.properties is not given
    assert Outgoing("t", b"x", keys=iter("ab"), deliver_at=5).keys == ["a", "b"]


@pytest.mark.parametrize(("body", "cure"), [("text", "text.encode"), (5, "turn it into bytes")])
def test_bodies(body: Any, cure: str) -> None:
    with pytest.raises(TypeError, match=cure):
        Outgoing("t", body)
