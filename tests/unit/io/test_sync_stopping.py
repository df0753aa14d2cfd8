"""On the main thread a signal ends the serving, as does the end of what is served."""

from __future__ import annotations

import os
import signal
import threading
import time

from mqclient import _impl
from mqclient.core.slot import Wake
from mqclient.io.sync_stopping import until_asked
from mqclient.io.threads import ThreadsDriver


def kill(number: int, before: object) -> None:
    """As soon as somebody is there who expects it: SIGINT is the one that is installed last."""
    while signal.getsignal(signal.SIGINT) == before:
        time.sleep(0.001)
    os.kill(os.getpid(), number)


def test_a_signal_and_an_end() -> None:
    driver = ThreadsDriver("test", send_now=_impl.default.pulsar.send_now)
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    for number in (signal.SIGTERM, signal.SIGINT):
        killer = threading.Thread(target=kill, args=(number, signal.getsignal(signal.SIGINT)))
        killer.start()
        until_asked(driver, Wake())
        killer.join(30)
    ended = Wake()
    with driver.enter():
        ended.complete(None)
    until_asked(driver, ended)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
    driver.close()


def test_outside_of_the_main_thread() -> None:
    driver = ThreadsDriver("test", send_now=_impl.default.pulsar.send_now)
    ended = Wake()
    thread = threading.Thread(target=until_asked, args=(driver, ended))
    thread.start()
    with driver.enter():
        ended.complete(None)
    thread.join(30)
    assert not thread.is_alive()
    driver.close()
