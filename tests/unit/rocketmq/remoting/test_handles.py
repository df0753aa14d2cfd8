"""The handles of popped messages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mqclient.errors import ProtocolError
from mqclient.rocketmq.remoting.handles import Handle, handles_of, retry_topic


def message(topic: str, queue_id: int, offset: int, handle: str | None = None) -> Any:
    return SimpleNamespace(topic=topic, queue_id=queue_id, offset=offset, property=lambda name: handle)


def frame(**fields: str) -> Any:
    fields = {"popTime": "1000", "invisibleTime": "60000", "reviveQid": "3", **fields}
    return SimpleNamespace(field=lambda name, default="": fields.get(name, default))


def test_made_of_what_the_broker_named() -> None:
    batch = [message("t", 0, 5), message("t", 1, 9), message("t", 0, 7), message(retry_topic("g", "t"), 0, 2)]
    batch.append(message(retry_topic("g", "t", newer=True), 0, 4))
    batch.append(message("t", 0, 1, "1 2 3 4 1 broker-a 0 1"))
    answer = frame(startOffsetInfo="0 0 1;0 1 9;1 0 2;2 0 4", msgOffsetInfo="0 0 1,5,7;0 1 9;1 0 2;2 0 4")
    assert [str(handle) for handle in handles_of(answer, batch, "broker-a", "g", "t")] == [
        "1 1000 60000 3 0 broker-a 0 5",
        "9 1000 60000 3 0 broker-a 1 9",
        "1 1000 60000 3 0 broker-a 0 7",
        "2 1000 60000 3 1 broker-a 0 2",
        "4 1000 60000 3 2 broker-a 0 4",
        "1 2 3 4 1 broker-a 0 1",
    ]


def test_an_old_broker_names_nothing() -> None:
    (handle,) = handles_of(frame(), [message("t", 2, 8)], "b", "g", "t")
    assert str(handle) == "8 1000 60000 3 0 b 2 8"


@pytest.mark.parametrize("info", ["0 0", "0 x 1", "0 0 a,b", "0 0 1"])
def test_what_does_not_fit_is_refused(info: str) -> None:
    batch = [message("t", 0, 1), message("t", 0, 2)]
    with pytest.raises(ProtocolError):
        handles_of(frame(msgOffsetInfo=info), batch, "b", "g", "t")


def test_taken_apart() -> None:
    handle = Handle.parse("5 1000 60000 3 2 broker-a 1 7 more")
    assert (handle.expires_ms, handle.topic("g", "t"), handle.offset) == (61000, "%RETRY%g+t", "7")
    assert Handle.parse("5 1000 60000 3 1 b 1 7").topic("g", "t") == "%RETRY%g_t"
    assert Handle.parse("5 1000 60000 3 0 b 1 7").topic("g", "t") == "t"
    for text in ("", "1 2 3", "a 1 1 1 0 b 1 1", "1 1 1 1 0 b x 1"):
        with pytest.raises(ProtocolError, match="is no handle"):
            Handle.parse(text)
