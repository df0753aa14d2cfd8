"""Connections: bad bytes, faults, requests that nobody knows, pushes to who is gone."""

from __future__ import annotations

import asyncio
import logging
from contextlib import ExitStack
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.broker.remoting.server import Peer, kind_of
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
