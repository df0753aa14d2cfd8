"""Rules are found by both their names; whoever is not a member gets nothing, and says so once."""

from __future__ import annotations

import logging
import sys
from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.assign import JAVA_NAMES, Assignment

QUEUES = [MessageQueue("orders", "broker-a", number) for number in range(7)]


def numbers(queues: list[MessageQueue]) -> list[int]:
    return [queue.queue_id for queue in queues]


@pytest.mark.parametrize("rule", ["averagely", "AVG"])
def test_both_names_and_any_order_give_the_same(codec: Any, rule: str) -> None:
    assignment = Assignment(codec.allocation, rule)
    shares = [assignment.share("g", own, QUEUES[::-1], ["b", "a"]) for own in ("a", "b")]
    assert [numbers(share) for share in shares] == [[0, 1, 2, 3], [4, 5, 6]]


def test_all_java_names_are_rules_of_ours(codec: Any) -> None:
    assert set(JAVA_NAMES.values()) <= set(codec.allocation.RULES)


def test_options_reach_the_rule_and_a_callable_is_a_rule(codec: Any) -> None:
    by_config = Assignment(codec.allocation, "by_config", {"queues": QUEUES[:2]})
    assert numbers(by_config.share("g", "whoever", QUEUES, ["a"])) == [0, 1]
    odd = Assignment(codec.allocation, lambda group, own, queues, members: queues[1::2])
    assert numbers(odd.share("g", "a", QUEUES, ["a"])) == [1, 3, 5]


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (lambda *_: None, "gave None: some of the queues"),
        (lambda *_: ["orders"], r"gave \['orders'\]"),
        (lambda *_: [[]], "gave"),
    ],
)
def test_what_is_wrong_with_a_rule_of_the_users_is_told(codec: Any, rule: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=f"consumer:g: .*{told}"):
        Assignment(codec.allocation, rule).share("g", "a", QUEUES, ["a"])


def test_a_rule_that_leaves_the_program_is_a_rule_that_fails(codec: Any) -> None:
    def leaves(*_: Any) -> list[MessageQueue]:
        sys.exit(1)

    with pytest.raises(RuntimeError, match=r"leaves raised SystemExit\(1\)"):
        Assignment(codec.allocation, leaves).share("g", "a", QUEUES, ["a"])


def test_an_unknown_rule_names_the_ones_there_are(codec: Any) -> None:
    with pytest.raises(ConfigError, match="averagely"):
        Assignment(codec.allocation, "fairly")


def test_not_in_the_list_gives_nothing_and_one_warning(codec: Any, caplog: pytest.LogCaptureFixture) -> None:
    assignment = Assignment(codec.allocation, "averagely")
    with caplog.at_level(logging.WARNING, "mqclient.remoting"):
        shares = [assignment.share("billing", "me@1", QUEUES, ["other@1"]) for _ in range(3)]
    assert shares == [[], [], []]
    line = "consumer:billing gets no queue: its id me@1 is not in the list of members"
    assert [record.getMessage() for record in caplog.records] == [line]


def test_equal_ids_get_equal_shares(codec: Any) -> None:
    assignment = Assignment(codec.allocation, "averagely")
    twin = assignment.share("g", "same@1", QUEUES[:4], ["same@1", "same@1"])
    assert numbers(twin) == [0, 1]  # story 2: nobody gets 2 and 3
