"""What transactions have sent to one topic."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.broker.pulsar.topics import Topic
from mqclient.broker.pulsar.txn_buffer import TxnBuffer, end_on_topic, marker
from mqclient.pulsar.names import TopicName


def test_what_is_undecided() -> None:
    buffer = TxnBuffer()
    before = buffer.first
    for txn, entry in (((0, 2), 4), ((0, 1), 5), ((0, 2), 6)):
        buffer.add(txn, entry)
    assert (before, buffer.first, buffer.end((0, 2)), buffer.first) == (None, 4, [4, 6], 5)
    assert (buffer.end((0, 9)), buffer.end((0, 1)), buffer.first) == ([], [5], None)


@pytest.mark.parametrize(("commit", "hidden"), [(True, {2}), (False, {0, 1, 2})])
def test_the_end_on_a_topic(codec: Any, commit: bool, hidden: set[int]) -> None:
    topic = Topic(TopicName.parse("t"), 1)
    for entry in range(2):
        topic.append(marker((0, 1), True, codec, 1))
        topic.txns.add((0, 7), entry)
    assert topic.readable == 0
    end_on_topic(topic, (0, 7), commit, codec, 5)
    assert (set(topic.hidden), topic.readable, topic.last_seen) == (hidden, 3, 1 if commit else -1)
    stored = codec.pulsar.Entry.from_stored(topic.log.record(2))
    assert (stored.marker_type, stored.txn, stored.corrupt) == (21 if commit else 22, (0, 7), None)
