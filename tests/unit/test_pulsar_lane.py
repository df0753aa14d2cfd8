"""The lane: a send and its receipt in one call; what is unusual is left to the engine, nothing stays half done."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from mqclient._impl import select
from mqclient.core.budget import Budget
from mqclient.core.slot import Slot
from tests.support.burning import answering, burning
from tests.support.road import Road

try:
    codec: Any = select("native").pulsar
except ImportError:  # a build without them: nobody has a lane
    codec = None
BODY = (b"x" * 100, None, None, 0, None, -1, False)


@pytest.fixture
def road() -> Iterator[Road]:
    if codec is None:
        pytest.skip("no native modules in this build")
    made = Road(codec)
    assert made.open()
    yield made
    made.close()


def test_one_after_the_other_each_gets_its_id(road: Road) -> None:
    for number in range(5, 9):
        answering = road.answer(number)
        slot = road.lane.send(BODY)
        answering.join()
        assert slot.done
        assert slot.error is None
        assert slot.result() == codec.MessageId(7, number)
    assert road.lane.published == 8
    assert road.reader.last_borrow >= road.link.last_read > 0
    assert road.lane.shut(9.0) == (9, 4, [])
    assert road.lane.shut(9.0)[1] == 0, "they are counted once"
    assert (road.flight.count, road.dispatched, list(road.handed)) == (0, [], [])


@pytest.mark.parametrize(
    "why",
    [
        "shut",
        "not plain",
        "large",
        "inside",
        "read",
        "awake",
        "written",
        "to write",
        "closing",
        "broken",
        "lost",
        "full",
    ],
)
def test_what_is_unusual_takes_the_long_way_and_nothing_is_sent(road: Road, why: str) -> None:
    message: Any = BODY
    other = threading.Thread(target=road.reading.acquire)
    if why == "shut":
        assert road.lane.shut(9.0) == (5, 0, [])
        assert not road.lane.opened
    elif why == "not plain":
        message = (b"x", None, {"a": "b"}, 0, None, -1, False)
    elif why == "large":
        message = (b"x" * 16385, *BODY[1:])
    elif why == "inside":
        road.inside = True
    elif why == "read":
        other.start()
        other.join()
    elif why == "full":
        road.budget.max_bytes = 120
        assert road.budget.take(50)
    elif why == "to write":
        road.link.outbox.append(b"x")
    elif why == "lost":
        road.connection.link = None
    else:
        attribute = {"awake": "parked", "written": "writing", "closing": "closing", "broken": "broken"}[why]
        setattr(road.connection, attribute, {"awake": False, "broken": OSError()}.get(why, True))
    assert road.lane.send(message) is None
    assert road.flight.count == 0
    road.peer.setblocking(False)
    with pytest.raises(BlockingIOError):
        road.peer.recv(1)
    if why != "shut":
        assert road.lane.shut(9.0) == (5, 0, [])


def test_a_message_that_cannot_be_written_is_left_to_who_can_say_why(road: Road) -> None:
    assert road.lane.send((b"x", "\ud800", *BODY[2:])) is None
    assert road.lane.shut(9.0) == (5, 0, [])


def test_it_opens_for_an_empty_flight_only(road: Road) -> None:
    road.lane.shut(9.0)
    road.flight.add(BODY, 5, 0, 1.0, Slot())
    assert not road.open(6)
    road.flight.part()
    assert not road.open(6), "nobody joins one that was parted"


def test_other_frames_go_to_whom_they_concern(road: Road) -> None:
    answering = road.answer(5, before=codec.PING_FRAME)
    slot = road.lane.send(BODY)
    answering.join()
    ((events, got),) = road.dispatched
    assert [event[0] for event in events] == [codec.PING, codec.SEND_RECEIPT]
    assert got > 0
    assert slot.result() == codec.MessageId(7, 5)
    assert not road.lane.opened


def test_a_receipt_of_something_else_is_not_taken_for_it(road: Road) -> None:
    road.lane.patience_ms = 50
    answering = road.answer(4)
    slot = road.lane.send(BODY)
    answering.join()
    assert len(road.dispatched) == 1
    assert not slot.done, "after a while without receipt it waits as the others do"
    assert road.flight.count == 1


def test_a_slow_receipt_is_waited_for_by_the_engine(road: Road) -> None:
    road.lane.patience_ms = 50
    slot = road.lane.send(BODY)
    assert not slot.done
    assert not road.lane.opened
    assert (road.flight.count, road.flight.size, road.flight.deadline, road.flight.sequence_id) == (1, 100, 9.0, 5)
    assert road.flight.take_receipts([(codec.SEND_RECEIPT, 1, 5, 7, 3, -1)], 0) == 1
    assert slot.result() == codec.MessageId(7, 3)
    assert road.reading.acquire(False), "it was given back"


def test_shut_by_another_thread_while_one_waits(road: Road) -> None:
    waits = threading.Thread(target=lambda: found.append(road.lane.send(BODY)))
    found: list[Any] = []
    waits.start()
    assert road.peer.recv(65536)
    assert road.lane.shut(9.0) == (6, 1, [])
    assert road.lane.send(BODY) is None
    assert not road.open(6), "there is still one in it"
    road.peer.sendall(codec.encode_receipt(1, 5, 7, 5))
    waits.join()
    if not found[0].done:  # it had not begun to read: its slot is the engine's, as is the reading
        road.dispatch(road.connection, *road.reader.receive_into(road.fd))
    assert found[0].result() == codec.MessageId(7, 5)
    assert len(road.dispatched) == 1


def test_the_end_of_the_stream_is_told_and_the_connection_handed_over(road: Road) -> None:
    road.open_until_the_stream_ends()
    road.peer.shutdown(socket.SHUT_WR)
    slot = road.lane.send(BODY)
    assert not slot.done
    assert list(road.handed) == [road.connection]
    assert road.rung()


def test_what_fails_over_a_frame_ends_the_connection(road: Road) -> None:
    def dispatch(connection: Any, events: list[Any], got: int) -> None:
        raise KeyboardInterrupt

    road.dispatch = dispatch  # type: ignore[method-assign]
    road.lane.shut(9.0)
    assert road.open()
    answering = road.answer(4)
    with pytest.raises(KeyboardInterrupt):
        road.lane.send(BODY)
    answering.join()
    assert isinstance(road.connection.broken, KeyboardInterrupt)
    assert list(road.handed) == [road.connection]
    assert road.reading.acquire(False)


def test_what_the_socket_does_not_take_is_left_to_the_reader_thread(road: Road) -> None:
    road.lane.patience_ms = 100
    road.clog()
    slot = road.lane.send(BODY)
    road.check_left_over(slot)


def test_the_bell_ends_the_wait(road: Road) -> None:
    road.end_bell.ring()
    slot = road.lane.send(BODY)
    assert not slot.done


def test_ctrl_c_leaves_nothing_half_done(road: Road) -> None:
    with road.interrupting():
        road.lane.send(BODY)
    assert not road.connection.lent
    assert 0 < road.reader.last_borrow <= time.monotonic()
    assert road.peer.recv(65536)
    answering = road.answer(5, 6)
    assert road.lane.send(BODY).result() == codec.MessageId(7, 6), "behind the one for which nobody waits"
    answering.join()
    assert road.lane.shut(9.0) == (7, 2, [])


def test_what_ctrl_c_left_behind_has_a_slot_once_the_lane_is_shut(road: Road) -> None:
    with road.interrupting():
        road.lane.send(BODY)
    assert road.lane.shut(9.0) == (6, 1, [])
    ((_, size, number, deadline, slot),) = road.flight.part()
    assert (size, number, deadline, slot.done) == (100, 5, 9.0, False)


def test_beside_a_thread_that_burns_receipt_and_turn_are_waited_for_at_once(road: Road) -> None:
    """A burning thread gives way 50 ms after it is asked: with a receipt after 40 ms each took 90 at least."""
    taken = []
    numbers = range(5, 29)
    with answering(road.peer, [codec.encode_receipt(1, number, 7, number) for number in numbers], 0.04), burning():
        for _ in numbers:
            began = time.monotonic()
            assert road.lane.send(BODY).done
            taken.append(time.monotonic() - began)
    assert min(map(max, taken, taken[1:])) < 0.085, f"never two in a row: {taken}"


def test_the_pure_twin_never_opens() -> None:
    pure: Any = select("pure").pulsar
    lane = pure.Lane(Budget(), Slot, lambda: None)
    assert not lane.open(pure.EntryFlight(1, "me", -1, 1 << 20), object(), 5)
    assert (lane.opened, lane.published, lane.send(BODY), lane.shut(9.0)) == (False, -1, None, (0, 0, []))
