"""In an event loop a signal ends the serving, as does the end of what is served."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

from mqclient import _impl
from mqclient.core.slot import Wake
from mqclient.io.aio import AsyncioDriver
from mqclient.io.aio_stopping import until_asked


def test_a_signal_and_an_end() -> None:
    async def serve() -> None:
        driver = AsyncioDriver("test", send_now=_impl.default.pulsar.send_now)
        for number in (signal.SIGTERM, signal.SIGINT):
            waiting = asyncio.ensure_future(until_asked(driver, Wake()))
            await asyncio.sleep(0)  # now it is there
            os.kill(os.getpid(), number)
            await asyncio.wait_for(waiting, 30)
        ended = Wake()
        waiting = asyncio.ensure_future(until_asked(driver, ended))
        await asyncio.sleep(0)
        with driver.enter():
            ended.complete(None)
        await asyncio.wait_for(waiting, 30)
        await driver.close()

    def our_own(*_: object) -> None:
        """What the program had set before."""

    outside = signal.signal(signal.SIGTERM, our_own)
    try:
        asyncio.run(serve())
        assert signal.getsignal(signal.SIGTERM) is our_own
    finally:
        signal.signal(signal.SIGTERM, outside)


def test_outside_of_the_main_thread() -> None:
    async def serve() -> None:
        driver = AsyncioDriver("test", send_now=_impl.default.pulsar.send_now)
        ended = Wake()
        with driver.enter():
            ended.complete(None)
        await until_asked(driver, ended)
        await driver.close()
        done.append(True)

    done: list[bool] = []
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    thread.join(30)
    assert done
