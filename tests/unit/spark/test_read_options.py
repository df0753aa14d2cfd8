"""What a source can be asked for: topics, positions, filters, limits, and mistakes that name the cure."""

from __future__ import annotations

import json
import pickle

import pytest

from mqclient.errors import ConfigError
from mqclient.spark.read_options import (
    PULSAR_SOURCE,
    ROCKETMQ_SOURCE,
    TIME,
    ReadOptions,
    read_options,
    time_of,
)

GIVEN = {"nameServer": "127.0.0.1:9876", "topic": "orders"}


def read(**given: str) -> ReadOptions:
    wanted = {**GIVEN, **given}
    return read_options({name: text for name, text in wanted.items() if text}, ROCKETMQ_SOURCE, "mq-rocketmq")


def test_defaults() -> None:
    found = read()
    assert (found.access.address, found.topics, found.start, found.end) == (
        "127.0.0.1:9876",
        ("orders",),
        None,
        "latest",
    )
    assert (found.fail_on_data_loss, found.properties, found.batch_rows, found.max_records) == (
        True,
        True,
        10_000,
        None,
    )
    assert (found.expression, found.sql, found.group, found.limits, found.push_filters) == ("*", False, None, (), False)


def test_case_and_aliases_do_not_matter() -> None:
    given = {"namesrv": "a:1", "SUBSCRIBE": "one, two", "includeheaders": "FALSE", "STARTINGOFFSETS": "Latest"}
    found = read_options(given, ROCKETMQ_SOURCE, "mq-rocketmq")
    assert (found.access.address, found.topics, found.properties, found.start) == (
        "a:1",
        ("one", "two"),
        False,
        "latest",
    )


def test_topics_by_pattern_and_by_assignment() -> None:
    assert (read(topic="", subscribePattern="orders-.*").pattern, read(topic="", topicPattern="o.*").topics) == (
        "orders-.*",
        (),
    )
    assigned = {"b": [0, 1], "a": {"broker-a": [2]}}
    found = read(topic="", assign=json.dumps(assigned))
    assert (found.topics, found.assign) == (("a", "b"), assigned)


def test_positions() -> None:
    assert read(startingOffsets='{"orders": {"a": {"0": 1}}}').start == {"orders": {"a": {"0": 1}}}
    assert read(startingTimestamp="1970-01-01T00:00:02Z").start == {TIME: 2000}
    assert read(endingTimestamp="3000").end == {TIME: 3000}
    by_topic = read(startingOffsetsByTimestamp='{"orders": "1970-01-01T00:00:02Z", "a": 5}').start
    assert by_topic == {TIME: {"a": 5, "orders": 2000}}
    assert by_topic is not None
    assert (time_of(by_topic, "orders"), time_of(by_topic, "x"), time_of({TIME: 7}, "x"), time_of("latest", "x")) == (
        2000,
        None,
        7,
        None,
    )


def test_filters() -> None:
    assert (read(tag="paid || void").expression, read(tag="paid").sql) == ("paid || void", False)
    assert (read(sql="n > 3").expression, read(sql="n > 3").sql) == ("n > 3", True)
    assert read(filterExpression="n > 3", filterType="sql92").sql
    assert not read(filterExpression="paid").sql


def test_limits_are_named_for_sparks_that_lack_them() -> None:
    found = read(maxOffsetsPerTrigger="5", maxBytesPerTrigger="100")
    assert (found.max_per_trigger, found.max_bytes) == (5, 100)
    assert found.limits == ("maxOffsetsPerTrigger", "maxBytesPerTrigger")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"startingOfsets": "x"}, "no option 'startingOfsets'. Did you mean 'startingOffsets'?"),
        ({"topic": " , "}, 'needs .option("topic"'),
        ({"topicPattern": "a"}, "assign, not topic and topicPattern together"),
        ({"topic": "", "topicPattern": "(a"}, "topicPattern='(a' is no regular expression"),
        ({"topic": "", "assign": "x"}, "assign='x' is not of the form"),
        ({"topic": "", "assign": '{"a": []}'}, "is not of the form"),
        ({"topic": "", "assign": '{"a": ["0"]}'}, "is not of the form"),
        ({"topic": "", "assign": "{}"}, "is not of the form"),
        ({"startingOffsets": "latest", "startingTimestamp": "5"}, "startingOffsets and startingTimestamp: one of them"),
        ({"endingOffsetsByTimestamp": "5"}, "is not of the form"),
        ({"endingOffsetsByTimestamp": '{"a": "b"}'}, "'b' is no time"),
        ({"tag": "a", "sql": "b"}, "options sql and tag: a topic is filtered by one of them"),
        ({"filterExpression": "a", "filterType": "REGEX"}, "filterType='REGEX': it is TAG or SQL92"),
        ({"token": "x"}, "has no option 'token'"),
        ({"accessKey": "x"}, "options accessKey and secretKey go together"),
    ],
)
def test_mistakes(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(**given)
    assert message in str(caught.value)


def test_nothing_that_travels_shows_a_secret() -> None:
    given = {"serviceUrl": "pulsar://a:1", "topic": "t", "token": "hush"}
    found = read_options(given, PULSAR_SOURCE, "mq-pulsar")
    assert "hush" not in repr(found)
    assert pickle.loads(pickle.dumps(found)).access.reveal("token") == "hush"
    with pytest.raises(ConfigError, match="has no option 'sql'"):
        read_options({**given, "sql": "x"}, PULSAR_SOURCE, "mq-pulsar")
