"""Blocking calls of the echo engine, from one thread or many."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from mqclient.io.threads import ThreadsDriver
from tests.support.echo import EchoEngine

LONG = 20.0


def ask(engine: EchoEngine, body: bytes, timeout: float = LONG) -> bytes:
    driver = engine.driver
    assert isinstance(driver, ThreadsDriver)
    return driver.wait(engine.submit(body, timeout), driver.deadline(timeout))


def in_threads(*calls: Callable[[], Any]) -> list[Any]:
    """The results in order; the first exception is raised: a thread that died is no success."""
    results: list[Any] = [None] * len(calls)
    errors: list[BaseException] = []

    def run(index: int) -> None:
        try:
            results[index] = calls[index]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a caller hangs"
    if errors:
        raise errors[0]
    return results
