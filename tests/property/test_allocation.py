"""Allocation over generated groups: shares cover all queues once, few queues move, native and pure agree."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if os.environ.get("MQCLIENT_IMPL") == "pure":
    pytest.skip("compares native with pure", allow_module_level=True)

from mqclient._native import allocation as native
from mqclient._pure import allocation as pure

BOTH = (native, pure)
PATIENT = settings(deadline=None)  # machines under load, sanitizers
BALANCED = ("averagely", "averagely_by_circle", "sticky")
HASHED = ("consistent_hash", "rendezvous")


class Queue(NamedTuple):
    topic: str
    broker_name: str
    queue_id: int


any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=40)
names = (
    st.sampled_from(["orders", "broker-a", "broker-b", "r1@b", "r2@b@", "@b", "темы", "😀"]) | any_text | st.text("x")
)
ids = st.sampled_from(["10.0.0.1@7", "10.0.0.2@7#123456789", "б@1", "\ud800"]) | any_text.filter(bool)
queues = st.builds(Queue, names, names, st.integers(-1, 40) | st.integers(-(1 << 31), (1 << 31) - 1))
queue_lists = st.lists(queues, min_size=1, max_size=60, unique=True)
member_lists = st.lists(ids, min_size=1, max_size=20, unique=True)
lists_with_repeats = st.lists(ids, min_size=1, max_size=20)


def usual_queues(count: int) -> list[Queue]:
    return [Queue("orders", f"broker-{place % 7}", place // 7) for place in range(count)]


def usual_members(count: int) -> list[str]:
    return [f"10.0.{place // 50}.{place % 50}@{place * 7919}" for place in range(count)]


def room_of_text(text: str) -> str:
    """Some room for anything."""
    return "room-" + str(sum(map(ord, text)) % 3)


ROOMS: dict[str, Any] = {
    "broker_room": lambda queue: room_of_text(queue.broker_name),
    "member_room": room_of_text,
}


def shares(module: Any, rule: str, queues: list[Queue], members: list[str], **options: Any) -> dict[str, list[Queue]]:
    return {own: module.allocate(rule, own, queues, members, **options) for own in members}


@pytest.mark.parametrize("rule", [*BALANCED, *HASHED, "machine_room_nearby"])
@PATIENT
@given(queue_lists, member_lists)
def test_every_queue_belongs_to_exactly_one(rule: str, queues: list[Queue], members: list[str]) -> None:
    options = ROOMS if rule == "machine_room_nearby" else {}
    for module in BOTH:
        owned = [queue for share in shares(module, rule, queues, members, **options).values() for queue in share]
        assert len(owned) == len(queues)
        assert set(owned) == set(queues)


@pytest.mark.parametrize("rule", BALANCED)
@PATIENT
@given(queue_lists, member_lists)
def test_sizes_differ_by_one_at_most(rule: str, queues: list[Queue], members: list[str]) -> None:
    for module in BOTH:
        sizes = [len(share) for share in shares(module, rule, queues, members).values()]
        assert max(sizes) - min(sizes) <= 1


@PATIENT
@given(queue_lists, lists_with_repeats, st.sets(st.sampled_from(["r1", "r2", ""])))
def test_machine_room_shares_the_queues_of_its_rooms(queues: list[Queue], members: list[str], rooms: set[str]) -> None:
    distinct = list(dict.fromkeys(members))
    for module in BOTH:
        owned = [q for share in shares(module, "machine_room", queues, distinct, rooms=rooms).values() for q in share]
        assert len(set(owned)) == len(owned)
        assert set(owned) <= set(queues)
        assert {queue.broker_name.split("@")[0] for queue in owned} <= rooms


@PATIENT
@given(st.data(), queue_lists, lists_with_repeats)
def test_native_gives_what_pure_gives(data: st.DataObject, queues: list[Queue], members: list[str]) -> None:
    own = data.draw(st.sampled_from(members) | ids)
    held = data.draw(st.dictionaries(st.sampled_from(members) | ids, st.lists(st.sampled_from(queues))))
    rules: dict[str, dict[str, Any]] = {
        "averagely": {},
        "averagely_by_circle": {},
        "by_config": {"queues": queues[:2]},
        "machine_room": {"rooms": {"r1", ""}},
        "machine_room_nearby": {**ROOMS, "inner": data.draw(st.sampled_from(["averagely", *HASHED]))},
        "consistent_hash": {"virtual_nodes": data.draw(st.integers(0, 40))},
        "rendezvous": {},
        "sticky": {"current": held},
    }
    assert set(rules) == set(native.RULES) == set(pure.RULES)
    for rule, options in rules.items():
        expected = pure.allocate(rule, own, queues, members, **options)
        assert native.allocate(rule, own, queues, members, **options) == expected
        assert native.allocate(rule, own, tuple(queues), tuple(members), **options) == expected
    assert native.repeated(members) == pure.repeated(members)


@PATIENT
@given(queue_lists, lists_with_repeats, st.integers(0, 12), st.sampled_from([0xF, 0xFF, (1 << 70) - 1]))
def test_native_gives_what_pure_gives_with_a_hash_that_collides(
    queues: list[Queue], members: list[str], virtual_nodes: int, mask: int
) -> None:
    def point(text: str) -> int:
        return (sum(map(ord, text)) * 0x9E3779B97F4A7C15 & mask) - (mask >> 1)

    for own in members:
        options: dict[str, Any] = {"virtual_nodes": virtual_nodes, "hash": point}
        expected = pure.allocate("consistent_hash", own, queues, members, **options)
        assert native.allocate("consistent_hash", own, queues, members, **options) == expected


@PATIENT
@given(lists_with_repeats, st.lists(st.tuples(st.integers(0, 19), ids), max_size=6))
def test_what_is_kept_about_a_list_never_answers_for_another(
    members: list[str], changes: list[tuple[int, str]]
) -> None:
    for place, other in [(0, members[0]), *changes]:
        members[place % len(members)] = other
        for rule in ("averagely", "consistent_hash", "rendezvous"):
            expected = pure.allocate(rule, other, usual_queues(30), list(members))
            assert native.allocate(rule, other, usual_queues(30), members) == expected


def owners(module: Any, rule: str, queues: list[Queue], members: list[str], **options: Any) -> dict[Queue, str]:
    found = shares(module, rule, queues, members, **options)
    return {queue: own for own, share in found.items() for queue in share}


def moved(before: dict[Queue, str], after: dict[Queue, str]) -> dict[Queue, tuple[str, str]]:
    return {queue: (before[queue], after[queue]) for queue in before if before[queue] != after[queue]}


@pytest.mark.parametrize("module", BOTH, ids=["native", "pure"])
@pytest.mark.parametrize("rule", HASHED)
@settings(PATIENT, max_examples=20)
@given(st.integers(2, 24), st.integers(0), st.integers(1, 300))
def test_only_what_must_moves_when_one_leaves_or_joins(
    module: Any, rule: str, count: int, who: int, queues: int
) -> None:
    members = usual_members(count)
    gone = members[who % count]
    rest = [member for member in members if member != gone]
    all_of_them = owners(module, rule, usual_queues(queues), members)
    without = owners(module, rule, usual_queues(queues), rest)
    moves = moved(all_of_them, without)
    assert {before for before, _ in moves.values()} <= {gone}
    assert len(moves) == sum(owner == gone for owner in all_of_them.values())


@pytest.mark.parametrize("module", BOTH, ids=["native", "pure"])
@settings(PATIENT, max_examples=20)
@given(st.integers(2, 24), st.integers(0), st.integers(1, 300))
def test_sticky_moves_as_few_as_balance_allows(module: Any, count: int, who: int, queues: int) -> None:
    members = usual_members(count)
    gone = members[who % count]
    rest = [member for member in members if member != gone]
    held = shares(module, "sticky", usual_queues(queues), members)
    start = owners(module, "sticky", usual_queues(queues), members)
    left = owners(module, "sticky", usual_queues(queues), rest, current=held)
    assert {before for before, _ in moved(start, left).values()} <= {gone}
    joined = shares(module, "sticky", usual_queues(queues), rest, current=held)
    again = owners(module, "sticky", usual_queues(queues), members, current=joined)
    assert {after for _, after in moved(left, again).values()} <= {gone}
    assert len(moved(left, again)) == queues // count


@pytest.mark.parametrize("module", BOTH, ids=["native", "pure"])
@pytest.mark.parametrize(("rule", "bound"), [("consistent_hash", 2.6), ("rendezvous", 1.4)])
def test_hashed_shares_are_near_the_mean(module: Any, rule: str, bound: float) -> None:
    sizes = [len(share) for share in shares(module, rule, usual_queues(4000), usual_members(20)).values()]
    assert max(sizes) <= bound * 200
    assert min(sizes) >= 200 / bound


def test_a_callable_may_change_the_lists_that_are_being_shared() -> None:
    members = ["a", "b"]
    available = usual_queues(4)

    def point(text: str) -> int:
        members.clear()
        available.clear()
        return len(text)

    for module in BOTH:
        members[:], available[:] = ["a", "b"], usual_queues(4)
        assert module.allocate("consistent_hash", "a", available, members, hash=point) == []
