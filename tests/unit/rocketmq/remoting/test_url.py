"""A client's address as one text: what it may hold, what counts more, and what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.config import TLS
from mqclient.errors import ConfigError
from mqclient.rocketmq.remoting.client import Options
from mqclient.rocketmq.remoting.url import from_url, merged
from mqclient.rocketmq.signing import acl


@pytest.mark.parametrize(
    ("text", "servers", "options"),
    [
        ("a:9876;b:9876", "a:9876;b:9876", {}),
        ("http://cloud:8080", "http://cloud:8080", {}),
        ("rocketmq://a", "a", {}),
        ("RocketMQ://[::1]:5,b:6", "[::1]:5;b:6", {}),
        ("rocketmq://a:1;b:2/shop/", "a:1;b:2", {"namespace": "shop"}),
        ("rocketmq+ssl://a:1", "a:1", {"tls": TLS()}),
        ("rocketmq://me:p%40ss@a:1", "a:1", {"auth": acl("me", "p@ss")}),
        (
            "rocketmq://a?vip_channel=true&request_timeout=0.5&unit_name=u&allow_relayed_reset=0",
            "a",
            {"vip_channel": True, "request_timeout": 0.5, "unit_name": "u", "allow_relayed_reset": False},
        ),
    ],
)
def test_what_a_text_says(text: str, servers: str, options: dict[str, Any]) -> None:
    assert from_url(text) == (servers, options)
    assert Options.of(options)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pulsar://a:6650", r"mqclient\.pulsar\.Client takes it"),
        ("kafka://a", "rocketmq:// is"),
        ("rocketmq://a?vip_chanel=true", "did you mean 'vip_channel'"),
        ("rocketmq://a?colour=red", "there are address_server"),
        ("rocketmq://a?request_timeout=soon", "no number"),
        ("rocketmq://a?vip_channel=maybe", "true or false"),
        ("rocketmq://me@a:1", "secret key"),
    ],
)
def test_what_is_wrong_with_a_text(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        from_url(text)


def test_a_secret_is_never_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        from_url("kafka://me:swordfish@a:1")
    assert "swordfish" not in str(caught.value)


def test_what_is_given_by_name_counts_more() -> None:
    assert merged("rocketmq://a/shop", {"namespace": "other"}) == ("a", {"namespace": "other"})
    assert merged(["a:1", "b:2"], {"seed": 1}) == (["a:1", "b:2"], {"seed": 1})
