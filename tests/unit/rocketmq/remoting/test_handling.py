"""The call of a handler: what it may raise, where it stands."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.handling import Job, Retry, explain

QUEUE: Any = SimpleNamespace(dropped=False, paused=False, queue=MessageQueue("t", "b", 0))


def messages(*offsets: int) -> list[Any]:
    return [SimpleNamespace(offset=offset) for offset in offsets]


def test_what_a_retry_names() -> None:
    batch = messages(1, 2, 3)
    assert Retry().failed(batch) == batch
    assert Retry(batch[1:]).failed(batch) == batch[1:]
    assert (str(Retry(batch[:1])), str(Retry())) == (
        "the handler wants 1 of the messages again",
        "the handler wants all of the messages again",
    )
    retry = Retry(level=3, delay=0.5)
    assert (retry.level, retry.delay) == (3, 0.5)


def test_a_queue_that_is_gone_or_paused_is_not_handled() -> None:
    seen: list[Any] = []
    gone: Any = SimpleNamespace(dropped=True, paused=False)
    assert Job(gone, messages(1)).call(seen.append, 1.0) is None
    job = Job(SimpleNamespace(dropped=False, paused=True), messages(1))  # type: ignore[arg-type]
    assert job.call(seen.append, 1.0) is None
    assert (seen, job.parked, job.began) == ([], True, 0.0)


def test_where_a_handler_stands_on_another_thread() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def deep() -> None:
        inside.set()
        go_on.wait(30)

    def handle(batch: Any) -> None:
        deep()

    job = Job(QUEUE, messages(1))
    assert job.stack() == []
    thread = threading.Thread(target=job.call, args=(handle, 2.0))
    thread.start()
    assert inside.wait(30)
    names = [line.rpartition(" ")[2] for line in job.stack()]
    go_on.set()
    thread.join(30)
    assert names[:2] == ["handle", "deep"]
    assert (job.stack(), job.began) == ([], 2.0)


def test_where_a_coroutine_stands() -> None:
    async def deep(event: asyncio.Event) -> None:
        await event.wait()

    async def handle(batch: Any) -> None:
        await deep(event)

    async def look() -> list[str]:
        task = asyncio.ensure_future(job.call(handle, 1.0))
        await asyncio.sleep(0)
        stack = job.stack()
        event.set()
        await task
        return stack

    event = asyncio.Event()
    job = Job(QUEUE, messages(1))
    names = [line.rpartition(" ")[2] for line in asyncio.run(look())]
    assert names[:2] == ["handle", "deep"]
    assert job.stack() == []


def test_an_error_is_told_with_its_place() -> None:
    with pytest.raises(ValueError, match="no") as caught:
        raise ValueError("no")
    assert "ValueError('no') (" in explain(caught.value)
    assert "test_handling.py:" in explain(caught.value)
    assert explain(KeyError("k")) == "KeyError('k')"
