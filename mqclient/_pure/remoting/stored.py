"""The stored form of messages, which brokers keep and answer: one message, and all of a batch send at once."""

from __future__ import annotations

import zlib
from array import array
from struct import error, iter_unpack, pack
from typing import TYPE_CHECKING

from mqclient.errors import ConfigError, ProtocolError

from .batch import address, as_bytes
from .header import utf8
from .messages import elements
from .properties import checked_size, decode_properties

if TYPE_CHECKING:
    from typing_extensions import Buffer


def encode_message(
    body: Buffer,
    topic: str,
    *,
    properties: Buffer = b"",
    queue_id: int = 0,
    flag: int = 0,
    offset: int = 0,
    physical_offset: int = 0,
    sys_flag: int = 0,
    born_at: int = 0,
    born_host: tuple[str, int] = ("127.0.0.1", 0),
    stored_at: int = 0,
    store_host: tuple[str, int] = ("127.0.0.1", 0),
    attempts: int = 0,
    prepared_transaction_offset: int = 0,
) -> bytes:
    """A message as a broker stores and answers it."""
    content, text, name = as_bytes(body), checked_size(as_bytes(properties)), utf8(topic)
    born, store = _host(born_host), _host(store_host)
    sys_flag = sys_flag & ~0x30 | (len(born) > 8) << 4 | (len(store) > 8) << 5
    magic = -626843477 if len(name) > 127 else -626843481
    try:
        head = b"".join(
            (
                pack(">iiii", magic, zlib.crc32(content) & 0x7FFFFFFF, queue_id, flag),
                pack(">qqiq", offset, physical_offset, sys_flag, born_at),
                born,
                pack(">q", stored_at),
                store,
                pack(">iqi", attempts, prepared_transaction_offset, len(content)),
            )
        )
        name = pack(">h" if len(name) > 127 else ">B", len(name)) + name
    except error as cause:
        raise ConfigError(f"a number or the topic does not fit its field: {cause}") from cause
    tail = name + pack(">h", len(text)) + text
    return pack(">i", 4 + len(head) + len(content) + len(tail)) + head + content + tail


def _host(host: tuple[str, int]) -> bytes:
    ip, port = host
    if not -(2**31) <= port < 2**31:
        raise ConfigError(f"port {port} is no 32-bit integer")
    return address(ip) + pack(">i", port)


def store_batch(
    body: Buffer,
    topic: str,
    *,
    queue_id: int = 0,
    offset: int = 0,
    physical_offset: int = 0,
    sys_flag: int = 0,
    born_at: int = 0,
    born_host: tuple[str, int] = ("127.0.0.1", 0),
    stored_at: int = 0,
    store_host: tuple[str, int] = ("127.0.0.1", 0),
) -> tuple[bytes, bytes, bytes]:
    """The messages of a batch body in stored form; where each ends; the code of each one's tag."""
    records: list[bytes] = []
    ends, tags = array("I"), array("i")
    size = 0

    def stored(content: bytes, properties: bytes, flag: int) -> bytes:
        return encode_message(
            content,
            topic,
            properties=properties,
            queue_id=queue_id,
            flag=flag,
            offset=offset + len(records),
            physical_offset=physical_offset + size,
            sys_flag=sys_flag,
            born_at=born_at,
            born_host=born_host,
            stored_at=stored_at,
            store_host=store_host,
        )

    stored(b"", b"", 0)  # what does not fit its field is refused before anything is read
    parts = list(elements(as_bytes(body)))
    for _, flag, content, properties in parts:
        records.append(stored(content, properties, flag))
        size += len(records[-1])
        ends.append(size)
        tags.append(tag_code(properties))
    if not (offset + len(records) < 2**63 and physical_offset + size < 2**63):
        raise ConfigError(f"{len(records)} messages of {size} bytes do not fit, at {offset} and {physical_offset}")
    return b"".join(records), ends.tobytes(), tags.tobytes()


def is_timed(body: Buffer) -> bool:
    """Whether a message of a batch body has a property that holds it back, as far as the body is whole."""
    try:
        for *_, properties in elements(as_bytes(body)):
            if any(entry.startswith((b"DELAY", b"TIMER_DEL")) for entry in properties.split(b"\x02")):
                return True
    except ProtocolError:
        pass
    return False


def tag_code(properties: bytes) -> int:
    """Java's hash of the tag, by which brokers filter; 0 without one."""
    state = 0
    for (unit,) in iter_unpack("<H", decode_properties(properties).get("TAGS", "").encode("utf-16-le")):
        state = 31 * state + unit & 0xFFFFFFFF
    return state - (state >> 31 << 32)
