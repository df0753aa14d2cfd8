"""One connection: outbox, epochs, and the end with its cause."""

from __future__ import annotations

import pytest

from mqclient.core.driver import Address
from mqclient.core.link import Buffer, unsent
from mqclient.core.slot import Slot
from mqclient.errors import ClosedError, LinkError, ProtocolError
from tests.support.echo import EchoEngine, frame
from tests.support.fake_driver import FakeDriver, Script, Wire, World
from tests.support.leaks import assert_done, assert_quiet

PARTS: list[Buffer] = [b"abc", bytearray(b"d"), memoryview(b""), b"efgh"]

HERE = Address("broker", 1, "test")


def echo(wire: Wire, data: bytes) -> None:
    wire.send(data)


@pytest.fixture(params=[False, True], ids=["threads", "asyncio"])
def driver(request: pytest.FixtureRequest) -> FakeDriver:
    return World().driver(per_turn=request.param)


def test_what_is_sent_while_connecting_goes_out_on_opening(driver: FakeDriver) -> None:
    world, script = driver.world, Script(echo)
    world.listen(("broker", 1), script)
    engine = EchoEngine(driver, HERE)
    slots = [engine.submit(b"%d" % number) for number in range(5)]
    assert engine.link.state == "connecting"
    assert [world.result(slot) for slot in slots] == [b"0", b"1", b"2", b"3", b"4"]
    assert bytes(script.received) == b"".join(frame(number + 1, b"%d" % number) for number in range(5))
    assert_quiet([engine.link])


def test_a_refused_connection_names_address_and_source(driver: FakeDriver) -> None:
    engine = EchoEngine(driver, HERE)
    slot = engine.submit(b"x")
    with pytest.raises(LinkError, match=r"could not connect to broker:1 \(test\)") as caught:
        driver.wait(slot)
    assert caught.value.retriable
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)
    assert engine.lost
    late = engine.submit(b"y")  # who comes after the failure is told of it, too
    with pytest.raises(LinkError, match=r"not connected to broker:1: could not connect to broker:1 \(test\)"):
        driver.wait(late)
    assert_quiet([engine.link])


def test_loss_fails_what_is_in_flight_and_says_outcome_unknown(driver: FakeDriver) -> None:
    world, script = driver.world, Script()
    world.listen(("broker", 1), script)
    engine = EchoEngine(driver, HERE)
    slots = [engine.submit(b"x"), engine.submit(b"y")]
    world.run()
    script.wire.lose()
    world.run()
    assert_done(*slots)
    assert all(isinstance(slot.error, LinkError) and slot.error.outcome_unknown for slot in slots)
    late = engine.submit(b"z")
    assert isinstance(late.error, LinkError)
    assert not late.error.outcome_unknown  # it never left


def test_a_new_epoch_starts_clean(driver: FakeDriver) -> None:
    world, script = driver.world, Script()
    world.listen(("broker", 1), script)
    engine = EchoEngine(driver, HERE, reconnect=True)
    world.run()
    script.wire.send(frame(0, b"half")[:6])  # half a frame of the old connection
    script.wire.lose()
    world.run()
    assert engine.link.epoch == 2
    assert engine.link.state == "open"
    script.wire.send(frame(0, b"whole"))
    world.run()
    assert engine.pushed == [b"whole"]


def test_bytes_of_an_old_connection_are_not_heard(driver: FakeDriver) -> None:
    world, script = driver.world, Script()
    world.listen(("broker", 1), script)
    engine = EchoEngine(driver, HERE)
    world.run()
    script.wire.send(frame(0, b"too late"))
    engine.close()
    world.run()
    assert engine.pushed == []


def test_bad_bytes_end_the_connection_after_the_good_frames_before_them(driver: FakeDriver) -> None:
    world, script = driver.world, Script()
    world.listen(("broker", 1), script)
    engine = EchoEngine(driver, HERE)
    slot = engine.submit(b"x")
    world.run()
    script.wire.send(frame(0, b"good") + b"\xff" * 8)
    world.run()
    assert engine.pushed == [b"good"]
    assert engine.link.state == "lost"
    assert isinstance(slot.error, LinkError)
    assert isinstance(slot.error.__cause__, ProtocolError)
    assert not script.wire.open


