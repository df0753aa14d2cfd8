"""What transactions have acknowledged on one subscription."""

from __future__ import annotations

import json

import pytest

from mqclient.broker.pulsar.pending_acks import UP_TO, PendingAcks
from mqclient.broker.pulsar.refused import Refused

ONE, TWO = (0, 1), (0, 2)


def test_bits_belong_to_one() -> None:
    pending = PendingAcks()
    pending.add(ONE, 5, 0b001, 0b111)
    pending.add(ONE, 5, 0b011, 0b111)
    pending.add(TWO, 5, 0b100, 0b111)
    assert (pending.held(5), pending.held(6), len(pending)) == (0b111, 0, 2)
    for bits, unacked in ((0b001, 0b111), (0b1000, 0b111), (0, 0b111)):
        with pytest.raises(Refused):
            pending.add(TWO, 5, bits, unacked)
    assert pending.end(ONE).bits == {5: 0b011}
    assert (pending.held(5), pending.end(ONE).bits) == (0b100, {})


def test_only_one_goes_up_to_somewhere() -> None:
    pending = PendingAcks()
    pending.add_up_to(ONE, 5, None, -1)
    pending.add_up_to(ONE, 7, 3, -1)
    for txn, entry, mark in ((TWO, 9, -1), (ONE, 6, -1), (ONE, 8, 8)):
        with pytest.raises(Refused):
            pending.add_up_to(txn, entry, None, mark)
    assert pending.end(ONE).up_to == (7, 3)
    pending.add_up_to(TWO, 9, None, 7)


def test_what_is_pending_is_told_and_comes_back_from_a_file() -> None:
    pending, told = PendingAcks(), list[object]()
    pending.tell = lambda txn, entry: told.append((txn, entry))
    pending.add(ONE, 5, 0b001, 0b111)
    pending.add_up_to(ONE, 7, 3, -1)
    pending.add(TWO, 5, 0b100, 0b111)
    assert told == list(pending.rows()) == [(ONE, 5), (ONE, UP_TO), (TWO, 5)]
    again = PendingAcks()
    for txn, entry in pending.rows():
        again.load(txn, entry, json.loads(json.dumps(pending.dump(txn, entry))))
    assert (again.held(5), again.end(ONE).up_to, again.held(5)) == (0b101, (7, 3), 0b100)
    told.clear()
    pending.end(ONE)
    assert told == [(ONE, 5), (ONE, UP_TO)]
    assert [pending.dump(ONE, 5), pending.dump(ONE, UP_TO), pending.dump(TWO, 9)] == [None, None, None]
