"""Mutated recordings never get more out of a decoder than its documented errors. 10^7 inputs each with --scale=soak."""

from __future__ import annotations

from random import Random

import pytest

from mqclient._impl import Impl
from tests.fuzz.campaign import Finding, campaign
from tests.fuzz.mutator import Mutator, blocks
from tests.fuzz.targets import TARGETS, Target

RUNS = {"test": 2_000, "ci": 150_000, "soak": 10_000_000}
PURE_SHARE = 10
"""The pure twins are slower, and cannot read beyond anything: they get one in ten."""
SEED = 20261118


@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", TARGETS)
def test_bad_bytes_bring_documented_errors_only(codec: Impl, name: str, scale: str) -> None:
    campaign(codec, name, RUNS[scale] // (PURE_SHARE if codec.name == "pure" else 1), SEED)


@pytest.mark.parametrize("name", TARGETS)
def test_every_seed_is_accepted_as_it_is(codec: Impl, name: str) -> None:
    """Else the mutants would all fail at the door."""
    seeds = TARGETS[name].seeds()
    assert len(seeds) >= 3
    for seed in seeds:
        TARGETS[name].run(codec, seed, Random(0))


def test_mutants_are_many_and_the_same_for_the_same_seed() -> None:
    seeds = TARGETS["remoting.feed"].seeds()
    first, second = Mutator(seeds, 7), Mutator(seeds, 7)
    row = [first.next() for _ in range(500)]
    assert row == [second.next() for _ in range(500)]
    assert len(set(row) - set(seeds)) > 450


def test_lengths_are_seen() -> None:
    assert (0, 4, 5) in blocks(b"\x00\x00\x00\x05hello")
    assert (1, 2, 3) in blocks(b"x\x00\x03abc")
    assert (0, 0, 3) in blocks(b"\x03abc")


def test_a_finding_tells_how_to_see_it_again(codec: Impl, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(impl: Impl, data: bytes, random: object) -> None:
        raise KeyError(len(data))

    monkeypatch.setitem(TARGETS, "wrong", Target(lambda: [b"abcdef"], wrong))
    with pytest.raises(Finding, match=r"wrong, seed 3, run 0: KeyError\(\d+\)\ninput [0-9a-f]*$"):
        campaign(codec, "wrong", 10, 3)
