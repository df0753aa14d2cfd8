"""What is told about topics."""

from __future__ import annotations

from typing import Any

from tests.support.pulsar_world import PulsarWorld, RawClient

T = "persistent/public/default/t"


def test_of_a_topic(codec: Any) -> None:
    world = PulsarWorld(codec)
    raw = RawClient(world)
    raw.subscribe(subType=1)
    raw.produce([b"a"], [b"b", b"c"])
    raw.flow(10)
    told = world.rest("GET", f"{T}/stats")
    assert (told["msgInCounter"], told["deduplicationStatus"]) == (3, "Disabled")
    assert told["bytesInCounter"] == told["storageSize"] > 0
    assert [one["clientVersion"] for one in told["publishers"]] == ["raw"]
    subscription = told["subscriptions"]["s"]
    assert (subscription["msgBacklog"], subscription["unackedMessages"]) == (2, 3)
    assert (subscription["type"], subscription["isDurable"], subscription["msgOutCounter"]) == ("Shared", True, 3)
    assert [one["availablePermits"] for one in subscription["consumers"]] == [7]
    world.rest("POST", f"{T}/deduplicationEnabled", True)
    assert world.rest("GET", f"{T}/stats")["deduplicationStatus"] == "Enabled"


def test_of_partitions(codec: Any) -> None:
    world = PulsarWorld(codec)
    raw = RawClient(world)
    assert world.rest("GET", f"{T}/partitioned-stats") == 404
    world.rest("PUT", f"{T}/partitions", 2)
    for index in range(2):
        raw.subscribe(index, topic=f"t-partition-{index}", subType=2)
        raw.produce([b"a"], topic=f"t-partition-{index}")
    told = world.rest("GET", f"{T}/partitioned-stats")
    assert (told["msgInCounter"], told["metadata"], len(told["partitions"])) == (2, {"partitions": 2}, 2)
    assert (told["subscriptions"]["s"]["msgBacklog"], len(told["subscriptions"]["s"]["consumers"])) == (2, 2)
    assert world.rest("GET", f"{T}/stats") == 405
