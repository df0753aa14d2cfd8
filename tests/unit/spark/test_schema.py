"""Which columns a read gives, and what is said about others."""

from __future__ import annotations

import pytest

from mqclient.errors import ConfigError
from mqclient.spark.read_options import ROCKETMQ_SOURCE, read_options
from mqclient.spark.schema import PULSAR, ROCKETMQ, check_fields, ddl


def shown(**given: str) -> str:
    wanted = {"nameServer": "a:1", "topic": "t", **given}
    return ddl(ROCKETMQ, read_options(wanted, ROCKETMQ_SOURCE, "mq-rocketmq"), "mq-rocketmq")


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
