"""Owns the Pulsar half of the demo: two subscriptions of one topic, and the permits of each."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

from mqclient import pulsar
from mqclient.cli.board import Board, Rate, bar
from mqclient.pulsar import aio

TOPIC = "payments"
WINDOW = 1000
BATCH = 500
Check = Callable[[bool, str], None]


class Reader:
    """A consumer in a thread of its own that receives and acknowledges until it is told how many there are."""

    def __init__(self, client: pulsar.Client, subscription: str, **options: Any) -> None:
        self.consumer = client.consumer(TOPIC, subscription, receiver_queue=WINDOW, **options)
        self.taken = 0
        self.until: int | None = None
        self._thread = threading.Thread(target=self._run, name=f"demo-{subscription}")
        self._thread.start()

    def _run(self) -> None:
        while self.until is None or self.taken < self.until:
            messages = self.consumer.receive_many(100, timeout=0.2)
            self.consumer.ack(messages)
            self.taken += len(messages)
            if self.until is None:
                time.sleep(0.004)  # a little work, so that the permits are seen to move

    @property
    def permits(self) -> dict[str, int]:
        account: dict[str, int] = self.consumer.diagnose()["permits"]
        return account

    def finish(self, total: int) -> None:
        self.until = total
        self._thread.join(20)


def show(url: str, board: Board, check: Check, pace: float) -> None:
    """Permits refill at half the queue; the sums are exact at the end; asyncio reads the same topic again."""
    board.step("Pulsar: two subscriptions ask for messages by permits and refill at half their queue (story 4)")
    with pulsar.Client(url) as client, client.producer(TOPIC) as producer:
        readers = {
            "ledger": Reader(client, "ledger", type="exclusive"),
            "fraud": Reader(client, "fraud", type="shared"),
        }
        for name, reader in readers.items():
            board.panel(f"subscription {name}", _lines(reader))
        sent, end = 0, time.monotonic() + 5 * pace
        while sent < 5 * BATCH or time.monotonic() < end:
            sent += sum(result.ok for result in producer.send_many([b"payment %d" % n for n in range(BATCH)]))
            time.sleep(0.01)
        for name, reader in readers.items():
            reader.finish(sent)
            check(reader.taken == sent, f"{name}: {reader.taken:,} of {sent:,} messages received and acknowledged")
            _check_account(name, reader.permits, check)
            board.close_panel(f"subscription {name}")
    board.step("Pulsar: the same topic once more, by asyncio")
    start = time.perf_counter()
    count = asyncio.run(_read_all(url, sent))
    check(count == sent, f"{count:,} messages by `async for` in {time.perf_counter() - start:.2f} s")


def _check_account(name: str, permits: dict[str, int], check: Check) -> None:
    sum_ = permits["at_broker"] + permits["here"] + permits["released"] - permits["debt"]
    parts = " + ".join(f"{permits[part]} {part.replace('_', ' ')}" for part in ("at_broker", "here", "released"))
    grants = f"{permits['granted']:,} permits granted in {permits['flows']:,} flows"
    check(sum_ == permits["window"], f"{name}: {grants}; window {permits['window']} = {parts}")


def _lines(reader: Reader) -> Callable[[], list[str]]:
    rate = Rate(lambda: reader.taken)

    def lines() -> list[str]:
        permits = reader.permits
        gauges = [
            f"{part:<10}{bar(permits[part], WINDOW)} {permits[part]:>5}" for part in ("at_broker", "here", "released")
        ]
        return [*gauges, f"{reader.taken:>9,} taken, {rate():,.0f} a second", f"{permits['flows']:>9,} flows"]

    return lines


async def _read_all(url: str, total: int) -> int:
    count = 0
    async with aio.Client(url) as client, client.reader(TOPIC, start="earliest") as reader:
        async for _ in reader:
            count += 1
            if count == total:
                break
    return count
