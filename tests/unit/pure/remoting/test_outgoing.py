"""Messages as users make them become elements of a batch, up to the first that may not stand in it."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient._impl import Impl
from mqclient._pure import remoting
from mqclient.errors import ConfigError
from mqclient.rocketmq.model import Message


def added(messages: list[Message], **limits: Any) -> tuple[int, list[tuple[int, bytes, dict[str, str]]], list[str]]:
    builder, unique, ids = remoting.BatchBuilder(), remoting.UniqueKeys(b"\x7f\0\0\1", 1, 2), list[str]()
    place = remoting.add_messages(builder, messages, 0, "t", unique, 5, ids, {"KEYS"}, **limits)
    elements = remoting.split_batch(builder.seal())
    return place, [(flag, body, remoting.decode_properties(text)) for flag, body, text in elements], ids


def test_properties_of_each() -> None:
    messages = [Message("t", b"a"), Message("t", b"b", tag="x", keys=["k", "l"], properties={"p": "1"}, flag=3)]
    place, elements, (first, second) = added(messages)
    assert place == 2
    assert elements == [
        (0, b"a", {"UNIQ_KEY": first, "WAIT": "true"}),
        (3, b"b", {"UNIQ_KEY": second, "WAIT": "true", "TAGS": "x", "KEYS": "k l", "p": "1"}),
    ]


@pytest.mark.parametrize(
    "odd",
    [
        Message("other", b"a"),
        Message("t", b"a", delay_level=1),
        Message("t", b"a", deliver_at=1),
        Message("t", b"a", deliver_after=1),
        Message("t", b""),
        Message("t", b"too large"),
        Message("t", b"a", properties={"KEYS": "k"}),
    ],
)
def test_what_may_not_stand_in_it_is_left_to_the_caller(odd: Message) -> None:
    assert added([Message("t", b"a"), odd, Message("t", b"b")], most=5)[0] == 1


@pytest.mark.parametrize("odd", [{"p": "x" * 40_000}, {"p": "\x01"}, {"p": "v", "": "x"}])
def test_one_that_cannot_be_written_leaves_nothing_behind(codec: Impl, odd: dict[str, str]) -> None:
    builder, unique = codec.remoting.BatchBuilder(), codec.remoting.UniqueKeys(b"\x7f\0\0\1", 1, 2)
    ids: list[str] = []
    messages = [Message("t", b"a"), Message("t", b"odd", properties=odd), Message("t", b"b")]
    with pytest.raises(ConfigError):
        codec.remoting.add_messages(builder, messages, 0, "t", unique, 5, ids, reserved=set())
    assert (builder.count, len(ids)) == (1, 1)
    codec.remoting.add_messages(builder, messages, 2, "t", unique, 5, ids, reserved=set())
    assert [body for _, body, _ in codec.remoting.split_batch(builder.seal())] == [b"a", b"b"]


def test_the_text_of_one_that_goes_alone() -> None:
    unique = remoting.UniqueKeys(b"\x7f\0\0\1", 1, 2)
    message = Message("t", b"b", tag="x", keys=["k", "l"], properties={"p": "1"})
    text, message_id = remoting.message_text(message, unique, 5, {"KEYS"}) or (b"", "")
    assert remoting.decode_properties(text) == {
        "UNIQ_KEY": message_id, "WAIT": "true", "TAGS": "x", "KEYS": "k l", "p": "1",
    }  # fmt: skip


@pytest.mark.parametrize("odd", [Message("t", b"too large"), Message("t", b"a", properties={"KEYS": "k"})])
def test_who_needs_other_care_has_no_such_text(odd: Message) -> None:
    unique = remoting.UniqueKeys(b"\x7f\0\0\1", 1, 2)
    assert remoting.message_text(odd, unique, 5, {"KEYS"}, most=5) is None


def test_limits() -> None:
    messages = [Message("t", b"a" * 100)] * 5
    assert added(messages, max_count=3)[0] == 3
    place, elements, ids = added(messages, max_size=400)
    assert place == len(elements) == len(ids) == 2
    assert added(messages, max_size=10)[0] == 1
