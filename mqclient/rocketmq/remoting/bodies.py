"""Owns the bodies that fastjson writes: JSON with bare keys, objects as keys and references, read and written."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from mqclient.errors import ProtocolError
from mqclient.rocketmq.model import MessageQueue

_BLANK: Final = re.compile(r"\s*")
_BARE: Final = re.compile(r"[^\s,:{}\[\]\"']+")
_DEPTH: Final = 64


def read_body(body: bytes | memoryview) -> Any:
    """The value of a body; an object that is a key becomes a MessageQueue. ProtocolError if it is no JSON at all.

    >>> read_body(b'{"offsetTable":{{"brokerName":"a","queueId":0,"topic":"T"}:5}}')
    {'offsetTable': {MessageQueue(topic='T', broker_name='a', queue_id=0): 5}}
    >>> read_body(b'{"brokerAddrs":{0:"10.0.0.1:10911"}}')
    {'brokerAddrs': {'0': '10.0.0.1:10911'}}
    """
    text = bytes(body).decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except ValueError:
        value = _Parser(text).parse()
    except RecursionError:
        raise ProtocolError("a body is nested too deep") from None
    return _resolve(value, value) if '"$ref"' in text else value


def write_body(value: Any) -> bytes:
    """Compact, keys in the order given; MessageQueue keys as objects, numbers as keys bare, as fastjson does.

    >>> write_body({"offsetTable": {MessageQueue("T", "a", 0): 5}})
    b'{"offsetTable":{{"brokerName":"a","queueId":0,"topic":"T"}:5}}'
    """
    return _write(value).encode()


def queue_object(queue: MessageQueue) -> dict[str, Any]:
    """A queue as it stands inside bodies."""
    return {"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic}


def queue_of(value: Any) -> MessageQueue:
    """A queue out of a body, wherever it stood."""
    if isinstance(value, MessageQueue):
        return value
    try:
        return MessageQueue(str(value["topic"]), str(value["brokerName"]), int(value["queueId"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ProtocolError(f"no queue: {value!r}") from error


def offset_table(value: Any, name: str = "offsetTable") -> dict[MessageQueue, int]:
    """`{"offsetTable": {queue: offset}}`, or the list form that brokers push for CPP's sake."""
    table = value.get(name) if isinstance(value, dict) else None
    try:
        if isinstance(table, list):
            return {queue_of(entry): int(entry["offset"]) for entry in table}
        return {queue_of(queue): int(offset) for queue, offset in (table or {}).items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProtocolError(f"no {name} in the body") from error


def _write(value: Any) -> str:
    if isinstance(value, MessageQueue):
        return json.dumps(queue_object(value), separators=(",", ":"), ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_key(key)}:{_write(item)}" for key, item in value.items() if item is not None) + "}"
    if isinstance(value, (list, tuple, set, frozenset)):
        return "[" + ",".join(map(_write, value)) + "]"
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _key(key: Any) -> str:
    return str(key) if isinstance(key, int) else _write(key)


def _resolve(value: Any, root: Any) -> Any:
    """Put what `{"$ref": "$.a.b[0]"}` names in its place; a reference that leads nowhere becomes None."""
    if isinstance(value, dict):
        path = value.get("$ref")
        if isinstance(path, str) and len(value) == 1:
            return _lookup(path, root)
        return {key: _resolve(item, root) for key, item in value.items()}
    return [_resolve(item, root) for item in value] if isinstance(value, list) else value


def _lookup(path: str, root: Any) -> Any:
    found = root
    try:
        for name, index in re.findall(r"\.([^.\[\]]+)|\[(\d+)\]", path):
            found = found[int(index)] if index else found[name]
    except (KeyError, IndexError, TypeError):
        return None
    return None if isinstance(found, dict) and "$ref" in found else found


class _Parser:
    """Recursive descent over text that the JSON module refuses."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def parse(self) -> Any:
        value = self._value(0)
        self._blank()
        if self._at != len(self._text):
            raise self._wrong("something after the end")
        return value

    def _value(self, depth: int) -> Any:
        if depth > _DEPTH:
            raise self._wrong("nested too deep")
        head = self._peek()
        if head == "{":
            return self._object(depth)
        if head == "[":
            return self._list(depth)
        if head in ("'", '"'):
            return self._string(head)
        return self._bare()

    def _object(self, depth: int) -> dict[Any, Any]:
        self._at += 1
        members: dict[Any, Any] = {}
        while self._peek() != "}":
            key = self._member_key(depth)
            self._take(":")
            members[key] = self._value(depth + 1)
            if self._peek() != "}":
                self._take(",")
        self._at += 1
        return members

    def _member_key(self, depth: int) -> Any:
        if self._peek() == "{":
            return queue_of(self._value(depth + 1))
        key = self._value(depth + 1) if self._peek() in ("'", '"') else self._word()
        if not isinstance(key, str):
            raise self._wrong("a key that is no text")
        return key

    def _list(self, depth: int) -> list[Any]:
        self._at += 1
        items = []
        while self._peek() != "]":
            items.append(self._value(depth + 1))
            if self._peek() != "]":
                self._take(",")
        self._at += 1
        return items

    def _string(self, quote: str) -> str:
        start = self._at
        at = start + 1
        while at < len(self._text) and self._text[at] != quote:
            at += 2 if self._text[at] == "\\" else 1
        if at >= len(self._text):
            raise self._wrong("a text without end")
        self._at = at + 1
        inner = self._text[start + 1 : at]
        if quote == "'":
            inner = inner.replace("\\'", "'").replace('"', '\\"')
        try:
            return str(json.loads(f'"{inner}"', strict=False))
        except ValueError:
            raise self._wrong("a text with a bad escape") from None

    def _word(self) -> str:
        match = _BARE.match(self._text, self._at)
        if match is None:
            raise self._wrong("nothing where a value belongs")
        self._at = match.end()
        return match.group()

    def _bare(self) -> Any:
        word = self._word()
        try:
            return json.loads(word)
        except ValueError:
            return word

    def _peek(self) -> str:
        self._blank()
        return self._text[self._at : self._at + 1]

    def _take(self, mark: str) -> None:
        if self._peek() != mark:
            raise self._wrong(f"{mark!r} is missing")
        self._at += 1

    def _blank(self) -> None:
        match = _BLANK.match(self._text, self._at)
        if match is not None:
            self._at = match.end()

    def _wrong(self, what: str) -> ProtocolError:
        return ProtocolError(f"a body is no JSON: {what} at {self._at}")
