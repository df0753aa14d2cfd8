"""Who has which keys: the ring as a real Pulsar 4.2.4 was seen to build it, and ranges."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from mqclient.broker.pulsar.refused import Refused
from mqclient.broker.pulsar.selectors import Ring, Sticky, chosen_by_ring
from tests.support.pulsar_world import PulsarWorld, RawClient

SEEN = {
    "a": [[79, 115], [179, 403], [1142, 1535], [2849, 3615], [4129, 4372]],
    "b": [[1, 78], [460, 637], [1536, 1575], [1807, 2848], [3697, 4128]],
    "c": [[116, 178], [404, 459], [638, 1141], [1576, 1806], [3616, 3696]],
}
ACTIVE = {"fo1": "b", "fo2": "c", "fo3": "b", "fo4": "a", "fo5": "b", "fo6": "a"}


def consumer(name: str, *ranges: tuple[int, int]) -> Any:
    return SimpleNamespace(name=name, hash_ranges=list(ranges))


def test_the_ring_is_the_real_one(codec: Any) -> None:
    ring = Ring(codec.digest)
    members = [consumer(name) for name in "abc"]
    for member in members:
        ring.add(member)
    for member in members:
        assert ring.ranges(member)[:5] == SEEN[member.name]
        for start, end in ring.ranges(member):
            assert ring.owner(start) is ring.owner(end) is member
    covered = sorted(each for member in members for each in ring.ranges(member))
    assert (covered[0][0], covered[-1][1]) == (1, 65535)
    assert all(before[1] + 1 == after[0] for before, after in pairwise(covered))


def test_the_ring_forgets(codec: Any) -> None:
    ring = Ring(codec.digest)
    assert ring.owner(7) is None
    one, same, other = consumer("a"), consumer("a"), consumer("b")
    for member in (one, same, other):
        ring.add(member)
    before = ring.ranges(other)
    ring.remove(one)
    ring.remove(same)
    assert ring.ranges(other) == [[start, end] for start, end in ring.ranges(other)]
    assert sum(end - start + 1 for start, end in ring.ranges(other)) == 65535 > sum(b - a + 1 for a, b in before)
    ring.add(one)
    ring.remove(other)
    assert ring.owner(1) is ring.owner(65535) is one


def test_how_hashes_are_counted(codec: Any) -> None:
    assert (Ring(codec.digest).slot(65535), Ring(codec.digest).slot(0x80000000)) == (1, 1)
    assert (Sticky().slot(65535), Sticky().slot(65536), Sticky().slot(65537)) == (65535, 1, 1)


@pytest.mark.parametrize("topic", ACTIVE)
def test_the_active_one_is_the_real_one(codec: Any, topic: str) -> None:
    members = [consumer(name) for name in "abc"]
    assert chosen_by_ring(codec.digest, f"persistent://public/default/{topic}", members).name == ACTIVE[topic]


def test_ranges() -> None:
    sticky = Sticky()
    one, two = consumer("a", (0, 100), (200, 300)), consumer("b", (101, 199))
    for member in (one, two):
        sticky.check(member.hash_ranges)
        sticky.add(member)
    assert [sticky.owner(slot) for slot in (0, 100, 101, 199, 200, 301)] == [one, one, two, two, one, None]
    assert sticky.ranges(one) == [[0, 100], [200, 300]]
    for wrong in ([], [(5, 4)], [(-1, 3)], [(0, 65536)], [(150, 150)], [(400, 500), (500, 600)]):
        with pytest.raises(Refused):
            sticky.check(wrong)
    sticky.remove(two)
    sticky.check([(150, 150)])


def sticky(client: RawClient, *ranges: tuple[int, int], **more: Any) -> Any:
    meta = {"keySharedMode": 1, "hashRanges": [{"start": start, "end": end} for start, end in ranges], **more}
    return client.subscribe(subType=3, keySharedMeta=meta)


def keyed(client: RawClient, *keys: str) -> None:
    client.ask("PRODUCER", topic="t", producer_id=9)
    for number, key in enumerate(keys):
        metadata = client.codec.encode_metadata("raw", number, 1, partition_key=key)
        client.write(client.codec.encode_send(9, number, metadata, key.encode()))


def test_sticky_consumers(codec: Any) -> None:
    world = PulsarWorld(codec)
    one, two, three = (RawClient(world) for _ in range(3))
    assert sticky(one, (0, 20000))[0] == "SUCCESS"
    assert sticky(two, (20001, 40000))[0] == "SUCCESS"
    assert sticky(three, (100, 200))[1].error == 19
    assert three.subscribe(subType=3)[1].error == 5
    assert sticky(three, (50000, 50001), allowOutOfOrderDelivery=True)[1].error == 5
    for client in (one, two):
        client.flow(1000)
        client.events.clear()
    keys = [f"key{number}" for number in range(60)]
    keyed(three, *keys)
    slots = {key: (codec.digest.murmur3_32(key.encode()) & 0x7FFFFFFF) % 65536 or 1 for key in keys}
    assert {entry.partition_key for entry in one.entries()} == {key for key in keys if slots[key] <= 20000}
    assert {entry.partition_key for entry in two.entries()} == {key for key in keys if 20000 < slots[key] <= 40000}
    sticky(three, (40001, 65535))
    assert {entry.partition_key for entry in three.flow(1000)} == {key for key in keys if slots[key] > 40000}
    told = world.rest("GET", "persistent/public/default/t/stats")["subscriptions"]["s"]["consumers"]
    assert [one["keyHashRangeArrays"] for one in told] == [[[0, 20000]], [[20001, 40000]], [[40001, 65535]]]


def test_out_of_order_a_key_goes_on_at_once(codec: Any) -> None:
    world = PulsarWorld(codec)
    one, two = RawClient(world), RawClient(world)
    sticky(one, (0, 65535), allowOutOfOrderDelivery=True)
    one.flow(100)
    keyed(one, "k")
    for client in (one, two):
        client.ask("CLOSE_CONSUMER", consumer_id=0)
    slot = (codec.digest.murmur3_32(b"k") & 0x7FFFFFFF) % 65536
    sticky(one, (0, slot - 1), allowOutOfOrderDelivery=True)
    sticky(two, (slot, 65535), allowOutOfOrderDelivery=True)
    assert [entry.partition_key for entry in two.flow(10)] == ["k"]
