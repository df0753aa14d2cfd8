"""The asyncio driver over real sockets: turns, cancellation, faults, deadlines, closing."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from mqclient.core.driver import Address
from mqclient.core.slot import Slot, Wake
from mqclient.errors import ClosedError, DeadlineError, LinkError, MQError
from mqclient.io.aio import AsyncioDriver
from tests.support.echo import EchoEngine, EchoReader, EchoServer, frame
from tests.support.leaks import assert_quiet
from tests.support.proxy import CuttingProxy

LONG = 20.0
Test = Callable[[AsyncioDriver, EchoEngine, EchoServer], Coroutine[Any, Any, None]]


def run(test: Test, *, reconnect: bool = False) -> None:
    """One echo server, one driver, one engine; nothing is left behind."""

    async def main(server: EchoServer) -> None:
        driver = AsyncioDriver("test")
        engine = EchoEngine(driver, server.address, reconnect=reconnect)
        await test(driver, engine, server)
        engine.close()
        await driver.close()
        await asyncio.sleep(0)  # what the end of a task calls back comes a turn later
        assert_quiet([engine.link])
        assert not driver._connections
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with EchoServer() as server:
        asyncio.run(main(server), debug=False)


async def ask(engine: EchoEngine, body: bytes, timeout: float = LONG) -> bytes:
    driver = engine.driver
    assert isinstance(driver, AsyncioDriver)
    return await driver.wait(engine.submit(body, timeout), driver.deadline(timeout))


def test_request_and_reply() -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        for number in range(200):
            assert await ask(engine, b"%d" % number) == b"%d" % number

    run(test)


def test_many_tasks_each_get_their_own_reply_in_order_on_the_wire() -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        bodies = [b"%d" % number for number in range(2_000)]
        assert await asyncio.gather(*(ask(engine, body) for body in bodies)) == bodies
        assert server.received == bodies

    run(test)


def test_sends_of_one_turn_are_one_write() -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        await ask(engine, b"x")
        watched = engine.link.handle.transport = Watched(engine.link.handle.transport)
        slots = [engine.submit(b"%d" % number, LONG) for number in range(100)]
        assert watched.writes == 0
        for slot in slots:
            await driver.wait(slot)
        assert watched.writes == 1

    run(test)


class Roomy(EchoReader):
    """Has room for what is received, as the native readers have."""

    def __init__(self) -> None:
        super().__init__()
        self.room = bytearray(64)
        self.reads: list[int] = []

    def vacancy(self) -> memoryview:
        return memoryview(self.room)

    def filled(self, count: int) -> list[Any]:
        self.reads.append(count)
        return self.feed(bytes(self.room[:count]))


def test_what_comes_is_received_where_the_reader_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        reader = engine.link.reader
        assert isinstance(reader, Roomy)
        assert await ask(engine, b"x" * 1000) == b"x" * 1000
        assert (max(reader.reads), sum(reader.reads)) == (64, len(frame(1, b"x" * 1000)))
        seen = len(reader.reads)
        handle = engine.link.handle
        handle.link = None  # as it is while the connection is being closed
        handle.buffer_updated(5)
        handle.link = engine.link
        assert len(reader.reads) == seen

    monkeypatch.setattr("tests.support.echo.EchoReader", Roomy)
    run(test)


class Watched:
    """A transport whose writes are counted."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.writes = 0

    def write(self, data: bytes) -> None:
        self.writes += 1
        self._inner.write(data)

    def writelines(self, parts: list[bytes]) -> None:
        self.writes += 1
        self._inner.writelines(parts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_a_done_slot_costs_no_turn_of_the_loop() -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        slot: Slot[int] = Slot()
        slot.complete(7)
        turns: list[int] = []
        asyncio.get_running_loop().call_soon(turns.append, 1)
        assert await driver.wait(slot) == 7
        assert turns == []

    run(test)


def test_large_frames_wait_in_the_outbox_while_the_transport_is_full() -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        await ask(engine, b"x")
        held = engine.submit(b"hold", LONG)
        slots = [engine.submit(bytes([number]) * 6_000_000, LONG) for number in range(4)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        more = engine.submit(b"behind", LONG)
        await asyncio.sleep(0)
        assert engine.link.outbox_bytes > 0
        server.go.set()
        assert await driver.wait(held) == b"hold"
        replies = [await driver.wait(slot) for slot in slots]
        assert [len(reply) for reply in replies] == [6_000_000] * 4
        assert await driver.wait(more) == b"behind"
        assert engine.link.outbox_bytes == 0

    run(test)


# ---- cancelling


def test_ten_thousand_cancelled_requests_lose_no_reply() -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        slots = []
        cancelled = 0
        for number in range(10_000):
            slot = engine.submit(b"%d" % number, 60)
            slots.append(slot)
            task = asyncio.ensure_future(driver.wait(slot))
            for _ in range(random.randrange(3)):
                await asyncio.sleep(0)
            cancelled += task.cancel()
            await asyncio.wait([task])
        for number, slot in enumerate(slots):
            assert await driver.wait(slot) == b"%d" % number
        assert cancelled > 1_000
        assert not driver._waiting

    run(test)


def test_cancelling_one_of_several_waiters_keeps_the_others() -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        slot = engine.submit(b"late 0.05", LONG)
        tasks = [asyncio.ensure_future(driver.wait(slot)) for _ in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        assert [await tasks[0], await tasks[2]] == [b"late 0.05"] * 2
        assert tasks[1].cancelled()

    run(test)


# ---- deadlines and timers


def test_deadlines_of_requests_and_of_waits() -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        with pytest.raises(DeadlineError, match="ECHO"):
            await ask(engine, b"silent", timeout=0.1)
        for timeout in (0.0, 0.05):
            slot = Wake()
            with pytest.raises(DeadlineError, match="time given"):
                await driver.wait(slot, driver.deadline(timeout))
            assert not slot._callbacks

    run(test)


def test_timers_fire_on_time_and_earlier_ones_replace_the_alarm() -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        fired: list[float] = []
        with driver.enter() as now:
            for delay in (0.15, 0.05, 0.1):
                engine.timers.at(now.mono + delay, lambda then: fired.append(then.mono))
            last = engine.timers.sleep(0.2)
        await driver.wait(last)
        late = [then - (now.mono + delay) for then, delay in zip(fired, (0.05, 0.1, 0.15), strict=True)]
        assert all(0 <= one < 1.0 for one in late), late

    run(test)


def test_a_failing_timer_does_not_stop_those_after_it(caplog: pytest.LogCaptureFixture) -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        def fail(_: Any) -> None:
            raise ValueError("a bug in a timer")

        with driver.enter() as now:
            engine.timers.at(now.mono + 0.01, fail)
            after = engine.timers.sleep(0.01)
        await driver.wait(after, driver.deadline(LONG))
        assert "a bug in a timer" in caplog.text

    run(test)


# ---- order of things


def test_deliveries_come_after_leaving_and_turn_ends_inside() -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        told: list[tuple[str, bool]] = []
        with driver.enter():
            driver.deliver(lambda name: told.append((name, driver._inside)), "delivered")
            driver.end_of_turn(lambda: told.append(("turn", driver._inside)))
            assert told == []
        assert told == [("delivered", False)]
        await asyncio.sleep(0)
        assert told == [("delivered", False), ("turn", True)]
        with driver.enter(), pytest.raises(RuntimeError, match="entered twice"), driver.enter():
            pass

    run(test)


def test_user_code_runs_as_a_task_and_may_send_and_wait() -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        got: list[bytes] = []
        done = asyncio.Event()

        async def handle(body: bytes) -> None:
            got.append(await ask(engine, b"from " + body))
            done.set()

        def plain(body: bytes) -> None:
            got.append(body)

        def on_push(body: bytes) -> None:
            driver.run_user(handle, body)
            driver.run_user(plain, body)

        engine.on_push = on_push
        await ask(engine, b"push 1")
        await asyncio.wait_for(done.wait(), LONG)
        assert got == [b"0", b"from 0"]

    run(test)


def test_a_failing_user_function_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        def fail(_: Any) -> None:
            raise ValueError("the user's own")

        with driver.enter():
            driver.run_user(fail, None)
        await asyncio.sleep(0.01)
        assert "the user's own" in caplog.text

    run(test)


# ---- the wrong place


def test_use_from_another_thread_or_loop_names_the_cure() -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        errors: list[str] = []

        def other_thread() -> None:
            pending: Slot[bytes] = Slot()

            async def outcome_of(slot: Slot[bytes]) -> bytes:
                return await driver.wait(slot)

            uses: list[Callable[[], object]] = [
                lambda: engine.submit(b"x"),
                lambda: asyncio.run(outcome_of(pending)),
            ]
            for use in uses:
                with pytest.raises(MQError, match="another thread, another loop") as caught:
                    use()
                errors.append(str(caught.value))

        await asyncio.get_running_loop().run_in_executor(None, other_thread)
        assert len(errors) == 2
        assert "Cure" in errors[0]

    run(test)


def test_no_thread_of_ours_ever() -> None:
    before = set(threading.enumerate())  # other tests of this process may have clients and brokers running

    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        during = {thread.name for thread in threading.enumerate() if thread not in before}
        await ask(engine, b"x")
        assert {name for name in during if name.startswith(("mqclient", "test"))} == set()

    run(test)
    assert set(threading.enumerate()) <= before


# ---- faults


@pytest.mark.parametrize("order", [b"close", b"reset", b"garbage"])
def test_a_lost_connection_fails_what_waits(order: bytes) -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        silent = engine.submit(b"silent", LONG)
        with pytest.raises(LinkError):
            await ask(engine, order)
        with pytest.raises(LinkError) as caught:
            await driver.wait(silent)
        assert caught.value.outcome_unknown
        assert engine.link.state == "lost"

    run(test)


def test_a_refused_connection() -> None:
    async def main() -> None:
        driver = AsyncioDriver()
        engine = EchoEngine(driver, Address("127.0.0.1", 1, "given"))
        with pytest.raises(LinkError, match=r"could not connect to 127.0.0.1:1 \(given\)"):
            await ask(engine, b"x")
        await driver.close()

    asyncio.run(main())


def test_connecting_ends_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        async def never(*_arguments: Any, **_options: Any) -> Any:
            await asyncio.sleep(60)

        monkeypatch.setattr(loop, "create_connection", never)
        driver = AsyncioDriver()
        engine = EchoEngine(driver, Address("somewhere", 1))
        with driver.enter() as now:
            engine.link.close()
            engine.link.connect(now.mono + 0.05)
        start = time.monotonic()
        with pytest.raises(LinkError, match="no connection in time"):
            await ask(engine, b"x")
        assert time.monotonic() - start < 5
        await driver.close()

    asyncio.run(main())


def test_tasks_survive_cuts_again_and_again() -> None:
    async def main(server: EchoServer) -> None:
        with CuttingProxy(("127.0.0.1", server.port)) as proxy:
            driver = AsyncioDriver()
            engine = EchoEngine(driver, proxy.address, reconnect=True)
            answered = [0, 0, 0]
            stop = False

            async def caller(name: int) -> None:
                while not stop:
                    try:
                        body = b"%d:%d" % (name, answered[name])
                        assert await ask(engine, body) == body
                        answered[name] += 1
                    except LinkError:
                        await asyncio.sleep(0)

            tasks = [asyncio.ensure_future(caller(name)) for name in range(3)]
            for number in range(30):
                await asyncio.sleep(0.02)
                proxy.cut(reset=bool(number % 2))
            before = list(answered)
            while any(now <= then for now, then in zip(answered, before, strict=True)):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            stop = True
            await asyncio.gather(*tasks)
            assert engine.opened > 5
            engine.close()
            await driver.close()
            assert_quiet([engine.link])

    with EchoServer() as server:
        asyncio.run(asyncio.wait_for(main(server), 60))


def test_a_bug_of_the_engine_costs_the_connection_not_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        await ask(engine, b"x")

        def bug(_: bytes) -> None:
            raise KeyError("a bug in the engine")

        engine.on_push = bug
        silent = engine.submit(b"silent", LONG)
        engine.submit(b"push 1", LONG)
        with pytest.raises(LinkError, match="a bug in the engine"):
            await driver.wait(silent)
        engine.on_push = None
        assert await ask(engine, b"after") == b"after"

    run(test, reconnect=True)


def test_closing_and_connecting_anew_in_one_entry() -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        await ask(engine, b"x")
        for _ in range(50):
            with driver.enter() as now:
                engine.link.close()
                engine.link.connect(now.mono + 5)
            assert await ask(engine, b"again") == b"again"
        assert engine.lost == []

    run(test)


# ---- closing


def test_close_writes_what_was_given() -> None:
    async def main(server: EchoServer) -> None:
        driver = AsyncioDriver()
        engine = EchoEngine(driver, server.address)
        await ask(engine, b"x")
        for number in range(500):
            engine.submit(b"%d" % number, LONG)
        engine.submit(b"L" * 500_000, LONG)
        engine.close()
        await driver.close()
        end = time.monotonic() + LONG
        while len(server.received) < 502 and time.monotonic() < end:  # noqa: ASYNC110 - the server is in threads
            await asyncio.sleep(0.001)
        assert len(server.received) == 502

    with EchoServer() as server:
        asyncio.run(main(server))


def test_close_ends_every_wait_and_refuses_what_comes_after() -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        slots: list[Slot[Any]] = [Wake(), engine.submit(b"silent", LONG), Wake()]
        tasks = [asyncio.ensure_future(driver.wait(slot)) for slot in slots]
        await asyncio.sleep(0.01)
        await driver.close()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [ClosedError] * 3
        late = Wake()
        with pytest.raises(ClosedError):
            await driver.wait(late)
        with pytest.raises(ClosedError), driver.enter() as now:
            engine.link.connect(now.mono + 5)

    run(test)


def test_uvloop_is_welcome() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main(server: EchoServer) -> None:
        driver = AsyncioDriver()
        engine = EchoEngine(driver, server.address)
        bodies = [b"%d" % number for number in range(500)]
        assert await asyncio.gather(*(ask(engine, body) for body in bodies)) == bodies
        with driver.enter():
            slept = engine.timers.sleep(0.02)
        await driver.wait(slept, driver.deadline(5))
        with driver.enter():
            late = engine.timers.sleep(-1)  # a busy loop arms timers whose time is over
        await driver.wait(late, driver.deadline(5))
        engine.close()
        await driver.close()

    with EchoServer() as server:
        loop = uvloop.new_event_loop()
        try:
            loop.run_until_complete(main(server))
        finally:
            loop.close()


def test_a_wait_that_times_out_fires_no_timer_that_is_not_due() -> None:
    async def test(driver: AsyncioDriver, engine: EchoEngine, server: EchoServer) -> None:
        fired: list[str] = []
        with driver.enter() as now:
            engine.timers.at(now.mono + 30, lambda _: fired.append("early"))
        for _ in range(3):
            slot = Wake()
            with pytest.raises(DeadlineError):
                await driver.wait(slot, driver.deadline(0.01))
        assert fired == []

    run(test)
