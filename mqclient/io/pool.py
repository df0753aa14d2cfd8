"""Owns the threads on which user code runs: as many as are asked for at once, kept while they are of use."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextvars import Context
from inspect import isawaitable
from queue import Empty, SimpleQueue
from typing import Any

logger = logging.getLogger("mqclient.io")

_KEEP = 10.0
Job = list[tuple[Callable[[Any], Any], Any]]
"""One call and its argument, popped by whoever does it: a job that was handed over twice is done once."""


class UserThreads:
    """Daemon threads; how many run at once is decided by whoever asks (core/workers.py), never here.

    Each call sees the context variables of the one who made the client. A coroutine runs on a loop of its thread.
    """

    def __init__(self, name: str, context: Context, keep: float = _KEEP) -> None:
        self._name = name
        self._keep = keep
        self._context = context
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._count = 0
        self._made = 0
        self._closed = False

    def run(self, job: Job) -> None:
        """Have an idle thread do it, or a new one."""
        with self._lock:
            self._made += 1
            name = f"{self._name}-user-{self._made}"
            if not self._closed:
                self._jobs.put(job)
                if self._idle:
                    self._idle -= 1  # that one is spoken for
                    return
                self._count += 1
        work = (lambda: self._do(job)) if self._closed else self._work
        threading.Thread(target=_with_loop, args=(work,), name=name, daemon=True).start()

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        """Threads end when they have nothing to do; who is in user code is not waited for."""
        with self._lock:
            self._closed = True
            for _ in range(self._count):
                self._jobs.put(None)

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=self._keep)
            except Empty:
                with self._lock:
                    if self._jobs.empty():
                        self._count -= 1
                        self._idle -= 1
                        return
                continue  # `run` came between the time-out and the lock, and counts on us
            if job is None:
                break
            self._do(job)
            del job  # nothing of a message is kept alive by a sleeping thread
            with self._lock:
                self._idle += 1
        with self._lock:
            self._count -= 1

    def _do(self, job: Job) -> None:
        if not job:
            return
        call, argument = job.pop()
        try:
            context = self._context.copy()
            outcome = context.run(call, argument)
            if isawaitable(outcome):
                context.run(_finish, outcome)
        except Exception:
            logger.exception("a user function failed")


_own = threading.local()


def _with_loop(work: Callable[[], None]) -> None:
    try:
        work()
    finally:
        _end_loop()


async def _until(awaitable: Awaitable[Any]) -> None:
    await awaitable


def _finish(awaitable: Awaitable[Any]) -> None:
    """Run it to its end on this thread's loop; what it left running goes on with the next one."""
    loop: asyncio.AbstractEventLoop | None = getattr(_own, "loop", None)
    if loop is None:
        loop = _own.loop = asyncio.new_event_loop()
    loop.run_until_complete(_until(awaitable))


def _end_loop() -> None:
    """The thread ends: so do its loop and whatever still hangs on it."""
    loop: asyncio.AbstractEventLoop | None = getattr(_own, "loop", None)
    if loop is None:
        return
    loop.run_until_complete(_end_tasks())
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


async def _end_tasks() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
