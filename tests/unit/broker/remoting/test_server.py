"""Connections: bad bytes, faults, requests that nobody knows, pushes to who is gone."""

from __future__ import annotations

import asyncio
import logging
from contextlib import ExitStack
from random import Random
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.broker.broker import House
from mqclient.broker.control import Clock, Control
from mqclient.broker.remoting.server import (
    Ask,
    Peer,
    Refused,
    Reply,
    Server,
    kind_of,
    read_properties,
    write_properties,
)
from mqclient.errors import ConfigError
from mqclient.rocketmq.codes import Request
from tests.unit.broker.remoting.conftest import Connect
from tests.unit.broker.remoting.raw import Raw

ASK: dict[str, Any] = {"topic": "TBW102", "queueId": 0}


def test_bad_bytes_close_the_connection_and_others_are_served(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = connect(), connect()
    with caplog.at_level(logging.WARNING, "mqclient.broker"):
        bad._socket.sendall(b"\xff" * 64)
        with pytest.raises((EOFError, ConnectionError)):
            bad.answer(1)
    assert good.ask(Request.GET_MAX_OFFSET, **ASK).code == 0
    assert sum("closed after bad bytes" in record.getMessage() for record in caplog.records) == 1


def test_scripted_faults(connect: Connect, broker: EmbeddedBroker) -> None:
    raw, control = connect(), broker.control
    control.answer("GET_MAX_OFFSET", 2, "[TIMEOUT_CLEAN_QUEUE]")
    busy = raw.ask(Request.GET_MAX_OFFSET, **ASK)
    assert (busy.code, busy.remark) == (2, "[TIMEOUT_CLEAN_QUEUE]")
    control.drop("GET_MAX_OFFSET")
    with pytest.raises(TimeoutError):
        raw.answer(raw.tell(Request.GET_MAX_OFFSET, **ASK), 0.1)
    control.trickle("GET_MAX_OFFSET")
    assert raw.ask(Request.GET_MAX_OFFSET, **ASK).code == 0
    control.delay("GET_MAX_OFFSET", 60)
    opaque = raw.tell(Request.GET_MAX_OFFSET, **ASK)
    with pytest.raises(TimeoutError):
        raw.answer(opaque, 0.1)
    control.move_clock(61)
    assert raw.answer(opaque).code == 0


@pytest.mark.parametrize("after", [False, True])
def test_cut_before_or_after_the_work_is_done(connect: Connect, broker: EmbeddedBroker, after: bool) -> None:
    topic = f"cut-{after}"
    broker.control.cut("SEND_MESSAGE_V2", after=after)
    with pytest.raises((EOFError, ConnectionError)):
        connect().send(topic, b"x")
    stored = connect().ask(Request.GET_MAX_OFFSET, topic=topic, queueId=0).field("offset")
    assert stored == ("1" if after else "0")


def test_who_comes_after_a_cut_is_served(connect: Connect, broker: EmbeddedBroker) -> None:
    """An answer waited to be written when the connection was cut; the next one gets its descriptor's number."""
    for _ in range(5):
        broker.control.cut("GET_MAX_OFFSET")
        first = connect()
        first._socket.sendall(
            b"".join(
                first.codec.encode_frame(int(code), number, fields={"topic": "t", "queueId": "0"})
                for number, code in enumerate((Request.GET_MIN_OFFSET, Request.GET_MAX_OFFSET))
            )
        )
        with pytest.raises((EOFError, ConnectionError)):
            first.answer(1)
        first.close()
        assert connect().ask(Request.GET_MAX_OFFSET, topic="t", queueId=0).code == 0


def test_a_handler_that_fails_answers_and_says_so(
    connect: Connect, broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    raw = connect()
    broken = raw.ask(Request.LOCK_BATCH_MQ, b"{}")
    assert (broken.code, broken.remark) == (1, "KeyError: 'consumerGroup'")
    assert any("LOCK_BATCH_MQ failed" in record.getMessage() for record in caplog.records)
    garbage = raw.ask(Request.LOCK_BATCH_MQ, b"{{{")
    assert garbage.code == 1
    assert "no JSON" in garbage.remark


def test_a_oneway_request_is_never_answered(raw: Raw) -> None:
    opaque = raw.tell(9999, oneway=True)
    with pytest.raises(TimeoutError):
        raw.answer(opaque, 0.1)


def test_answers_to_nothing_are_passed_over(raw: Raw) -> None:
    raw._socket.sendall(raw.codec.encode_frame(0, 12345, flag=1))
    assert raw.ask(Request.GET_MAX_OFFSET, **ASK).code == 0


def test_what_waited_for_room_is_served_in_a_turn_of_its_own(connect: Connect, broker: EmbeddedBroker) -> None:
    """asyncio tells of room while it writes: a write that failed in there ended the connection twice."""
    (server,) = (service.server for service in broker._doors[0].services)  # type: ignore[attr-defined]
    before = set(server.peers)
    raw = connect()
    assert raw.ask(Request.GET_MAX_OFFSET, **ASK).code == 0
    (peer,) = server.peers - before

    def resume() -> tuple[int, int]:
        peer.resume_writing()
        return len(peer._frames), len(peer._out)

    broker.control.call(peer.pause_writing)
    opaque = raw.tell(Request.GET_MAX_OFFSET, **ASK)
    while not broker.control.call(lambda: len(peer._frames)):
        pass
    assert broker.control.call(resume) == (1, 0)
    assert raw.answer(opaque).code == 0


class Gone(asyncio.Transport):
    """A connection that was reset before anybody looked: its peer has no name any more."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


def test_who_left_before_it_was_seen_is_let_go(broker: EmbeddedBroker) -> None:
    (server,) = (service.server for service in broker._doors[0].services)  # type: ignore[attr-defined]
    peer = Peer(server)
    broker.control.call(peer.connection_made, Gone())
    assert peer.address == ":0"
    broker.control.call(peer.connection_lost, None)
    assert peer not in server.peers


class Pipe(Gone):
    """What a server writes to, in memory."""

    def __init__(self) -> None:
        super().__init__({"peername": ("::1", 7, 0, 0)})
        self.sent: list[bytes] = []
        self.state = "open"
        self.reading = True

    def write(self, data: Any) -> None:
        self.sent.append(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.sent.append(b"".join(list_of_data))

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return asyncio.Transport.get_extra_info(self, name, default)

    def is_closing(self) -> bool:
        return self.state != "open"

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def close(self) -> None:
        self.state = "closed"

    def abort(self) -> None:
        self.state = "cut"


class Files:
    """In place of what keeps a broker's state: all the files there are."""

    folder = "/nowhere"

    def __init__(self) -> None:
        self.dirty = True
        self.full = False
        self.commits = 0

    def commit(self) -> None:
        if self.full:
            raise OSError("no space left")
        self.commits += 1
        self.dirty = False


class Desk:
    """One server with one connection, without a loop: `turn` does what was planned for the next turn."""

    def __init__(self, codec: Any, handler: Any, guard: Any = None) -> None:
        self.codec = codec.remoting
        clock = Clock()
        self.house = House(codec, clock, Control(clock), Random(1))
        self.lost: list[Peer] = []
        self.server = Server(self.house, {1: handler}, self.lost.append, guard)
        self.server.loop = self  # type: ignore[assignment]
        self.planned: list[Any] = []
        self.pipe = Pipe()
        self.peer = Peer(self.server)
        self.peer.connection_made(self.pipe)

    def call_soon(self, call: Any) -> None:
        self.planned.append(call)

    def turn(self) -> None:
        planned, self.planned = self.planned, []
        for call in planned:
            call()

    def request(self, opaque: int, **options: Any) -> bytes:
        frame: bytes = self.codec.encode_frame(1, opaque, **options)
        return frame

    def answers(self) -> list[Any]:
        found: list[Any] = self.codec.FrameReader().feed(b"".join(self.pipe.sent))
        return found


def test_bytes_may_come_in_any_pieces(codec: Any) -> None:
    desk = Desk(codec, lambda ask: Reply(body=ask.body))
    asked = b"".join(desk.request(number, body=b"%d" % number) for number in range(3))
    for at in range(len(asked)):
        desk.peer.data_received(asked[at : at + 1])
    assert [(answer.opaque, answer.body) for answer in desk.answers()] == [(0, b"0"), (1, b"1"), (2, b"2")]
    assert desk.peer.address == "[::1]:7"
    desk.turn()
    assert len(desk.answers()) == 3
    assert desk.peer.open
    desk.peer.connection_lost(None)
    assert (desk.peer.open, desk.lost, desk.server.peers) == (False, [desk.peer], set())


def test_who_does_not_read_is_not_heard_either(codec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqclient.broker.remoting.server.WRITE_BUFFER", 1000)
    served: list[int] = []

    def serve(ask: Ask) -> Reply:
        served.append(ask.frame.opaque)
        if len(served) == 2:
            desk.peer.pause_writing()  # as asyncio does while that much is written
        return Reply(body=bytes(1000))

    desk = Desk(codec, serve)
    desk.peer.data_received(b"".join(desk.request(number) for number in range(4)))
    assert (served, len(desk.pipe.sent), desk.pipe.reading) == ([0, 1], 2, False)
    desk.turn()
    assert served == [0, 1]
    desk.peer.resume_writing()
    assert served == [0, 1]
    desk.turn()
    assert (served, desk.pipe.reading) == ([0, 1, 2, 3], True)
    assert [answer.opaque for answer in desk.answers()] == [0, 1, 2, 3]


def test_what_is_in_no_file_yet_is_told_to_nobody(codec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqclient.broker.remoting.server.WRITE_BUFFER", 1000)
    desk = Desk(codec, lambda ask: Reply(body=bytes(600)))
    files: Any = Files()
    desk.house.data = files
    desk.peer.data_received(b"".join(desk.request(number) for number in range(4)))
    assert (desk.pipe.sent, files.commits, desk.pipe.reading) == ([], 0, False)
    desk.turn()  # one commit for all that were served; what had no room is served in the next turn
    assert (len(desk.answers()), files.commits) == (2, 1)
    desk.turn()
    assert (len(desk.answers()), desk.pipe.reading) == (4, True)
    files.dirty = files.full = True
    desk.peer.data_received(desk.request(9))
    desk.turn()
    assert (len(desk.answers()), desk.pipe.state) == (4, "cut")


def test_a_large_answer_is_sent_from_where_it_lies(codec: Any) -> None:
    parts = [bytes(200_000), b"x" * 200_000]
    desk = Desk(codec, lambda ask: Reply(body=parts))
    desk.peer.data_received(desk.request(7))
    (answer,) = desk.answers()
    assert (answer.opaque, answer.body) == (7, b"".join(parts))


def test_a_request_that_the_guard_stops_is_not_served(codec: Any) -> None:
    served: list[int] = []

    def guard(ask: Ask) -> None:
        if ask.text("who", "") != "friend":
            raise Refused(16, "go away", by="guard")

    desk = Desk(codec, lambda ask: served.append(ask.frame.opaque), guard)
    desk.peer.data_received(desk.request(1) + desk.request(2, fields={"who": "friend"}))
    (refused,) = desk.answers()
    assert (refused.opaque, refused.code, refused.remark, refused.fields) == (1, 16, "go away", {"by": "guard"})
    assert served == [2]


@pytest.mark.parametrize(
    ("fields", "remark"),
    [
        ({"queueId": 0}, "the field topic is missing"),
        ({"topic": "TBW102"}, "the field queueId is missing"),
        (ASK | {"queueId": "seven"}, 'For input string: "seven"'),
        (ASK | {"queueId": 1 << 63}, f'For input string: "{1 << 63}"'),
        (ASK | {"queueId": "9" * 5000}, f'For input string: "{"9" * 5000}"'),
    ],
    ids=["no topic", "no queue", "a word", "too large", "too long"],
)
def test_fields_that_are_missing_or_no_numbers_are_named(raw: Raw, fields: dict[str, Any], remark: str) -> None:
    answer = raw.ask(Request.GET_MAX_OFFSET, **fields)
    assert (answer.code, answer.remark) == (1, remark)


def test_options_are_read_and_written_as_lines() -> None:
    text = b"# a comment\r\n a = b \nexpression=x=y\nnothing\nempty=\n"
    options = read_properties(text)
    assert options == {"a": "b", "expression": "x=y", "empty": ""}
    assert write_properties(options) == b"a=b\nempty=\nexpression=x=y\n"
    assert read_properties(write_properties(options)) == options


def test_many_requests_in_one_write_are_all_answered(raw: Raw) -> None:
    opaques = [raw.tell(Request.GET_MAX_OFFSET, **ASK) for _ in range(100)]
    assert [raw.answer(opaque).code for opaque in reversed(opaques)] == [0] * 100


def test_kinds() -> None:
    assert [kind_of(11), kind_of(9999)] == ["PULL_MESSAGE", "9999"]


def test_members_are_asked_and_heard_or_given_up(connect: Connect, broker: EmbeddedBroker) -> None:
    member, lost, admin = connect(), connect(), connect()
    info: dict[str, Any] = {"consumerGroup": "asked"}
    member.heartbeat("here@1", "asked", {"TBW102": 1})
    lost.heartbeat("lost@1", "asked", {"TBW102": 1})
    member.pushed(Request.NOTIFY_CONSUMER_IDS_CHANGED)
    heard = admin.tell(Request.GET_CONSUMER_RUNNING_INFO, **info, clientId="here@1")
    member.respond(member.pushed(Request.GET_CONSUMER_RUNNING_INFO), 0, b"fine")
    assert admin.answer(heard).body == b"fine"
    silent = admin.tell(Request.GET_CONSUMER_RUNNING_INFO, **info, clientId="here@1")
    member.pushed(Request.GET_CONSUMER_RUNNING_INFO)
    broker.control.move_clock(11)
    assert admin.answer(silent).code == 207
    gone = admin.tell(Request.GET_CONSUMER_RUNNING_INFO, **info, clientId="lost@1")
    lost.pushed(Request.GET_CONSUMER_RUNNING_INFO)
    lost.close()
    assert admin.answer(gone).code == 207


def test_a_server_answers_in_the_form_of_headers_that_it_was_given(codec: Any) -> None:
    with ExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker(doors=["rocketmq"], impl=codec, serializeType="ROCKETMQ"))
        raw = stack.enter_context(Raw(codec.remoting, broker.addresses()["broker-a"]))
        for asked_in in (0, 1):
            answer = raw.answer(raw.tell(Request.GET_MAX_OFFSET, serialize=asked_in, **ASK))
            assert (answer.serialize, answer.code, answer.field("offset")) == (1, 0, "0")
        raw.heartbeat("me@1", "binary", {"TBW102": 1})
        assert raw.pushed(Request.NOTIFY_CONSUMER_IDS_CHANGED).serialize == 1
    with pytest.raises(ConfigError, match="JSON, ROCKETMQ"):
        EmbeddedBroker(doors=["rocketmq"], impl=codec, serializeType="XML")
