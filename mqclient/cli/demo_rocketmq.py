"""Owns the RocketMQ half of the demo: two groups, a rebalance without code 25, a broadcasting reset."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
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

    def __init__(self, name_server: str, group: str, name: str, **options: Any) -> None:
        self.name = name
        self.handled = 0
        self._offsets = TemporaryDirectory(prefix="mqclient-demo-")
        self.client = rocketmq.Client(name_server, offset_dir=self._offsets.name)
        self.consumer = self.client.push_consumer(group, TOPIC, self._handle, **options)

    def _handle(self, messages: list[Any]) -> None:
        self.handled += len(messages)

    @property
    def queues(self) -> list[str]:
        return [f"{queue.broker_name[-1]}{queue.queue_id}" for queue in self.consumer.queues if queue.topic == TOPIC]

    @property
    def code_25(self) -> int:
        return int(self.consumer.diagnose()["code_25"])

    def close(self) -> None:
        self.consumer.close()
        self.client.close()
        self._offsets.cleanup()


def show(name_server: str, board: Board, check: Check, pace: float) -> None:
    """The three steps, on a topic of eight queues."""
    with rocketmq.Client(name_server) as client:
        with client.admin() as admin:
            admin.create_topic(TOPIC, queues=QUEUES)
        with client.producer("order-service") as producer, Stream(producer) as stream:
            rate = Rate(lambda: stream.sent)
            board.panel("producer", lambda: [f"{stream.sent:>9,} sent", f"{rate():>9,.0f} a second"])
            _rebalance(name_server, board, check, pace, stream)
            _reset(name_server, board, check, pace, client)
            board.close_panel("producer")
        check(stream.failed == 0, f"{stream.sent:,} messages sent and acknowledged, {stream.failed} failed")


def _rebalance(name_server: str, board: Board, check: Check, pace: float, stream: Stream) -> None:
    board.step("RocketMQ: a clustering group grows from one member to three and shrinks again (story 1)")
    members = [Member(name_server, "billing", "anna", start="first")]
    rate = Rate(lambda: sum(member.handled for member in members))

    def lines() -> list[str]:
        rows = [f"{one.name:<6} {bar(len(one.queues), 2 * QUEUES, 16)} {' '.join(one.queues)}" for one in members]
        return [*rows, f"{rate():>9,.0f} a second, code 25: {sum(one.code_25 for one in members)}"]

    board.panel("group billing", lines)
    try:
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
    finally:
        board.close_panel("group billing")
        for member in members:
            member.close()


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
