"""Name servers: the list in every form, the good one remembered, the next one asked."""

from __future__ import annotations

from random import Random

import pytest

from mqclient.errors import ConfigError
from mqclient.rocketmq.remoting.nameserver import NameServers, parse_address, private, split_address, vip


def test_lists_and_texts() -> None:
    assert sorted(NameServers("a:1; b:2;", Random(1)).addresses) == ["a:1", "b:2"]
    assert sorted(NameServers(["a", "[::1]:5"], Random(1)).addresses) == ["[::1]:5", "a:9876"]
    assert str(NameServers("a:1", Random(1))) == "a:1"


@pytest.mark.parametrize("servers", ["", ";", []])
def test_none_names_the_cure(servers: str) -> None:
    with pytest.raises(ConfigError, match="NAMESRV_ADDR"):
        NameServers(servers, Random(1))


def test_only_the_one_that_is_asked_can_fail() -> None:
    servers = NameServers("a:1;b:2;c:3", Random(1))
    first = servers.current
    servers.failed(first)
    second = servers.current
    servers.failed(first)  # told late by a second request
    assert servers.current == second
    servers.failed(second)
    servers.failed(servers.current)
    assert servers.current == first
    assert len(servers) == 3


def test_addresses() -> None:
    assert split_address("[fe80::1]:10911") == ("fe80::1", 10911)
    assert split_address("host") == ("host", 9876)
    assert parse_address(" [::1] ") == "[::1]:9876"
    for wrong in (":1", "host:port", "[]:1"):
        with pytest.raises(ConfigError, match="is no address"):
            split_address(wrong)


def test_a_new_list_keeps_the_one_in_use() -> None:
    servers = NameServers("", Random(1), wanted=False)
    with pytest.raises(ConfigError, match="address server"):
        _ = servers.current
    assert servers.replace(["a:1", "b:2"])
    current = servers.current
    assert not servers.replace(["b:2", "a:1"])
    assert servers.replace(["c:3", current])
    assert servers.current == current
    assert servers.replace(["d:4"])
    assert servers.current == "d:4"


def test_other_forms_and_ports() -> None:
    assert parse_address("http://MQ_INST_1_2.cloud:8080") == "MQ_INST_1_2.cloud:8080"
    assert vip("[::1]:10911") == "[::1]:10909"
    assert [private(text) for text in ("172.17.0.2:10911", "8.8.8.8:1", "broker:1")] == [True, False, False]


@pytest.mark.parametrize("text", ["host:99999", "host:0", "what is this", "host:٣", ":1", "a:1:2"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ConfigError, match="is no address"):
        split_address(text)
