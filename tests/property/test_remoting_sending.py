"""What a producer sends is made alike by the native remoting codec and its pure twin."""

from __future__ import annotations

from functools import partial
from types import ModuleType
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mqclient.errors import ConfigError
from mqclient.rocketmq.model import Message, MessageQueue, Receipt
from tests.property.twins import compared, outcome, twins_of

TWINS = twins_of("remoting")
ONE = TWINS[0]

settings.register_profile("unhurried", deadline=None)  # a busy machine is no finding
settings.load_profile("unhurried")

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
same = partial(compared, TWINS)


class Odd(Message):
    """What a user may derive: attributes that are no fields."""

    __slots__ = ()

    @property
    def tag(self) -> Any:
        """Of all the same."""
        return "odd"

    @tag.setter
    def tag(self, tag: Any) -> None:
        """Not kept."""


@given(
    st.text(max_size=6), st.text(max_size=6), int32, int64, st.binary(max_size=9), st.binary(max_size=30), st.booleans()
)
def test_heads_make_what_the_general_call_makes(
    group: str, topic: str, queue_id: int, number: int, text: bytes, body: bytes, some: bool
) -> None:
    head: dict[str, Any] = {"broker": topic, "code": 320, "batch": some, "default_queues": queue_id}
    more: dict[str, Any] = {"born_at": number, "sys_flag": 3, "flag": queue_id, "oneway": some}
    made = same(
        lambda twin: twin.SendHead(group, topic, queue_id, **head).frame(7, text, body, number, 3, queue_id, some)
    )
    assert made == outcome(lambda: ONE.encode_send(7, group, topic, queue_id, text, body, **more, **head))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["t", "u"]),
            st.binary(max_size=20),
            st.sampled_from([None, "", "tag", "x\x01"]),
            st.lists(st.sampled_from(["", "k", "two words", "k\x02"]), max_size=2),
            st.dictionaries(st.sampled_from(["a", "ä", "KEYS"]), st.text(max_size=3), max_size=2),
            st.sampled_from([{}, {}, {}, {"delay_level": 1}, {"deliver_at": 5}, {"deliver_after": 1.5}]),
        ),
        max_size=6,
    ),
    st.integers(0, 6),
    st.integers(0, 400),
    st.integers(0, 4),
    st.integers(0, 20),
    st.sampled_from([Message, Odd, *(twin.Outgoing for twin in TWINS)]),
)
def test_messages_are_added_alike(
    rows: list[Any], start: int, max_size: int, max_count: int, most: int, kind: type[Any]
) -> None:
    messages = [
        kind(topic, body, tag=tag, keys=keys, properties=properties, flag=len(body), **delay)
        for topic, body, tag, keys, properties, delay in rows
    ]

    def added(twin: ModuleType) -> Any:
        builder = twin.BatchBuilder()
        ids: list[str] = []
        unique = twin.UniqueKeys(b"\x7f\0\0\1", 7, 9)
        limits = {"max_size": max_size, "max_count": max_count, "most": most, "kind": told}
        place = twin.add_messages(builder, messages, start, "t", unique, 5, ids, {"KEYS"}, **limits)
        return place, builder.count, ids, builder.seal()

    def texts_alone(twin: ModuleType) -> Any:
        unique = twin.UniqueKeys(b"\x7f\0\0\1", 7, 9)
        return [twin.message_text(message, unique, 5, {"KEYS"}, most, told) for message in messages]

    told: type[Any] | None = None if kind is Odd else kind
    same(texts_alone)
    answer = same(added)
    if answer is not ConfigError:
        place, count, ids, body = answer
        assert count == len(ids) == max(0, place - start)
        assert all(message.topic == "t" and not message.delay_level for message in messages[start:place])
        assert count < 2 or len(body) <= max_size


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "queueId": st.one_of(st.text(max_size=3), int64.map(str), st.integers(0, 3).map(str)),
            "queueOffset": st.one_of(st.text(max_size=3), st.integers(-(2**70), 2**70).map(str), int64.map(str)),
            "msgId": st.lists(st.text('AB\xe4"', max_size=3), max_size=4).map(",".join),
            "transactionId": st.text(max_size=3),
            "recallHandle": st.text(max_size=3),
        },
    ),
    st.lists(st.text(max_size=3), min_size=1, max_size=4),
    st.sampled_from((0, 1)),
    st.booleans(),
)
def test_receipts_are_made_alike(fields: dict[str, str], ids: list[str], form: int, read: bool) -> None:
    queue = MessageQueue("t", "b", 1)

    def made(twin: ModuleType) -> Any:
        (frame,) = twin.FrameReader().feed(twin.encode_frame(0, 1, flag=1, fields=fields, serialize=form))
        assert not read or frame.fields is frame.fields  # decoded from then on
        return twin.receipts(Receipt, frame, queue, ids, "SEND_OK")

    receipts = same(made)
    assert [receipt.message_id for receipt in receipts] == ids
    assert all(type(receipt) is Receipt for receipt in receipts)
    first = receipts[0].offset
    assert [receipt.offset for receipt in receipts] == [first + place * (first >= 0) for place in range(len(ids))]
