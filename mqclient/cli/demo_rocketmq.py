"""Owns the RocketMQ half of the demo: a rebalance without code 25, equal client ids, a broadcasting reset."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

from mqclient import rocketmq
from mqclient.cli.board import Board, Rate, bar

TOPIC = "orders"
QUEUES = 4
BATCH = 200
Check = Callable[[bool, str], None]


class Stream:
    """A producer in the background: batches of messages until it is stopped."""

    def __init__(self, producer: rocketmq.Producer) -> None:
        self._producer = producer
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-producer")
        self.sent = 0
        self.failed = 0

    def __enter__(self) -> Stream:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.01):
            numbers = range(self.sent, self.sent + BATCH)
            messages = [
                rocketmq.Message(TOPIC, b"order %d" % number, tag="paid", keys=[str(number)]) for number in numbers
            ]
            results = self._producer.send_many(messages)
            good = sum(result.ok for result in results)
            self.sent += good
            self.failed += len(results) - good


class Member:
    """One member of a group, in a client of its own, as another process would be; counts what it handled."""

    def __init__(self, name_server: str, group: str, name: str, client_id: str | None = None, **options: Any) -> None:
        self.name = name
        self.handled = 0
        self._offsets = TemporaryDirectory(prefix="mqclient-demo-")
        self.client = rocketmq.Client(name_server, offset_dir=self._offsets.name, client_id=client_id)
        self.consumer = self.client.push_consumer(group, TOPIC, self._handle, **options)

    def _handle(self, messages: list[Any]) -> None:
        self.handled += len(messages)

    @property
    def queues(self) -> list[str]:
        return [f"{queue.broker_name[-1]}{queue.queue_id}" for queue in self.consumer.queues if queue.topic == TOPIC]

    @property
    def knows_its_twin(self) -> bool:
        return bool(self.consumer.diagnose()["equal_id_seen"])

    @property
    def code_25(self) -> int:
        return int(self.consumer.diagnose()["code_25"])

    def close(self) -> None:
        self.consumer.close()
        self.client.close()
        self._offsets.cleanup()


def show(name_server: str, board: Board, check: Check, pace: float) -> None:
    """The steps, on a topic of eight queues."""
    with rocketmq.Client(name_server) as client:
        with client.admin() as admin:
            admin.create_topic(TOPIC, queues=QUEUES)
        with client.producer("order-service") as producer, Stream(producer) as stream:
            rate = Rate(lambda: stream.sent)
            board.panel("producer", lambda: [f"{stream.sent:>9,} sent", f"{rate():>9,.0f} a second"])
            _rebalance(name_server, board, check, pace)
            _equal_ids(name_server, board, check, pace, client)
            _reset(name_server, board, check, pace, client)
            board.close_panel("producer")
        check(stream.failed == 0, f"{stream.sent:,} messages sent and acknowledged, {stream.failed} failed")


def _rebalance(name_server: str, board: Board, check: Check, pace: float) -> None:
    board.step("RocketMQ: a clustering group grows from one member to three and shrinks again (story 1)")
    with _group(board, "billing", [Member(name_server, "billing", "anna", start="first")]) as members:
        for name in ("bert", "carla"):
            time.sleep(2 * pace)
            members.append(Member(name_server, "billing", name, start="first"))
            _await(lambda: _shared(members))
            check(_shared(members), f"{name} joined: {_split(members)}")
        time.sleep(2 * pace)
        gone = members.pop()
        gone.close()
        _await(lambda: _shared(members))
        check(_shared(members), f"{gone.name} left: {_split(members)}")
        refused = sum(member.code_25 for member in [*members, gone])
        check(refused == 0, f"pulls refused with code 25 over the whole time: {refused}")
        total = [member.handled for member in [*members, gone]]
        check(_await(lambda: members[0].handled > total[0]), f"{sum(total):,} handled so far, and it goes on")


def _equal_ids(name_server: str, board: Board, check: Check, pace: float, client: rocketmq.Client) -> None:
    board.step("RocketMQ: two members were given one client id, so queues pile up, and are told why (story 2)")
    with _group(board, "shipping", _pair(name_server, client_id="box-1")) as twins:
        alike = _await(lambda: twins[0].queues == twins[1].queues and len(twins[0].queues) == QUEUES)
        check(alike, f"both own the same {len(twins[0].queues)} of {2 * QUEUES} queues, the others belong to nobody")
        began = time.monotonic()
        named = _await(lambda: all(twin.knows_its_twin for twin in twins), 30.0)
        waited = time.monotonic() - began
        ends = _unread(client, twins)
        check(named, f"after {waited:.0f} s each names the other's address; {sum(ends.values()):,} messages wait")
    with _group(board, "shipping", _pair(name_server)) as members:
        cured = _await(lambda: _shared(members) and all(_consumed(members, queue) >= ends[queue] for queue in ends))
        check(cured and len(ends) == QUEUES, f"with ids of their own: {_split(members)}, and those messages are read")
        time.sleep(pace)


def _pair(name_server: str, client_id: str | None = None) -> list[Member]:
    return [Member(name_server, "shipping", name, client_id, start="first") for name in ("finn", "gail")]


@contextmanager
def _group(board: Board, name: str, members: list[Member]) -> Iterator[list[Member]]:
    """A panel with the queues of each, for as long as they are there."""
    rate = Rate(lambda: sum(member.handled for member in members))

    def lines() -> list[str]:
        rows = [f"{one.name:<6} {bar(len(one.queues), 2 * QUEUES, 16)} {' '.join(one.queues)}" for one in members]
        return [*rows, f"{rate():>9,.0f} a second, code 25: {sum(one.code_25 for one in members)}"]

    board.panel(f"group {name}", lines)
    try:
        yield members
    finally:
        board.close_panel(f"group {name}")
        for member in members:
            member.close()


def _unread(client: rocketmq.Client, members: list[Member]) -> dict[rocketmq.MessageQueue, int]:
    """The queues that belong to nobody, and how many messages wait in each."""
    owned = {queue for member in members for queue in member.consumer.queues}
    with client.admin() as admin:
        return {queue: ends["max"] or 0 for queue, ends in admin.offsets(TOPIC).items() if queue not in owned}


def _consumed(members: list[Member], queue: rocketmq.MessageQueue) -> int:
    """How many of this queue's messages its owner is done with."""
    held = [member.consumer.diagnose()["queues"].get(queue, {}) for member in members]
    return max(one.get("committed") or 0 for one in held)


