"""Frames: cutting a byte stream into commands, making commands, and the three calls that touch a descriptor."""

from __future__ import annotations

import errno
import select
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from struct import pack, unpack_from
from typing import TYPE_CHECKING, Final, final, overload

from mqclient._pure.parked import look_after
from mqclient.errors import ConfigError, ProtocolError

from .header import JSON, ROCKETMQ, Header, decode_header, encode_binary, encode_json

if TYPE_CHECKING:
    from typing_extensions import Buffer

MAX_FRAME: Final = 16 * 1024 * 1024
WOULD_BLOCK: Final = -errno.EAGAIN
READ_SIZE: Final = 256 * 1024
MOST_BUFFERS: Final = 64
RESPONSE: Final = 1  # bits of `flag`
ONEWAY: Final = 2
DONTWAIT: Final[int] = getattr(socket, "MSG_DONTWAIT", 0)


@final
class Frame:
    """One command, read-only."""

    __slots__ = ("_body", "_form", "_header")

    def __init__(self, header: Header, form: int, body: bytes) -> None:
        self._header = header
        self._form = form
        self._body = body

    @property
    def code(self) -> int:
        return self._header.code

    @property
    def flag(self) -> int:
        return self._header.flag

    @property
    def opaque(self) -> int:
        return self._header.opaque

    @property
    def version(self) -> int:
        return self._header.version

    @property
    def language(self) -> str:
        return self._header.language

    @property
    def remark(self) -> str | None:
        return self._header.remark

    @property
    def serialize(self) -> int:
        return self._form

    @property
    def body(self) -> bytes:
        return self._body

    @property
    def fields(self) -> dict[str, str]:
        return self._header.fields

    @property
    def is_response(self) -> bool:
        return bool(self._header.flag & RESPONSE)

    @property
    def is_oneway(self) -> bool:
        return bool(self._header.flag & ONEWAY)

    @overload
    def field(self, name: str) -> str | None: ...
    @overload
    def field(self, name: str, default: str) -> str: ...
    @overload
    def field(self, name: str, default: None) -> str | None: ...
    def field(self, name: str, default: str | None = None) -> str | None:
        """One ext field."""
        return self._header.fields.get(name, default)

    def pick(self, names: tuple[str, ...]) -> tuple[str | None, ...]:
        """Several ext fields, at most eight: their values in order, None for what is not there."""
        if len(names) > 8:
            raise ConfigError(f"{len(names)} fields at once: eight are allowed")
        return tuple(map(self._header.fields.get, names))

    def __repr__(self) -> str:
        kind = "response" if self.is_response else "request"
        return f"<Frame {kind} code={self.code} opaque={self.opaque} body={len(self._body)} bytes>"


@final
class FrameReader:
    """Cuts a byte stream into frames; stops, with `.error` set, at bytes that are none."""

    __slots__ = ("_buffer", "_error", "_max_frame", "_vacancy", "last_borrow")

    look_after = staticmethod(look_after)

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self._max_frame = max_frame
        self._buffer = bytearray()
        self._error: ProtocolError | None = None
        self.last_borrow = 0.0
        self._vacancy = memoryview(b"")

    @property
    def error(self) -> ProtocolError | None:
        return self._error

    @property
    def pending(self) -> int:
        """Bytes of a frame that is not yet complete."""
        return len(self._buffer)

    def feed(self, data: Buffer) -> list[Frame]:
        """Take what was read; give every frame that is now complete."""
        frames: list[Frame] = []
        if self._error is None:
            self._buffer += data
            try:
                self._cut(frames)
            except ProtocolError as error:
                self._error = error
                self._buffer = bytearray()
        return frames

    def _cut(self, frames: list[Frame]) -> None:
        buffer = self._buffer
        start = 0
        try:
            while len(buffer) - start >= 4:
                end = start + 4 + self._checked_size(start)
                if len(buffer) < end:
                    break
                frames.append(_frame(bytes(memoryview(buffer)[start + 4 : end])))
                start = end
        finally:
            del buffer[:start]

    def _checked_size(self, start: int) -> int:
        size: int = unpack_from(">i", self._buffer, start)[0]
        if not 4 <= size <= self._max_frame - 4:
            raise ProtocolError(f"frame of {size} bytes; from 4 to {self._max_frame - 4} are allowed")
        return size

    def receive_into(self, fd: int) -> tuple[list[Frame], int]:
        """One non-blocking recv; the frames that it completed and the bytes received, 0, or -errno."""
        try:
            with _borrowed(fd) as sock:
                data = sock.recv(READ_SIZE, DONTWAIT)
        except OSError as error:
            return [], -(error.errno or errno.EIO)
        return self.feed(data), len(data)

    def vacancy(self) -> memoryview:
        """Where bytes may be received; good until `filled`, which must be called next."""
        if not self._vacancy:
            self._vacancy = memoryview(bytearray(READ_SIZE))
        return self._vacancy

    def filled(self, count: int) -> list[Frame]:
        """So many bytes came into the vacancy; every frame that is now complete."""
        if not 0 <= count <= len(self._vacancy):
            raise ConfigError(f"{count} bytes cannot have come, there is room for {len(self._vacancy)}")
        data, self._vacancy = self._vacancy[:count], memoryview(b"")  # else each idle connection would hold one
        return self.feed(data)

    def wait(self, fd: int, ms: int, bell: int = -1) -> int:
        """0 once there is something to receive; `WOULD_BLOCK` after `ms`, or when only the bell is readable."""
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if bell >= 0:
            poll.register(bell, select.POLLIN)
        try:
            ready = poll.poll(None if ms < 0 else ms)
        except OSError as error:
            return -(error.errno or errno.EIO)
        return 0 if any(one != bell for one, _ in ready) else WOULD_BLOCK

    def wait_into(self, fd: int, ms: int) -> tuple[list[Frame], int]:
        """`wait`, then as `receive_into`."""
        ready = self.wait(fd, ms)
        return ([], ready) if ready else self.receive_into(fd)


