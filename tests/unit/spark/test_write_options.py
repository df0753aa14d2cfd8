"""What a sink can be asked for: spellings, what options say of all rows, and mistakes that name the cure."""

from __future__ import annotations

import pytest

from mqclient.errors import ConfigError
from mqclient.spark import write_options as table
from mqclient.spark.write_options import canonical, check_columns, write_options

ROCKETMQ = {"nameServer": "a:1", "topic": "t"}
PULSAR = {"serviceUrl": "pulsar://a:1", "topic": "t"}


def test_what_options_say_of_all_rows() -> None:
    given = {
        "tags": "paid",
        "key": "k",
        "queueId": "3",
        "delay": "1.5",
        "properties": '{"a": "b"}',
        "TRACKING": "false",
    }
    asked = write_options({**ROCKETMQ, **given}, table.ROCKETMQ_SINK, "mq-rocketmq")
    assert asked.fixed == {"tag": "paid", "key": "k", "queue": 3, "delaySeconds": 1.5, "properties": {"a": "b"}}
    assert not asked.tracking
    asked = write_options({**PULSAR, "queue": "2", "deliveryGuarantee": "exactly-once"}, table.PULSAR_SINK, "mq-pulsar")
    assert (asked.fixed, asked.exactly_once, asked.tracking) == ({"partition": 2}, True, True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"queue": "-1"}, "option queue='-1' is not a whole number"),
        ({"delayLevel": "x"}, "option delayLevel='x' is not a whole number"),
        ({"delaySeconds": "soon"}, "option delaySeconds='soon' is not a number of seconds"),
        ({"delaySeconds": "nan"}, "is not a number of seconds"),
        ({"properties": "[1]"}, "is not a JSON object of texts"),
        ({"properties": "{"}, "is not a JSON object of texts"),
        ({"properties": '{"a": 1}'}, "is not a JSON object of texts"),
        ({"tracking": "yes"}, "neither true nor false"),
        ({"maxInFlightBytes": "0"}, "not a whole number above 0"),
        ({"deliveryGuarantee": "exactly-once"}, "no option 'deliveryGuarantee'"),
        ({"nameServer": ""}, 'needs .option("nameServer", …)'),
    ],
)
def test_mistakes_in_options(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        write_options({**ROCKETMQ, **given}, table.ROCKETMQ_SINK, "mq-rocketmq")
    assert message in str(caught.value)


def test_a_guarantee_that_nobody_gives() -> None:
    with pytest.raises(ConfigError, match="'at-least-once' or 'exactly-once'"):
        write_options({**PULSAR, "deliveryGuarantee": "atMostOnce"}, table.PULSAR_SINK, "mq-pulsar")


def test_columns_have_other_spellings() -> None:
    names = ["Value", "TAGS", "keys", "headers", "queueid", "delay"]
    assert list(canonical(names, table.ROCKETMQ_COLUMNS, "f")) == [
        *("value", "tag", "key", "properties", "queue", "delaySeconds")
    ]
    assert list(canonical(["partition"], table.ROCKETMQ_COLUMNS, "f")) == ["queue"]
    assert list(canonical(["queue"], table.PULSAR_COLUMNS, "f")) == ["partition"]


@pytest.mark.parametrize(
    ("fields", "topic", "message"),
    [
        ([("value", "string"), ("colour", "string")], "t", "cannot write a column 'colour'"),
        ([("value", "string"), ("colour", "string")], "t", '.drop("colour")'),
        ([("value", "string"), ("tagg", "string")], "t", "Did you mean 'tag'?"),
        ([("value", "string"), ("tag", "string"), ("tags", "string")], "t", "'tag' and 'tags' are the same"),
        ([("value", "int")], "t", "as string or binary, not as int: cast it"),
        ([("key", "string")], "t", "needs a column 'value'"),
        ([("value", "binary")], "", "or a column 'topic'"),
        ([("value", "binary"), ("delay", "int"), ("deliverAt", "timestamp")], "t", "by delaySeconds and deliverAt"),
    ],
)
def test_what_a_sink_cannot_take(fields: list[tuple[str, str]], topic: str, message: str) -> None:
    asked = write_options({**ROCKETMQ, "topic": topic}, table.ROCKETMQ_SINK, "mq-rocketmq")
    with pytest.raises(ConfigError) as caught:
        check_columns(fields, table.ROCKETMQ_COLUMNS, asked, "mq-rocketmq")
    assert message in str(caught.value)


def test_an_option_decides_between_columns_that_delay() -> None:
    asked = write_options({**ROCKETMQ, "delayLevel": "3"}, table.ROCKETMQ_SINK, "mq-rocketmq")
    fields = [("value", "binary"), ("delay", "int"), ("deliverAt", "timestamp")]
    check_columns(fields, table.ROCKETMQ_COLUMNS, asked, "mq-rocketmq")
