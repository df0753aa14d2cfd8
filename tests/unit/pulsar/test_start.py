"""Where a consumer begins, and what of the first entry lies before it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mqclient.pulsar.consumer_options import ConsumerOptions
from mqclient.pulsar.start import Start


def start(codec: Any, at: Any, *, inclusive: bool = False) -> Start:
    return Start(codec.pulsar, ConsumerOptions(durable=False, start=at, start_inclusive=inclusive))


def entry(number: int, *, batched: bool = True, ledger: int = 1) -> Any:
    return SimpleNamespace(ledger=ledger, entry=number, batched=batched)


MESSAGES = [SimpleNamespace(batch_index=index) for index in range(3)]


@pytest.mark.parametrize(
    ("index", "inclusive", "number", "batched", "shown", "whole"),
    [
        (1, False, 5, True, [2], True),
        (1, True, 5, True, [1, 2], True),
        (-1, False, 5, True, [], False),
        (-1, True, 5, True, [0, 1, 2], True),
        (1, False, 4, True, [], False),
        (-1, False, 5, False, [], False),
    ],
)
def test_what_is_hidden(
    codec: Any, index: int, inclusive: bool, number: int, batched: bool, shown: list[int], whole: bool
) -> None:
    begin = start(codec, codec.pulsar.MessageId(1, 5, -1, index), inclusive=inclusive)
    found = entry(number, batched=batched)
    assert begin.hides(found)
    assert [message.batch_index for message in begin.after(found, MESSAGES)] == shown
    assert begin.takes_whole(found) == whole


def test_what_is_not(codec: Any) -> None:
    begin = start(codec, codec.pulsar.MessageId(1, 5))
    for other in (entry(6), entry(5, ledger=2)):
        assert not begin.hides(other)
        assert begin.takes_whole(other)
    assert not start(codec, "earliest").hides(entry(0))


def test_where_it_goes_on(codec: Any) -> None:
    make, latest, earliest = codec.pulsar.MessageId, codec.pulsar.LATEST, codec.pulsar.EARLIEST
    assert (start(codec, "earliest").resume, start(codec, "latest").resume) == (earliest, latest)
    first = make(1, 3)
    begin = start(codec, make(1, 5, first_chunk=first))
    assert begin.resume == first
    saved = begin.save()
    begin.go_on_after(make(1, 7))
    assert (begin.at, begin.resume) == (make(1, 7), make(1, 7))
    begin.move(1234, True)
    assert (begin.at, begin.resume, begin.inclusive) == (None, earliest, True)
    begin.move(latest, False)
    assert (begin.at, begin.resume) == (None, latest)
    begin.move(make(1, 5, first_chunk=first), False)
    assert (begin.at, begin.resume) == (make(1, 5), first)
    begin.restore(saved)
    assert begin.resume == first