def send_now(fd: int, buffers: Sequence[Buffer], /) -> int:
    """One non-blocking gathering send: bytes sent, or -errno."""
    try:
        with _borrowed(fd) as sock:
            return sock.sendmsg(buffers[:MOST_BUFFERS], (), DONTWAIT | getattr(socket, "MSG_NOSIGNAL", 0))
    except OSError as error:
        return -(error.errno or errno.EIO)


@contextmanager
def _borrowed(fd: int) -> Iterator[socket.socket]:
    """The descriptor as a socket that does not close it; family and type are named so that nothing is asked."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=fd)
    try:
        yield sock
    finally:
        sock.detach()


def _frame(data: bytes) -> Frame:
    mark: int = unpack_from(">I", data)[0]
    form, end = mark >> 24, 4 + (mark & 0xFFFFFF)
    if end > len(data):
        raise ProtocolError(f"header of {end - 4} bytes in a frame of {len(data)}")
    return Frame(decode_header(form, data[4:end]), form, data[end:])


# ----------------------------------------------------------------------------------------------------------- encode


def encode_frame(
    code: int,
    opaque: int,
    *,
    flag: int = 0,
    fields: Mapping[str, str] | None = None,
    body: Buffer | Sequence[Buffer] = b"",
    remark: str | None = None,
    language: str = "PYTHON",
    version: int = 479,
    serialize: int = JSON,
    behind: int = 0,
) -> bytes:
    """Any command, with its fields in the order given."""
    for name, number in (("code", code), ("opaque", opaque), ("flag", flag), ("version", version)):
        if not -(2**31) <= number < 2**31:
            raise ConfigError(f"{name} {number} is no 32-bit integer")
    header = Header(code, language, version, opaque, flag, remark, {})
    if serialize == JSON:
        head = encode_json(header, fields)
    elif serialize == ROCKETMQ:
        head = encode_binary(header, fields)
    else:
        raise ConfigError(f"header form {serialize} is not known")
    content = b"".join(body) if isinstance(body, (list, tuple)) else bytes(memoryview(body))  # type: ignore[arg-type]
    if behind < 0:
        raise ConfigError(f"{behind} bytes behind a frame")
    size = 4 + len(head) + len(content) + behind
    if size + 4 > MAX_FRAME:
        raise ConfigError(f"frame of {size + 4} bytes; peers take {MAX_FRAME}")
    return b"".join((pack(">II", size, serialize << 24 | len(head)), head, content))


def encode_send(
    opaque: int,
    group: str,
    topic: str,
    queue_id: int,
    properties: Buffer,
    body: Buffer,
    *,
    born_at: int,
    code: int = 310,
    sys_flag: int = 0,
    flag: int = 0,
    reconsume_times: int = 0,
    max_reconsume_times: int | None = None,
    unit_mode: bool = False,
    batch: bool = False,
    broker: str = "",
    default_topic: str = "TBW102",
    default_queues: int = 4,
    oneway: bool = False,
    extra: Mapping[str, str] | None = None,
    language: str = "PYTHON",
    version: int = 479,
    serialize: int = JSON,
    behind: int = 0,
) -> bytes:
    """SEND_MESSAGE_V2, a batch or a reply, with the short field names."""
    fields = {
        "a": group,
        "b": topic,
        "c": default_topic,
        "d": str(default_queues),
        "e": str(queue_id),
        "f": str(sys_flag),
        "g": str(born_at),
        "h": str(flag),
        "i": _text(properties),
        "j": str(reconsume_times),
        "k": "true" if unit_mode else "false",
    }
    if max_reconsume_times is not None:
        fields["l"] = str(max_reconsume_times)
    fields["m"] = "true" if batch else "false"
    if broker:
        fields["n"] = broker
    fields.update(extra or {})
    mark = ONEWAY if oneway else 0
    return encode_frame(
        code,
        opaque,
        flag=mark,
        fields=fields,
        body=body,
        language=language,
        version=version,
        serialize=serialize,
        behind=behind,
    )


def _text(properties: Buffer) -> str:
    try:
        return bytes(properties).decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"properties are no UTF-8: {error.reason} at {error.start}") from error


def encode_pull(
    opaque: int,
    group: str,
    topic: str,
    queue_id: int,
    offset: int,
    *,
    max_messages: int = 32,
    sys_flag: int = 0,
    commit_offset: int = 0,
    suspend_ms: int = 0,
    subscription: str | None = None,
    sub_version: int = 0,
    expression_type: str | None = None,
    max_bytes: int | None = None,
    broker: str = "",
    code: int = 11,
    extra: Mapping[str, str] | None = None,
    language: str = "PYTHON",
    version: int = 479,
    serialize: int = JSON,
) -> bytes:
    """PULL_MESSAGE or LITE_PULL_MESSAGE."""
    fields = {
        "consumerGroup": group,
        "topic": topic,
        "queueId": str(queue_id),
        "queueOffset": str(offset),
        "maxMsgNums": str(max_messages),
        "sysFlag": str(sys_flag),
        "commitOffset": str(commit_offset),
        "suspendTimeoutMillis": str(suspend_ms),
    }
    if subscription is not None:
        fields["subscription"] = subscription
    fields["subVersion"] = str(sub_version)
    if expression_type is not None:
        fields["expressionType"] = expression_type
    if max_bytes is not None:
        fields["maxMsgBytes"] = str(max_bytes)
    if broker:
        fields["bname"] = broker
    fields.update(extra or {})
    return encode_frame(code, opaque, fields=fields, language=language, version=version, serialize=serialize)