def _reset(name_server: str, board: Board, check: Check, pace: float, client: rocketmq.Client) -> None:
    board.step("RocketMQ: a broadcasting group is reset to the beginning, and every member moves (story 3)")
    members = [Member(name_server, "audit", name, model="broadcasting", start="last") for name in ("dora", "emil")]
    board.panel("group audit", lambda: [f"{member.name:<6} {member.handled:>9,} received" for member in members])
    try:
        _await(lambda: all(member.handled for member in members))
        time.sleep(1.5 * pace)
        before = [member.handled for member in members]
        with client.admin() as admin:
            backlog = sum(ends["max"] or 0 for ends in admin.offsets(TOPIC).values())
            admin.reset_offset("audit", TOPIC, "earliest")
        moved = _await(lambda: all(one.handled >= old + backlog for one, old in zip(members, before, strict=True)))
        counts = ", ".join(f"{one.name} {old:,} → {one.handled:,}" for one, old in zip(members, before, strict=True))
        check(moved, f"both read the {backlog:,} messages again: {counts}")
        time.sleep(pace)
    finally:
        board.close_panel("group audit")
        for member in members:
            member.close()


def _shared(members: list[Member]) -> bool:
    """Every queue has exactly one owner."""
    owned = [queue for member in members for queue in member.queues]
    return len(owned) == len(set(owned)) == 2 * QUEUES


def _split(members: list[Member]) -> str:
    return ", ".join(f"{member.name} {len(member.queues)}" for member in members) + f" of {2 * QUEUES} queues"


def _await(true: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Look until it is so, or the time is up."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
