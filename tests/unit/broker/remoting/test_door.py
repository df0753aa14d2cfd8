"""RocketMQ's front door: a port each, options by both names, every family in the table."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from mqclient.broker.broker import House
from mqclient.broker.control import Clock, Control
from mqclient.broker.remoting.door import make
from mqclient.rocketmq.codes import Request


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


def test_the_table_holds_what_the_stories_need(codec: Any) -> None:
    table = make(house(codec)).services[0]._table()
    wanted = {
        10,
        11,
        14,
        15,
        17,
        25,
        26,
        29,
        30,
        31,
        32,
        33,
        34,
        35,
        36,
        37,
        38,
        41,
        42,
        46,
        200,
        203,
        215,
        222,
        223,
        307,
        310,
        320,
        361,
    }
    assert {Request(code) for code in wanted} == set(table)
