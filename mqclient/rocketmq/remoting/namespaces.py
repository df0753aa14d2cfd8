"""Owns a namespace's names (v1): `shop%orders` on the wire, `orders` everywhere else.

Requests are wrapped just before they leave and answers stripped as they come in, so nobody else knows of a namespace:
what waits, logs, files and people see are the short names. Brokers see what Java clients with `setNamespace` send.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from struct import Struct
from typing import Any, Final

from mqclient.errors import ConfigError
from mqclient.rocketmq.codes import Request

PREFIXES: Final = ("%RETRY%", "%DLQ%")
SYSTEM: Final = frozenset(
    {"TBW102", "SCHEDULE_TOPIC_XXXX", "BenchmarkTest", "TRANS_CHECK_MAX_TIME_TOPIC", "SELF_TEST_TOPIC"}
)
SYSTEM_PREFIXES: Final = ("rmq_sys_", "RMQ_SYS_", "OFFSET_MOVED_EVENT", "CID_RMQ_SYS_")
REPLIES: Final = "_REPLY_TOPIC"
"""Each cluster has one topic for the replies to all."""
FIELDS: Final = frozenset({"topic", "originTopic", "group", "consumerGroup", "producerGroup", "srcGroup", "destGroup"})
SENDS: Final = frozenset({Request.SEND_MESSAGE_V2, Request.SEND_BATCH_MESSAGE, Request.SEND_REPLY_MESSAGE_V2})
"""These have short names for their fields, and a body that is the user's."""
_KEYS: Final = re.compile(rb'"(topic|group|groupName|consumerGroup|producerGroup)":"([^"\\]*)"')
_NAME: Final = re.compile(r"[0-9a-zA-Z_-]+")
_ENDPOINT: Final = re.compile(r"(?:\w+://)?(MQ_INST_\w+_\w+)\..+")
_MAGIC: Final = {-626843481: 1, -626843477: 2}
"""Of a stored message: how many bytes the length of its topic takes."""
_HEAD: Final = Struct(">ii")
_LENGTH: Final = (Struct(">B"), Struct(">H"))
_FLAGS: Final = Struct(">36xi")


def of_endpoint(name_servers: Any) -> str | None:
    """The namespace that a cloud's address names: `http://MQ_INST_123_abc.mq.example.com:80`."""
    texts = [name_servers] if isinstance(name_servers, str) else list(name_servers)
    match = _ENDPOINT.match(str(texts[0]).strip()) if texts else None
    return None if match is None else match[1]


