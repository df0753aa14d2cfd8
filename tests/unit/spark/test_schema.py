"""Which columns a read gives, and what is said about others."""

from __future__ import annotations

import pytest

from mqclient.errors import ConfigError
from mqclient.spark import options
from mqclient.spark.options import read_options
from mqclient.spark.schema import PULSAR, ROCKETMQ, ROCKETMQ_SINK, check_fields, check_sink, ddl


def shown(**given: str) -> str:
    wanted = {"nameServer": "a:1", "topic": "t", **given}
    return ddl(ROCKETMQ, read_options(wanted, options.ROCKETMQ_SOURCE, "mq-rocketmq"), "mq-rocketmq")


def test_by_default_and_by_choice() -> None:
    assert shown().startswith("key binary, value binary, topic string, broker string, queue int, offset bigint")
    assert "properties" not in shown(includeProperties="false")
    assert shown(columns="offset, messageId") == "offset bigint, messageId string"


def test_a_column_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match=r"no column 'ofset'. Did you mean 'offset'"):
        shown(columns="ofset")
    with pytest.raises(ConfigError, match="the schema given: mq-pulsar has no column 'queue'"):
        check_fields([("queue", "int")], PULSAR, "mq-pulsar")


def test_a_type_that_it_has_not() -> None:
    check_fields([("value", "binary"), ("offset", "bigint")], ROCKETMQ, "mq-rocketmq")
    with pytest.raises(ConfigError, match="column 'value' of mq-rocketmq is binary, not string"):
        check_fields([("value", "string")], ROCKETMQ, "mq-rocketmq")


@pytest.mark.parametrize(
    ("fields", "topic", "message"),
    [
        ([("valeu", "binary")], "t", "cannot write a column 'valeu'. Did you mean 'value'"),
        ([("zzz", "binary")], "t", r"cannot write a column 'zzz'. It takes: "),
        ([("value", "int")], "t", "writes column 'value' as .*, not as int"),
        ([("key", "string")], "t", "needs a column 'value'"),
        ([("value", "binary")], None, "needs .option..topic"),
    ],
)
def test_what_a_sink_cannot_take(fields: list[tuple[str, str]], topic: str | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_sink(fields, ROCKETMQ_SINK, topic, "mq-rocketmq")


def test_what_a_sink_takes() -> None:
    check_sink([("value", "binary"), ("topic", "string")], ROCKETMQ_SINK, None, "mq-rocketmq")
