"""What the answer to a send says of each of its messages."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient._pure import remoting
from mqclient.rocketmq.model import MessageQueue, Receipt

QUEUE = MessageQueue("t", "b", 1)


def made(ids: list[str], **fields: str) -> list[Receipt]:
    (frame,) = remoting.FrameReader().feed(remoting.encode_frame(0, 1, flag=1, fields=fields))
    return remoting.receipts(Receipt, frame, QUEUE, ids, "SEND_OK")


def test_one_alone_has_all() -> None:
    found = made(["x"], queueId="1", queueOffset="7", msgId="A", transactionId="T", recallHandle="H")
    assert found == [Receipt(QUEUE, 7, "x", "A", "SEND_OK", "T", "H")]
    assert found[0].queue is QUEUE


def test_many_in_a_row_and_elsewhere() -> None:
    there = QUEUE._replace(queue_id=2)
    assert made(["x", "y"], queueId="2", queueOffset="7", msgId="A,B") == [
        Receipt(there, 7, "x", "A"),
        Receipt(there, 8, "y", "B"),
    ]


@pytest.mark.parametrize("said", ["A", "A,B,C", ""])
def test_ids_that_are_not_one_for_each(said: str) -> None:
    assert [receipt.offset_id for receipt in made(["x", "y"], queueOffset="7", msgId=said)] == ["", ""]


@pytest.mark.parametrize("number", ["", "x", str(2**62), "9" * 5000])
def test_an_unreadable_place_is_none(number: str) -> None:
    assert made(["x", "y"], queueId=number, queueOffset=number) == [
        Receipt(QUEUE, -1, "x", ""),
        Receipt(QUEUE, -1, "y", ""),
    ]


def test_a_kind_is_one_of_tuples() -> None:
    (frame,) = remoting.FrameReader().feed(remoting.encode_frame(0, 1, flag=1))
    kind: Any = list
    with pytest.raises(TypeError, match="not list"):
        remoting.receipts(kind, frame, QUEUE, ["x"], "SEND_OK")