def test_close_writes_what_was_given_then_fails_what_waits(driver: FakeDriver) -> None:
    world, script = driver.world, Script()
    world.listen(("broker", 1), script)
    engine = EchoEngine(driver, HERE)
    world.run()
    with driver.enter():
        engine.link.write(frame(9, b"goodbye"))
        engine.link.close()
    slot = engine.submit(b"x")
    world.run()
    assert bytes(script.received) == frame(9, b"goodbye")
    assert isinstance(slot.error, LinkError)
    assert engine.lost == []
    assert not script.wire.open


def test_close_while_connecting(driver: FakeDriver) -> None:
    world, script = driver.world, Script()
    world.listen(("broker", 1), script)
    engine = EchoEngine(driver, HERE)
    slot = engine.submit(b"x")
    engine.close()
    world.run()
    assert isinstance(slot.error, ClosedError)
    assert script.wires == []


def test_cut_at_every_byte(driver: FakeDriver) -> None:
    world, script = driver.world, Script(echo)
    world.listen(("broker", 1), script)
    engine = EchoEngine(driver, HERE)
    world.run()
    script.wire.cut_at = 1
    assert world.result(engine.submit(b"in pieces")) == b"in pieces"


def test_thousands_of_lost_connections_leave_nothing_behind(driver: FakeDriver) -> None:
    world, script = driver.world, Script(echo)
    world.listen(("broker", 1), script)
    engine = EchoEngine(driver, HERE, reconnect=True)
    for number in range(2_000):
        slot = engine.submit(b"x", timeout=2)
        if number % 3 == 0:
            world.run()
        if script.wires and script.wire.open:
            script.wire.lose()
        world.run()
        assert_done(slot)
    assert_quiet([engine.link])
    world.advance(10)
    assert len(engine.timers._heap) == 0


def test_an_old_loss_is_not_told_once_the_link_was_made_anew(driver: FakeDriver) -> None:
    engine = EchoEngine(driver, HERE)
    driver.world.run()
    driver.world.listen(("broker", 1), Script(echo))
    with driver.enter() as now:
        engine.link.connect(now.mono + 5)
    driver.world.run()
    with driver.enter():
        engine.link.close()
    late = engine.submit(b"y")
    assert str(late.error) == "not connected to broker:1"


def test_what_was_written_already_is_expected_over_its_own_connection_only(driver: FakeDriver) -> None:
    world, script = driver.world, Script()
    world.listen(("broker", 1), script)
    engine = EchoEngine(driver, HERE, reconnect=True)
    world.run()
    first = engine.link.handle
    with driver.enter():
        mine: Slot[bytes] = Slot()
        engine.link.expect(900, mine, world.mono + 9, "ECHO", first)
    assert not mine.done
    script.wire.lose()
    world.run()
    assert isinstance(mine.error, LinkError)
    assert mine.error.outcome_unknown
    assert engine.link.state == "open"
    with driver.enter():
        late: Slot[bytes] = Slot()
        engine.link.expect(901, late, world.mono + 9, "ECHO", first)
    assert isinstance(late.error, LinkError)
    assert late.error.outcome_unknown
    assert late.error.request == "ECHO"
    assert "lost the connection to broker:1" in str(late.error)
    with driver.enter():
        engine.link.expect(902, Slot(), world.mono + 9, "ECHO", engine.link.handle)
    assert len(engine.link.inflight) == 1


@pytest.mark.parametrize("sent", range(9))
def test_what_is_left_after_any_number_of_bytes(sent: int) -> None:
    rest = unsent(PARTS, sent)
    assert b"".join(rest) == b"abcdefgh"[sent:]
    assert all(len(part) for part in rest[:1]), "no empty buffer in front"
