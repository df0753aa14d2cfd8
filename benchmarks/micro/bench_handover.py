"""The way of a message through a mailbox, and of an outcome through a future."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.support import Compare, Contender, twins

native, pure = twins("handover")
permits, _ = twins("permits")

COUNT = 1000


def nothing(batch: int) -> Contender:
    """The floor: native methods that do nothing, one call a put and one a take."""

    def run(call: Any) -> None:
        for _ in range(0, COUNT, batch):
            call()
        for _ in range(COUNT):
            call()

    return Contender(run, lambda: (permits.Credits(1).pause,))


def filled(module: Any, batch: int) -> tuple[Any, Any, list[list[object]]]:
    mailbox = module.Mailbox(lambda source, taken: None)
    lists = [[object() for _ in range(min(batch, COUNT - start))] for start in range(0, COUNT, batch)]
    return mailbox, module.Source("consumer", 1, COUNT // 2), lists


def taking(module: Any, batch: int) -> Contender:
    def run(mailbox: Any, source: Any, lists: list[list[object]]) -> None:
        put_many, take = mailbox.put_many, mailbox.take
        for messages in lists:
            put_many(messages, source)
        for _ in range(COUNT):
            take()

    return Contender(run, lambda: filled(module, batch))


@pytest.mark.parametrize("batch", [1, 32, COUNT])
def bench_put_many_and_take(compare: Compare, batch: int) -> None:
    compare(
        f"handover.put_take.{batch}",
        per=COUNT,
        native=taking(native, batch),
        pure=taking(pure, batch),
        floor=nothing(batch),
        asked="<= 60 ns" if batch > 1 else "",
    )


def taking_many(module: Any, batch: int) -> Contender:
    def run(mailbox: Any, source: Any, lists: list[list[object]]) -> None:
        for messages in lists:
            mailbox.put_many(messages, source)
        while mailbox.take_many(100):
            pass

    return Contender(run, lambda: filled(module, batch))


@pytest.mark.parametrize("batch", [1, 32, COUNT])
def bench_put_many_and_take_many(compare: Compare, batch: int) -> None:
    compare(
        f"handover.put_take_many.{batch}", per=COUNT, native=taking_many(native, batch), pure=taking_many(pure, batch)
    )


class Done:
    """A batch whose receipts are there."""

    done = True

    def outcome(self, index: int) -> int:
        return index


def awaiting(module: Any) -> Contender:
    def run(batch: Done) -> None:
        future_of = module.SendFuture
        for index in range(COUNT):
            future_of(batch, index).result()

    return Contender(run, lambda: (Done(),))


def bench_futures(compare: Compare) -> None:
    compare("handover.future", per=COUNT, native=awaiting(native), pure=awaiting(pure))
