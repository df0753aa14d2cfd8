"""The allocation rules: Java's answers, argument errors, and what the two rules of our own promise."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from hashlib import md5
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest

from mqclient._impl import Impl
from mqclient.errors import ConfigError

RECORDED = json.loads((Path(__file__).parents[1] / "vectors" / "allocation.json").read_text())
Case = dict[str, Any]


class Queue(NamedTuple):
    topic: str
    broker_name: str
    queue_id: int


def queues_of(rows: list[list[Any]]) -> list[Queue]:
    return [Queue(*row) for row in rows]


def twelve() -> list[Queue]:
    return [Queue("orders", f"broker-{place // 4}", place % 4) for place in range(12)]


def java_hash(codec: Impl, mask: int | None) -> Callable[[str], int]:
    def point(text: str) -> int:
        found: int = codec.digest.java_string_hash(text)
        return found if mask is None else found & mask

    return point


def options(codec: Impl, case: Case) -> dict[str, Any]:
    same = ("inner", "broker_room", "member_room", "virtual_nodes")
    found: dict[str, Any] = {name: case[name] for name in same if name in case}
    if "rooms" in case:
        found["rooms"] = set(case["rooms"])
    if "configured" in case:
        found["queues"] = queues_of(case["configured"])
    if "hash" in case:
        found["hash"] = java_hash(codec, None if case["hash"] == "java" else 15)
    return found


def names() -> Iterator[str]:
    for number, case in enumerate(RECORDED["cases"]):
        yield f"{number}-{case['rule']}"


@pytest.mark.parametrize("case", RECORDED["cases"], ids=names())
def test_every_rule_gives_what_java_gave(codec: Impl, case: Case) -> None:
    queues = queues_of(case["queues"])
    if "error" in case:
        with pytest.raises(ConfigError):
            codec.allocation.allocate(case["rule"], case["own"], queues, case["members"], **options(codec, case))
    else:
        share = codec.allocation.allocate(case["rule"], case["own"], queues, case["members"], **options(codec, case))
        assert [queues.index(queue) for queue in share] == case["share"]


def test_the_recorded_cases_reach_every_rule_and_both_outcomes() -> None:
    shares = {case["rule"] for case in RECORDED["cases"] if case.get("share")}
    assert shares == {*(case["rule"] for case in RECORDED["cases"])}
    assert len(shares) == 6
    assert sum("error" in case for case in RECORDED["cases"]) > 15
    assert sum(len(set(case["members"])) < len(case["members"]) for case in RECORDED["cases"]) > 50


@pytest.mark.parametrize(
    ("count", "members", "sizes"), [(12, 5, [3, 3, 2, 2, 2]), (13, 5, [3, 3, 3, 2, 2]), (7, 2, [4, 3]), (1, 2, [1, 0])]
)
def test_averagely_gives_runs_and_the_first_get_one_more(
    codec: Impl, count: int, members: int, sizes: list[int]
) -> None:
    queues = [Queue("t", "b", number) for number in range(count)]
    ids = [f"id-{number}" for number in range(members)]
    shares = [codec.allocation.allocate("averagely", own, queues, ids) for own in ids]
    assert [len(share) for share in shares] == sizes
    assert [queue for share in shares for queue in share] == queues


@pytest.mark.parametrize("rule", ["averagely", "averagely_by_circle", "machine_room"])
def test_story_2_equal_ids_own_the_same_and_the_second_share_belongs_to_nobody(codec: Impl, rule: str) -> None:
    queues = [Queue("t", "r@b", number) for number in range(4)]
    ids = ["10.0.0.1@7", "10.0.0.1@7"]
    share = codec.allocation.allocate(rule, ids[0], queues, ids, rooms={"r"})
    assert len(share) == 2
    assert codec.allocation.repeated(ids) == ["10.0.0.1@7"]


def test_the_very_objects_come_back(codec: Impl) -> None:
    queues = twelve()
    for rule in ("averagely", "averagely_by_circle", "consistent_hash", "rendezvous", "sticky"):
        for queue in codec.allocation.allocate(rule, "a", queues, ["a", "b"]):
            assert any(queue is known for known in queues)


def test_tuples_do_as_well_as_lists_and_named_tuples(codec: Impl) -> None:
    plain = [tuple(queue) for queue in twelve()]
    for rule in ("averagely", "averagely_by_circle", "consistent_hash", "rendezvous", "sticky"):
        named = codec.allocation.allocate(rule, "b", twelve(), ["a", "b", "c"])
        assert codec.allocation.allocate(rule, "b", tuple(plain), ("a", "b", "c")) == named


def test_a_member_list_changed_in_place_is_noticed(codec: Impl) -> None:
    ids = ["a", "b"]
    for rule in ("averagely", "consistent_hash", "rendezvous"):
        before = codec.allocation.allocate(rule, "b", twelve(), ids)
        ids[0] = "b"
        ids.append("c")
        after = codec.allocation.allocate(rule, "b", twelve(), ids)
        assert before != after
        assert after == codec.allocation.allocate(rule, "b", twelve(), ["b", "b", "c"])
        ids[:] = ["a", "b"]


def test_more_lists_than_are_kept(codec: Impl) -> None:
    lists = [[f"id-{number}-{place}" for place in range(3)] for number in range(40)]
    for _ in range(2):
        for ids in lists:
            share = codec.allocation.allocate("averagely", ids[1], twelve(), ids)
            assert share == twelve()[4:8]


def md5_point(text: str) -> int:
    return int.from_bytes(md5(text.encode("utf-8", "replace"), usedforsecurity=False).digest()[:4], "big")


@pytest.mark.parametrize(
    "names", [("", ""), ("t", ""), ("", "b"), ("заказы", "😀"), ("\ud800", "b"), ("t" * 300, "b"), ("t", "b" * 70)]
)
@pytest.mark.parametrize("size", [1, 15, 16, 17, 50])
def test_the_default_hash_is_md5_of_javas_text(codec: Impl, names: tuple[str, str], size: int) -> None:
    queues = [Queue(*names, number) for number in [-(1 << 31), -1, *range(size), (1 << 31) - 1]]
    ids = ["a", "б" * 40, "\udfff", "c" * 200]
    for own in ids:
        share = codec.allocation.allocate("consistent_hash", own, queues, ids, virtual_nodes=21)
        assert share == codec.allocation.allocate("consistent_hash", own, queues, ids, virtual_nodes=21, hash=md5_point)


class TestArguments:
    @pytest.mark.parametrize("rule", ["averagely", "averagely_by_circle", "consistent_hash", "rendezvous", "sticky"])
    def test_what_is_empty_is_refused_with_its_name(self, codec: Impl, rule: str) -> None:
        allocate = codec.allocation.allocate
        with pytest.raises(ConfigError, match="own client id is empty"):
            allocate(rule, "", twelve(), ["a"])
        with pytest.raises(ConfigError, match="no queues"):
            allocate(rule, "a", [], ["a"])
        with pytest.raises(ConfigError, match="no members"):
            allocate(rule, "a", twelve(), [])

    @pytest.mark.parametrize("rule", ["averagely", "averagely_by_circle", "consistent_hash", "rendezvous", "sticky"])
    def test_an_own_id_that_is_no_member_gets_nothing(self, codec: Impl, rule: str) -> None:
        assert codec.allocation.allocate(rule, "absent", twelve(), ["a"]) == []

    def test_unknown_rule(self, codec: Impl) -> None:
        with pytest.raises(ConfigError, match=r"'avg'.*averagely"):
            codec.allocation.allocate("avg", "a", twelve(), ["a"])

    @pytest.mark.parametrize(
        ("rule", "option"),
        [("by_config", "queues"), ("machine_room", "rooms"), ("machine_room_nearby", "broker_room")],
    )
    def test_a_missing_option_is_named(self, codec: Impl, rule: str, option: str) -> None:
        with pytest.raises(ConfigError, match=option):
            codec.allocation.allocate(rule, "a", twelve(), ["a"])

    def test_negative_virtual_nodes_are_refused_even_for_an_absent_member(self, codec: Impl) -> None:
        with pytest.raises(ConfigError, match="virtual_nodes"):
            codec.allocation.allocate("consistent_hash", "absent", twelve(), ["a"], virtual_nodes=-1)

    @pytest.mark.parametrize("inner", ["machine_room_nearby", "avg", "machine_room"])
    def test_the_inner_rule_is_checked_too(self, codec: Impl, inner: str) -> None:
        rooms: dict[str, Any] = {"broker_room": lambda queue: "r", "member_room": lambda member: "r"}
        with pytest.raises(ConfigError, match=r"inner|avg|rooms"):
            codec.allocation.allocate("machine_room_nearby", "a", twelve(), ["a"], inner=inner, **rooms)

    def test_wrong_types(self, codec: Impl) -> None:
        allocate = codec.allocation.allocate
        with pytest.raises(TypeError):
            allocate("averagely", None, twelve(), ["a"])
        with pytest.raises(TypeError):
            allocate("averagely", "a", twelve(), ["a", None])
        with pytest.raises(TypeError):
            allocate("consistent_hash", "a", [(None, "b", 0)], ["a"])
        with pytest.raises(TypeError):
            allocate("consistent_hash", "a", [("t", b"b", 0)], ["a"])
        with pytest.raises(TypeError):
            allocate("rendezvous", "a", [("t", "b", None)], ["a"])

    def test_an_error_in_a_callable_passes_through(self, codec: Impl) -> None:
        def fails(_: object) -> Any:
            raise KeyError("from the caller")

        with pytest.raises(KeyError, match="from the caller"):
            codec.allocation.allocate("consistent_hash", "a", twelve(), ["a"], hash=fails)
        with pytest.raises(KeyError, match="from the caller"):
            codec.allocation.allocate("machine_room_nearby", "a", twelve(), ["a"], broker_room=fails, member_room=fails)


class TestMachineRoomNearby:
    BROKERS: ClassVar[dict[str, str]] = {"broker-0": "r1", "broker-1": "r2", "broker-2": "r3"}

    def share(self, codec: Impl, own: str, members: dict[str, str], **more: Any) -> list[Queue]:
        found: list[Queue] = codec.allocation.allocate(
            "machine_room_nearby", own, twelve(), list(members), broker_room=self.BROKERS, member_room=members, **more
        )
        return found

    def test_the_own_room_first_then_what_nobody_is_near_to(self, codec: Impl) -> None:
        members = {"a": "r1", "b": "r2", "c": "r2"}
        queues = twelve()
        assert self.share(codec, "a", members) == [*queues[:4], *queues[8:10]]
        assert self.share(codec, "b", members) == [*queues[4:6], queues[10]]
        assert self.share(codec, "c", members) == [*queues[6:8], queues[11]]

    def test_callables_are_given_queues_and_members(self, codec: Impl) -> None:
        members = {"a": "r1", "b": "r2", "c": "r2"}
        found = codec.allocation.allocate(
            "machine_room_nearby",
            "c",
            twelve(),
            list(members),
            inner="averagely_by_circle",
            broker_room=lambda queue: self.BROKERS[queue.broker_name],
            member_room=members.__getitem__,
        )
        assert found == self.share(codec, "c", members, inner="averagely_by_circle")

    def test_a_room_that_nobody_knows_is_an_error(self, codec: Impl) -> None:
        with pytest.raises(ConfigError, match="member 'b'"):
            self.share(codec, "a", {"a": "r1", "b": ""})


class TestSticky:
    def all_shares(self, codec: Impl, members: list[str], **more: Any) -> dict[str, list[Queue]]:
        return {own: codec.allocation.allocate("sticky", own, twelve(), members, **more) for own in members}

    def test_from_nothing_it_is_averagely(self, codec: Impl) -> None:
        for own in "abcde":
            expected = codec.allocation.allocate("averagely", own, twelve(), list("abcde"))
            assert codec.allocation.allocate("sticky", own, twelve(), list("abcde")) == expected

    def test_who_joins_gets_only_what_is_above_the_share(self, codec: Impl) -> None:
        before = self.all_shares(codec, ["b", "c"])
        after = self.all_shares(codec, ["a", "b", "c"], current=before)
        assert [len(share) for share in after.values()] == [4, 4, 4]
        assert set(after["b"]) < set(before["b"])
        assert set(after["c"]) < set(before["c"])

    def test_who_leaves_moves_only_its_own(self, codec: Impl) -> None:
        before = self.all_shares(codec, ["a", "b", "c"])
        after = self.all_shares(codec, ["a", "c"], current=before)
        assert set(before["a"]) < set(after["a"])
        assert set(before["c"]) < set(after["c"])

    def test_the_larger_share_stays_with_who_has_it(self, codec: Impl) -> None:
        held = {"a": twelve()[:2], "b": twelve()[2:4], "e": twelve()[4:7], "d": twelve()[9:]}
        after = self.all_shares(codec, ["a", "b", "c", "d", "e"], current=held)
        assert [len(after[own]) for own in "abcde"] == [2, 2, 2, 3, 3]
        assert after["e"] == held["e"]
        assert after["d"] == held["d"]

    def test_of_two_who_claim_a_queue_the_first_keeps_it(self, codec: Impl) -> None:
        held = {"a": twelve()[:6], "b": twelve()[:7], "unknown": twelve(), "c": [Queue("gone", "broker", 0)]}
        after = self.all_shares(codec, ["a", "b"], current=held)
        assert after == {"a": twelve()[:6], "b": twelve()[6:]}


def test_repeated_names_each_once(codec: Impl) -> None:
    assert codec.allocation.repeated(["c", "a", "b", "a", "c", "a"]) == ["c", "a"]
    assert codec.allocation.repeated(("a", "b")) == []
    assert codec.allocation.repeated([]) == []


def test_the_rules_are_named(codec: Impl) -> None:
    assert set(codec.allocation.RULES) == {case["rule"] for case in RECORDED["cases"]} | {"rendezvous", "sticky"}
