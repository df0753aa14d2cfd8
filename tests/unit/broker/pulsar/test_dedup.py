"""What a topic remembers of its producers."""

from __future__ import annotations

from types import SimpleNamespace

from mqclient.broker.pulsar.dedup import Dedup, is_duplicate
from mqclient.broker.pulsar.policies import Policies
from mqclient.pulsar.names import TopicName

NAME = TopicName.parse("t")
PLAIN = SimpleNamespace(chunk_id=None)


def test_only_while_it_is_on() -> None:
    policies, dedup = Policies({}), Dedup()
    assert not dedup.enabled(policies, NAME)
    policies.decide(policies.of_namespace["public/default"], "deduplicationEnabled", True)
    assert dedup.enabled(policies, NAME)
    assert not is_duplicate(dedup, "p", 5, PLAIN)
    assert is_duplicate(dedup, "p", 5, PLAIN)
    policies.decide(policies.of_topic.setdefault(str(NAME), {}), "deduplicationEnabled", False)
    assert not dedup.enabled(policies, NAME)
    assert dedup.last("p") == -1


def test_chunks() -> None:
    dedup = Dedup()
    first, last = (SimpleNamespace(chunk_id=index, num_chunks=2) for index in (0, 1))
    assert [is_duplicate(dedup, "p", 0, part) for part in (first, last, first, last)] == [False, False, False, True]
