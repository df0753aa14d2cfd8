"""A signal becomes a slot that is done; afterwards signals do what they did before."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from mqclient.io.aio import AsyncioDriver
from mqclient.io.signals import SIGNALS, stop_signals
from mqclient.io.threads import ThreadsDriver


@pytest.fixture(autouse=True, name="heard")
def heard_fixture() -> Iterator[list[int]]:
    """Handlers of the test's own, in whose place the others come and go."""
    heard: list[int] = []
    before = {number: signal.signal(number, lambda number, _: heard.append(number)) for number in SIGNALS}
    yield heard
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_threads_wait_until_a_signal_comes(number: int, heard: list[int]) -> None:
    driver = ThreadsDriver("test")
    try:
        with stop_signals(driver) as asked:
            threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
            driver.wait(asked, driver.deadline(30))
            assert heard == []
            os.kill(os.getpid(), number)  # a second one does what it did before
            assert heard == [number]
    finally:
        driver.close()


def test_a_loop_waits_until_a_signal_comes(heard: list[int]) -> None:
    async def main() -> None:
        driver = AsyncioDriver("test")
        with stop_signals(driver) as asked:
            asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGTERM)
            await driver.wait(asked, driver.deadline(30))
        await driver.close()

    asyncio.run(main())
    assert heard == []


def test_without_a_signal_all_is_as_before(heard: list[int]) -> None:
    driver = ThreadsDriver("test")
    with stop_signals(driver) as asked:
        assert not asked.done
    driver.close()
    os.kill(os.getpid(), signal.SIGTERM)
    assert heard == [signal.SIGTERM]


def test_other_threads_hear_nothing() -> None:
    done: list[bool] = []

    def run() -> None:
        with stop_signals(None) as asked:
            done.append(asked.done)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert done == [False]
