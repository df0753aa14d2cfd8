"""The lane of RocketMQ: a request and its answer in one call; what is unusual gets a slot, nothing is lost."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from math import inf
from typing import Any

import pytest

from mqclient._impl import select
from tests.support.burning import answering, burning
from tests.support.road import PATIENCE_MS, RemotingRoad

try:
    codec: Any = select("native").remoting
except ImportError:  # a build without them: nobody has a lane
    codec = None


@pytest.fixture
def road() -> Iterator[RemotingRoad]:
    if codec is None:
        pytest.skip("no native modules in this build")
    made = RemotingRoad(codec)
    yield made
    made.close()


def send(road: RemotingRoad, number: int = 7, count: int = 1) -> Any:
    return road.lane.exchange(road.crossing(number), road.request(number), count)


def test_one_after_the_other_each_gets_its_answer(road: RemotingRoad) -> None:
    for number in range(5, 9):
        answering = road.answered_by(road.reply(number))
        frame = send(road, number, 2)
        answering.join()
        assert (frame.opaque, frame.field("queueOffset")) == (number, str(number))
    assert road.reader.last_borrow >= road.link.last_read > 0
    assert (road.lane.landed, road.lane.under_way, road.dispatched, road.taken) == (8, set(), [], False)
    assert road.reading.acquire(False), "it was given back"


@pytest.mark.parametrize(
    "why", ["inside", "taken", "read", "awake", "written", "to write", "closing", "broken", "lost"]
)
def test_what_is_unusual_takes_the_long_way_and_nothing_is_sent(road: RemotingRoad, why: str) -> None:
    other = threading.Thread(target=road.reading.acquire)
    if why == "inside":
        road.inside = True
    elif why == "taken":
        road.taken = True
    elif why == "read":
        other.start()
        other.join()
    elif why == "to write":
        road.link.outbox.append(b"x")
    elif why == "lost":
        road.connection.link = None
    else:
        attribute = {"awake": "parked", "written": "writing", "closing": "closing", "broken": "broken"}[why]
        setattr(road.connection, attribute, {"awake": False, "broken": OSError()}.get(why, True))
    assert send(road) is None
    assert (road.lane.under_way, road.waiting) == (set(), {})
    road.peer.setblocking(False)
    with pytest.raises(BlockingIOError):
        road.peer.recv(1)


@pytest.mark.parametrize("refused", [False, True])
def test_other_frames_go_to_whom_they_concern(road: RemotingRoad, refused: bool) -> None:
    """A refusal is unusual, too: who knows what to do about it has a slot for it."""
    notice = b"" if refused else codec.encode_frame(40, 3, fields={"consumerGroup": "g"})
    answering = road.answered_by(notice + road.reply(7, 2 if refused else 0))
    slot = send(road)
    answering.join()
    ((frames, got),) = road.dispatched
    assert [frame.code for frame in frames] == ([2] if refused else [40, 0])
    assert got > 0
    assert slot.result().opaque == 7
    assert road.lane.landed == 0, "the slot's owner counts it"


def test_an_answer_to_something_else_is_not_taken_for_it(road: RemotingRoad) -> None:
    road.lane.patience_ms = 50
    answering = road.answered_by(road.reply(6))
    slot = send(road)
    answering.join()
    assert not slot.done, "after a while without answer it waits as the others do"
    assert road.waiting == {7: slot}
    assert len(road.dispatched) == 1


def test_an_answer_in_pieces(road: RemotingRoad) -> None:
    whole = road.reply(7)

    def work() -> None:
        road.peer.recv(65536)
        road.peer.sendall(whole[:5])
        time.sleep(0.01)
        road.peer.sendall(whole[5:])

    answering = threading.Thread(target=work)
    answering.start()
    assert send(road).opaque == 7
    answering.join()
    assert [frames for frames, _ in road.dispatched] in ([], [[]])
    assert road.waiting == {}


def test_a_slot_given_by_another_thread_while_one_waits(road: RemotingRoad) -> None:
    crossing, found = road.crossing(7), list[Any]()
    waits = threading.Thread(target=lambda: found.append(road.lane.exchange(crossing, road.request(7))))
    waits.start()
    assert road.peer.recv(65536)
    assert send(road, 8) is None, "there is one in it already"
    assert road.reader.last_borrow == inf, "he reads"
    (one,) = road.lane.under_way
    assert one is crossing
    slot = road.late(one)
    assert not one.take(object()), "another slot stands for it"
    road.peer.sendall(road.reply(7))
    waits.join()
    assert 0 < road.reader.last_borrow <= time.monotonic()
    assert found == [slot]
    assert slot.result().opaque == 7
    assert len(road.dispatched) == 1


def test_an_answered_one_takes_no_slot(road: RemotingRoad) -> None:
    crossing = road.crossing(7)
    answering = road.answered_by(road.reply(7))
    road.lane.exchange(crossing, road.request(7))
    answering.join()
    assert crossing.answered
    assert not crossing.take(object())


@pytest.mark.parametrize("bad", [False, True])
def test_the_end_of_the_stream_finds_who_waits(road: RemotingRoad, bad: bool) -> None:
    if bad:
        road.peer.sendall(b"\xff" * 8)
    else:
        road.peer.shutdown(socket.SHUT_WR)
    slot = send(road)
    assert road.waiting == {7: slot}, "it had its slot before the engine was told"
    ((frames, got),) = road.dispatched
    assert (frames, got > 0) == ([], bad)


def test_what_fails_over_a_frame_ends_the_connection(road: RemotingRoad) -> None:
    def dispatch(connection: Any, events: list[Any], got: int) -> None:
        raise KeyboardInterrupt

    road.dispatch = dispatch  # type: ignore[method-assign]
    answering = road.answered_by(road.reply(4))
    with pytest.raises(KeyboardInterrupt):
        send(road)
    answering.join()
    assert isinstance(road.connection.broken, KeyboardInterrupt)
    assert list(road.handed) == [road.connection]
    assert list(road.waiting) == [7]
    assert road.reading.acquire(False)


def test_what_the_socket_does_not_take_is_left_to_the_reader_thread(road: RemotingRoad) -> None:
    road.lane.patience_ms = 100
    road.clog()
    slot = send(road)
    road.check_left_over(slot)


def test_the_bell_ends_the_wait(road: RemotingRoad) -> None:
    road.end_bell.ring()
    began = time.monotonic()
    assert not send(road).done
    assert time.monotonic() - began < PATIENCE_MS / 2000


def test_ctrl_c_leaves_nothing_half_done(road: RemotingRoad) -> None:
    with road.interrupting():
        send(road)
    assert road.reading.acquire(False)
    assert list(road.waiting) == [7], "its answer will be counted"


def test_the_pure_twin_takes_nothing() -> None:
    pure: Any = select("pure").remoting
    lane = pure.Lane(lambda crossing: None)
    crossing = pure.Crossing("passage", 7, "mine")
    assert (lane.able, lane.landed, lane.under_way) == (False, 0, set())
    assert lane.exchange(crossing, b"") is None
    assert crossing.take("slot")
    assert not crossing.take("another")
    assert (crossing.passage, crossing.opaque, crossing.what, crossing.slot) == ("passage", 7, "mine", "slot")


def test_beside_a_thread_that_burns_answer_and_turn_are_waited_for_at_once(road: RemotingRoad) -> None:
    """A burning thread gives way 50 ms after it is asked: with an answer after 40 ms each took 90 at least."""
    taken = []
    with answering(road.peer, [road.reply(number) for number in range(12)], 0.04), burning():
        for number in range(12):
            began = time.monotonic()
            assert send(road, number).opaque == number
            taken.append(time.monotonic() - began)
    assert min(taken) < 0.085, taken
