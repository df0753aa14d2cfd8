"""Service URLs, topic names, positions."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.pulsar.names import ServiceUrl, TopicName, position, service_url


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("pulsar://a", (("a", 6650),)),
        ("pulsar://a:1,b:2,c", (("a", 1), ("b", 2), ("c", 6650))),
        ("pulsar+ssl://a", (("a", 6651),)),
        ("pulsar://[::1]:7000/path", (("::1", 7000),)),
    ],
)
def test_service_urls(text: str, hosts: tuple[tuple[str, int], ...]) -> None:
    url = ServiceUrl.parse(text)
    assert url.hosts == hosts
    assert [url.address(attempt, None).port for attempt in range(len(hosts))] == [port for _, port in hosts]
    assert url.address(len(hosts), None) == url.address(0, None)


@pytest.mark.parametrize(
    "text", ["a:6650", "kafka://a", "pulsar://", "pulsar://a:b", "pulsar://a:70000", "pulsar://a,"]
)
def test_wrong_urls_say_what_is_right(text: str) -> None:
    with pytest.raises(ConfigError, match="service URL"):
        ServiceUrl.parse(text)


def test_topic_names_in_full() -> None:
    assert str(TopicName.parse("x")) == "persistent://public/default/x"
    assert str(TopicName.parse("persistent://t/n/x")) == "persistent://t/n/x"
    assert str(TopicName.parse("t/n/x")) == "persistent://t/n/x"
    topic = TopicName.parse("non-persistent://t/n/x-partition-12")
    assert (topic.partition, topic.persistent) == (12, False)
    assert TopicName.parse("x").partition == -1
    assert TopicName.parse("x").partitioned(3).partition == 3


@pytest.mark.parametrize("text", ["", "a/b", "persistent://a", "kafka://a/b/c", "a//c", "persistent://a/b/c/d/e"])
def test_wrong_topic_names(text: str) -> None:
    with pytest.raises(ConfigError, match="topic"):
        TopicName.parse(text)


def test_positions(codec: Any) -> None:
    assert position(5) == 5
    assert position(datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc)) == 1000
    message_id = codec.pulsar.MessageId(1, 2)
    assert position(message_id) is message_id
    wrong: Any
    for wrong in ("5", True, None, datetime(2020, 1, 1)):
        with pytest.raises(ConfigError):
            position(wrong)


def test_without_a_url_the_environment_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULSAR_SERVICE_URL", raising=False)
    with pytest.raises(ConfigError, match=r"pulsar://host:6650, or set PULSAR_SERVICE_URL"):
        service_url(None)
    monkeypatch.setenv("PULSAR_SERVICE_URL", "pulsar://a")
    assert service_url(None) == "pulsar://a"
    assert service_url("pulsar://b") == "pulsar://b"