class Names:
    """Wraps and strips the names of one namespace."""

    __slots__ = ("_in_json", "_in_properties", "_prefix", "namespace")

    def __init__(self, namespace: str) -> None:
        if not isinstance(namespace, str) or not _NAME.fullmatch(namespace):
            raise ConfigError(f"namespace={namespace!r}: a-z A-Z 0-9 _ - are allowed")
        self.namespace = namespace
        self._prefix = f"{namespace}%"
        prefix = re.escape(self._prefix.encode())
        self._in_json = re.compile(rb'("(?:%RETRY%|%DLQ%)?|@)' + prefix)
        self._in_properties = re.compile(
            rb"((?:^|\x02)(?:RETRY_TOPIC|REAL_TOPIC|PGROUP|DLQ_ORIGIN_TOPIC)\x01(?:%RETRY%|%DLQ%)?)" + prefix
        )

    def wrap(self, name: str) -> str:
        """As brokers know it; names of the system and wrapped ones stay.

        >>> Names("shop").wrap("orders"), Names("shop").wrap("%RETRY%billing")
        ('shop%orders', '%RETRY%shop%billing')
        """
        head, rest = _split(name)
        if not rest or rest in SYSTEM or rest.startswith((self._prefix, *SYSTEM_PREFIXES)) or rest.endswith(REPLIES):
            return name
        return f"{head}{self._prefix}{rest}"

    def strip(self, name: str) -> str:
        """As users know it.

        >>> Names("shop").strip("%DLQ%shop%billing"), Names("shop").strip("other%orders")
        ('%DLQ%billing', 'other%orders')
        """
        head, rest = _split(name)
        return head + rest.removeprefix(self._prefix)

    # ---- out

    def request(self, code: int, fields: dict[str, str], body: bytes) -> bytes:
        """Wrap the fields in place; the body as it is to leave."""
        group = fields.get("consumerGroup", "")
        for name in FIELDS & fields.keys():
            fields[name] = self._popped(fields[name], group) or self.wrap(fields[name])
        if code in SENDS:
            fields.update(a=self.wrap(fields["a"]), b=self.wrap(fields["b"]), i=self._sent(fields.get("i", "")))
            return body
        return self.body(body)

    def body(self, body: bytes) -> bytes:
        """One that we wrote."""
        return _KEYS.sub(self._wrapped, body) if body[:1] == b"{" else body

    def _popped(self, topic: str, group: str) -> str:
        """The retry topic of a group that pops, `%RETRY%group_topic`, is made of two names."""
        for mark in "_+":
            head = f"{PREFIXES[0]}{group}{mark}"
            if group and topic.startswith(head):
                return f"{PREFIXES[0]}{self.wrap(group)}{mark}{self.wrap(topic.removeprefix(head))}"
        return ""

    def _sent(self, properties: str) -> str:
        """The producer group of a transaction is asked for by its whole name."""
        parts = [part.partition("\x01") for part in properties.split("\x02") if part]
        kept = [f"{name}\x01{self.wrap(value) if name == 'PGROUP' else value}" for name, _, value in parts]
        return "\x02".join([*kept, f"INSTANCE_ID\x01{self.namespace}", ""])

    def _wrapped(self, match: re.Match[bytes]) -> bytes:
        return b'"%s":"%s"' % (match[1], self.wrap(match[2].decode()).encode())

    # ---- in

    def stripped(self, remoting: Any, frame: Any) -> Any:
        """The same frame with short names; itself if it holds none."""
        fields = dict(frame.fields)
        changed = {name: self.strip(fields[name]) for name in FIELDS & fields.keys()}
        body = bytes(frame.body)
        plain = self.arrived(body) if frame.code != Request.PUSH_REPLY_MESSAGE_TO_CLIENT else body
        if plain == body and all(fields[name] == value for name, value in changed.items()):
            return frame
        (made,) = remoting.FrameReader().feed(
            remoting.encode_frame(
                frame.code,
                frame.opaque,
                flag=frame.flag,
                fields={**fields, **changed},
                body=plain,
                remark=frame.remark,
                language=frame.language,
                version=frame.version,
                serialize=frame.serialize,
            )
        )
        return made

    def arrived(self, body: bytes) -> bytes:
        """A body that a broker wrote: JSON, stored messages, or what holds no names."""
        if body[:1] in (b"{", b"["):
            return self._in_json.sub(rb"\1", body)
        if len(body) < _HEAD.size or _HEAD.unpack_from(body)[1] not in _MAGIC:
            return body
        records, at = [], 0
        while at < len(body):
            record = self._record(body, at)
            if record is None:  # cut off or broken: the decoder says so
                records.append(body[at:])
                break
            records.append(record)
            at += _HEAD.unpack_from(body, at)[0]
        return b"".join(records)

    def _record(self, body: bytes, at: int) -> bytes | None:
        """One stored message with the names that users know; None if it is none."""
        if len(body) - at < _FLAGS.size:
            return None
        size, magic = _HEAD.unpack_from(body, at)
        width, end = _MAGIC.get(magic, 0), at + size
        if not width or end > len(body) or size < _FLAGS.size:
            return None
        sys_flag = _FLAGS.unpack_from(body, at)[0]
        # hosts of 8 or 20 bytes, times, attempts, and the transaction's offset stand before the body
        place = at + 40 + (20 if sys_flag & 0x10 else 8) + 8 + (20 if sys_flag & 0x20 else 8) + 12 + 8
        return None if place + 4 > end else self._named(body, at, place, end, width)

    def _named(self, body: bytes, at: int, place: int, end: int, width: int) -> bytes | None:
        after = place + 4 + int.from_bytes(body[place : place + 4], "big")
        start = after + width
        if start > end:
            return None
        topic_end = start + _LENGTH[width - 1].unpack_from(body, after)[0]
        if topic_end + 2 > end:
            return None
        topic = self.strip(body[start:topic_end].decode("utf-8", "replace")).encode()
        properties = self._in_properties.sub(rb"\1", body[topic_end + 2 : end])
        size = start - at + len(topic) + 2 + len(properties)
        head = size.to_bytes(4, "big") + body[at + 4 : after] + _LENGTH[width - 1].pack(len(topic)) + topic
        return head + len(properties).to_bytes(2, "big") + properties


def _split(name: str) -> tuple[str, str]:
    """The prefix of a retry or dead-letter topic, and the rest."""
    for prefix in PREFIXES:
        if name.startswith(prefix):
            return prefix, name.removeprefix(prefix)
    return "", name


def names_of(namespace: str | None, name_servers: Any) -> Names | None:
    """What was asked for, or what the address says; None: there is no namespace."""
    found = namespace if namespace is not None else of_endpoint(name_servers)
    return None if found is None else Names(found)


def encoded(names: Names | None, body: bytes) -> bytes:
    """The body of an answer of ours."""
    return body if names is None else names.body(body)


def wrapped_keys(names: Names | None, table: Mapping[str, Any]) -> dict[str, Any]:
    """A table by topic, as brokers are told it."""
    return dict(table) if names is None else {names.wrap(topic): value for topic, value in table.items()}
