"""One open socket: the outbox is swapped, written, put back in front; what is left over goes with the link."""

from __future__ import annotations

import errno
import select
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqclient.core.driver import Address
from mqclient.core.link import Link
from mqclient.core.timers import Timers
from mqclient.io.connection import Connection
from mqclient.io.poller import READ, WRITE
from tests.support.certificates import make
from tests.support.echo import EchoReader, frame
from tests.support.fake_driver import World


class Ends:
    """A connection over a socket pair; its link belongs to nobody."""

    def __init__(self, reader: Any = None, send_now: Any = None) -> None:
        driver = World().driver()
        self.link = Link(driver, Timers(driver), self, Address("x", 1), lambda: reader or EchoReader())  # type: ignore[arg-type]
        ours, self.peer = socket.socketpair()
        ours.setblocking(False)
        self.connection = Connection(self.link, send_now)
        self.connection.opened(ours, "peer")


@pytest.fixture
def ends() -> Iterator[Ends]:
    it = Ends()
    yield it
    it.connection.close()
    it.connection.close()
    it.peer.close()


def test_what_is_received_is_cut_into_frames(ends: Ends) -> None:
    assert ends.connection.receive() == ([], -errno.EAGAIN)
    ends.peer.send(frame(1, b"one") + frame(2, b"two")[:5])
    frames, count = ends.connection.receive()
    assert frames == [(1, b"one")]
    assert count == 16
    ends.peer.close()
    assert ends.connection.receive() == ([], 0)


def test_a_partial_write_goes_back_in_front_of_what_came_meanwhile(ends: Ends) -> None:
    ends.link.outbox = [b"a" * 3_000_000, b"b"]
    rest = ends.connection.write(ends.connection.swap())
    assert rest
    ends.link.outbox.append(b"c")
    ends.connection.put_back(rest)
    assert ends.link.outbox_bytes == sum(map(len, rest))
    received = b""
    while len(received) < 3_000_002:
        received += ends.peer.recv(1 << 20)
        ends.connection.put_back(ends.connection.write(ends.connection.swap()))
    assert received == b"a" * 3_000_000 + b"bc"


def test_more_buffers_than_one_call_takes(ends: Ends) -> None:
    assert ends.connection.write([b"%04d" % number for number in range(5_000)]) == []
    received = b""
    while len(received) < 20_000:
        received += ends.peer.recv(1 << 20)
    assert received == b"".join(b"%04d" % number for number in range(5_000))


def test_after_the_link_left_its_last_bytes_are_the_connections_own(ends: Ends) -> None:
    ends.connection.link = None
    ends.connection.final = [b"goodbye"]
    ends.link.outbox = [b"of the next epoch"]
    out = ends.connection.swap()
    assert out == [b"goodbye"]
    ends.connection.put_back(out)
    assert (ends.connection.final, ends.link.outbox) == ([b"goodbye"], [b"of the next epoch"])


def test_an_error_of_writing_is_kept_for_the_reader_thread(ends: Ends) -> None:
    ends.peer.close()
    assert ends.connection.write([b"x"]) == []
    assert isinstance(ends.connection.broken, OSError)


def test_the_mask_says_what_to_watch(ends: Ends) -> None:
    connection = ends.connection
    masks = []
    for connection.borrowed, connection.blocked in ((False, False), (False, True), (True, False), (True, True)):
        masks.append(connection.mask)
    assert masks == [READ, READ | WRITE, 0, WRITE]


def test_the_native_calls_are_used_when_handed_in() -> None:
    class Reader(EchoReader):
        def receive_into(self, fd: int) -> tuple[list[Any], int]:
            return [(9, b"native")], 42

    sent: list[tuple[int, list[Any]]] = []

    def send_now(fd: int, buffers: Any) -> int:
        sent.append((fd, list(buffers)))
        return -errno.EAGAIN if len(sent) > 2 else min(3, sum(map(len, buffers)))

    ends = Ends(Reader(), send_now)
    assert ends.connection.receive() == ([(9, b"native")], 42)
    assert b"".join(ends.connection.write([b"abcd", b"efgh"])) == b"gh"
    assert {fd for fd, _ in sent} == {ends.connection.fd}
    ends.connection.close()
    ends.peer.close()


def answers(*given: int) -> Any:
    """A sending call that takes so much each time."""
    left = list(given)
    return lambda fd, buffers: left.pop(0)


def test_writing_all_gives_the_claim_back_and_what_is_left_goes_back_in_front() -> None:
    ends = Ends(send_now=answers(8, 3, -errno.EAGAIN, -errno.EAGAIN, 5))
    link, connection = ends.link, ends.connection
    assert connection.writes_at_once

    def write(*parts: bytes) -> bool:
        connection.writing = True
        link.outbox, link.outbox_bytes = list(parts), sum(map(len, parts))
        return connection.write_all()

    assert write(b"abcd", b"efgh")
    assert (link.outbox, link.outbox_bytes, connection.writing) == ([], 0, False)
    assert not write(b"abcd", b"efgh")  # three bytes went, then it was full
    assert (b"".join(link.outbox), link.outbox_bytes) == (b"defgh", 5)
    assert (connection.writing, connection.blocked) == (True, True)
    assert not write(b"defgh")  # still full
    assert write(b"defgh")
    connection.link, connection.final = None, [b"bye"]
    connection._send_now = answers(3)
    connection.writing = True
    assert connection.write_all()
    assert connection.final == []
    connection.close()
    ends.peer.close()


