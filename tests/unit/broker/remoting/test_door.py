"""RocketMQ's front door: a port each, options by both names, every family in the table."""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path
from random import Random
from typing import Any

import mqclient.broker
from mqclient.broker.broker import House
from mqclient.broker.control import Clock, Control
from mqclient.broker.remoting.door import make
from mqclient.rocketmq.codes import SENT_BY_BROKERS, Request


def house(codec: Any, **settings: Any) -> House:
    clock = Clock()
    return House(codec, clock, Control(clock), Random(1), 2, settings)


def test_ports_open_and_close(codec: Any) -> None:
    async def scenario() -> list[dict[str, str]]:
        door = make(house(codec))
        before = door.addresses()
        await door.start("127.0.0.1")
        open_ = door.addresses()
        _, writer = await asyncio.open_connection(*open_["broker-a"].split(":"))
        writer.close()
        await writer.wait_closed()
        await asyncio.sleep(0.05)
        await door.stop()
        return [before, open_]

    before, open_ = asyncio.run(scenario())
    assert before == {}
    assert set(open_) == {"name_server", "broker-a", "broker-b"}
    assert len(set(open_.values())) == 3


def test_settings_are_broker_options(codec: Any) -> None:
    door = make(house(codec, server_side_reset=False, mqcloud_patch=True, maxMessageSize=1024))
    config = door.services[1].broker.config
    assert (config["useServerSideResetOffset"], config["maxMessageSize"]) == ("false", "1024")
    assert "mqcloud_patch" not in config


def test_every_request_is_served_or_stands_among_what_is_skipped(codec: Any) -> None:
    door = make(house(codec))
    served = set(door.services[0]._table()) | set(door.name_server._table)
    skipped = left_out((Path(mqclient.broker.__file__).parent / "SKIPPED.md").read_text(encoding="utf-8"))
    assert not served & skipped, "served, and said to be skipped"
    assert served | skipped == {int(request) for request in Request} - (SENT_BY_BROKERS - served - skipped)


def left_out(text: str) -> set[int]:
    """The codes in the first column of the first table."""
    found: set[int] = set()
    for row in re.findall(r"^\| ([\d, –]+) \|", text, re.MULTILINE):
        for part in row.split(", "):
            first, _, last = part.partition("–")
            found |= {code for code in Request if int(first) <= code <= int(last or first)}
    return found


def test_a_trace_topic_is_made_when_asked_for(codec: Any) -> None:
    for enabled in (True, False):
        door = make(house(codec, traceTopicEnable=enabled))
        assert ("RMQ_SYS_TRACE_TOPIC" in door.services[0].broker.topics) is enabled


def test_the_table_at_the_top_of_each_family_is_what_it_serves() -> None:
    """In code and in words; beside them stand only the requests that a broker sends itself."""
    families = 0
    for path in sorted((Path(mqclient.broker.__file__).parent / "remoting").glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        served = {
            Request[key.attr]
            for function in tree.body
            if isinstance(function, ast.FunctionDef) and function.name == "table"
            for node in ast.walk(function)
            if isinstance(node, ast.Dict)
            for key in node.keys
            if isinstance(key, ast.Attribute)
        }
        rows = re.findall(r"^\| ([\d, ]+) \| ([A-Z_\d, ]+) \|", ast.get_docstring(tree) or "", re.MULTILINE)
        told = {
            Request(int(code)): name
            for codes, names in rows
            for code, name in zip(codes.split(", "), names.split(", "), strict=True)
        }
        families += bool(served)
        for code, name in told.items():  # `_LIST` stands behind the name that it goes on
            assert code.name == name or (name.startswith("_") and code.name.endswith(name)), path.name
        assert served <= told.keys(), path.name
        assert not served or told.keys() - served <= set(SENT_BY_BROKERS), path.name
    assert families > 15