def test_writing_all_that_fails_keeps_the_cause_and_the_claim() -> None:
    def interrupted(fd: int, buffers: Any) -> int:
        raise KeyboardInterrupt

    ends = Ends(send_now=answers(-errno.EPIPE))
    ends.connection.writing = True
    ends.link.outbox, ends.link.outbox_bytes = [b"abcd"], 4
    assert not ends.connection.write_all()
    assert isinstance(ends.connection.broken, BrokenPipeError)
    ends.connection._send_now = interrupted
    ends.link.outbox, ends.link.outbox_bytes = [b"abcd"], 4
    with pytest.raises(KeyboardInterrupt):
        ends.connection.write_all()
    assert isinstance(ends.connection.broken, KeyboardInterrupt)  # how much went out is not known
    ends.connection.close()
    ends.peer.close()


def test_half_closing_is_told_and_limits_the_wait(ends: Ends) -> None:
    ends.connection.closing = True
    ends.connection.half_close(until=5.0)
    assert ends.peer.recv(10) == b""
    assert [ends.connection.expired(now) for now in (4.9, 5.0)] == [False, True]


def test_a_reset_is_kept_with_its_number() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
        ends = Ends()
        ends.connection.close()
        ours.setblocking(False)
        ends.connection.opened(ours, "peer")
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        theirs.close()
        select.select([ours], [], [], 5)
        assert ends.connection.receive() == ([], -errno.ECONNRESET)
        causes = [ends.connection.broken]
        ends.connection.broken = None
        ends.connection.half_close(1.0)
        causes.append(ends.connection.broken)
        assert [type(cause) for cause in causes] == [ConnectionResetError, OSError]
        ends.connection.close()


def encrypted_ends(folder: Path) -> tuple[Ends, ssl.SSLSocket]:
    certificates = make(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.certificate, certificates.key)
    here = ssl.create_default_context(cafile=certificates.authority)
    ours, theirs = socket.socketpair()
    served: list[ssl.SSLSocket] = []
    thread = threading.Thread(target=lambda: served.append(context.wrap_socket(theirs, server_side=True)))
    thread.start()
    secure = here.wrap_socket(ours, server_hostname="localhost")
    thread.join(10)
    secure.setblocking(False)
    ends = Ends()
    ends.connection.close()
    ends.connection.opened(secure, "peer")
    return ends, served[0]


def test_all_that_tls_holds_is_read_at_once_and_the_end_is_told_after_it(tmp_path: Path) -> None:
    # The poller sees the socket, not what OpenSSL has decrypted already.
    ends, peer = encrypted_ends(tmp_path)
    bodies = [b"%d" % number * 4_000 for number in range(10)]
    peer.sendall(b"".join(frame(number, body) for number, body in enumerate(bodies)))
    frames: list[Any] = []
    while len(frames) < 10:
        got, count = ends.connection.receive()
        frames += got
        assert count > 0 or count == -errno.EAGAIN
    assert [body for _, body in frames] == bodies
    assert ends.connection.receive() == ([], -errno.EAGAIN)
    peer.sendall(frame(1, b"last"))
    peer.close()
    assert ends.connection.receive()[0] == [(1, b"last")]
    frames, count = ends.connection.receive()
    assert not frames
    assert count in (0, -errno.EPIPE), "OpenSSL 3.6 finds that it cannot write, too"
    ends.connection.close()


def test_what_tls_has_brought_before_an_error_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends, peer = encrypted_ends(tmp_path)
    peer.sendall(frame(1, b"last"))
    sock = ends.connection.sock
    assert sock is not None
    receive = sock.recv_into

    def once(room: bytearray) -> int:
        try:
            return int(receive(room))
        except ssl.SSLWantReadError:
            raise BrokenPipeError(errno.EPIPE, "its own answer could not be written") from None

    monkeypatch.setattr(sock, "recv_into", once)
    assert ends.connection.receive()[0] == [(1, b"last")]
    assert ends.connection.receive() == ([], -errno.EPIPE)
    assert isinstance(ends.connection.broken, BrokenPipeError)
    peer.close()
    ends.connection.close()


def test_a_tls_write_that_blocks_goes_on_with_the_same_bytes(tmp_path: Path) -> None:
    ends, peer = encrypted_ends(tmp_path)
    parts: list[Any] = [b"%07d" % number * 1_000 for number in range(500)]
    whole = b"".join(parts)
    ends.link.outbox = parts
    received = bytearray()
    ends.connection.put_back(ends.connection.write(ends.connection.swap()))
    assert ends.link.outbox, "the socket is full"
    while len(received) < len(whole):
        received += peer.recv(1 << 20)
        ends.connection.put_back(ends.connection.write(ends.connection.swap()))
    assert received == whole
    peer.close()
    ends.connection.close()
