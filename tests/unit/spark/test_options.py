"""Options: spellings, defaults, and mistakes that name the cure."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from mqclient.errors import ConfigError
from mqclient.spark import options
from mqclient.spark.options import ReadOptions, Secret, read_options, write_options

GIVEN = {"nameServer": "127.0.0.1:9876", "topic": "orders"}


def read(**given: str) -> ReadOptions:
    return read_options({**GIVEN, **given}, options.ROCKETMQ_SOURCE, "mq-rocketmq")


def test_defaults() -> None:
    found = read()
    assert (found.address, found.topics, found.start, found.end) == ("127.0.0.1:9876", ("orders",), None, "latest")
    assert (found.fail_on_data_loss, found.properties, found.batch_rows, found.max_records) == (
        True,
        True,
        10_000,
        None,
    )


def test_case_and_aliases_do_not_matter() -> None:
    given = {"namesrv": "a:1", "SUBSCRIBE": "one, two", "includeheaders": "FALSE", "STARTINGOFFSETS": "Latest"}
    found = read_options(given, options.ROCKETMQ_SOURCE, "mq-rocketmq")
    assert (found.address, found.topics, found.properties, found.start) == ("a:1", ("one", "two"), False, "latest")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"startingOfsets": "x"}, "no option 'startingOfsets'. Did you mean 'startingOffsets'?"),
        ({"zzz": "x"}, "no option 'zzz'. It has: nameServer, topic, "),
        ({"topic": " , "}, 'needs .option("topic"'),
        ({"nameServer": ""}, 'needs .option("nameServer"'),
        ({"arrowBatchRows": "many"}, "arrowBatchRows='many' is not a whole number above 0"),
        ({"maxRecordsPerPartition": "0"}, "is not a whole number above 0"),
        ({"failOnDataLoss": "maybe"}, "neither true nor false"),
        ({"endingOffsets": "[1]"}, 'neither "earliest", "latest" nor a JSON object'),
        ({"token": "x"}, "has no option 'token'"),
    ],
)
def test_mistakes(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(**given)
    assert message in str(caught.value)


def test_offsets_as_json() -> None:
    assert read(startingOffsets='{"orders": {"a": {"0": 1}}}').start == {"orders": {"a": {"0": 1}}}


def test_secrets_are_not_shown_and_found_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"serviceUrl": "pulsar://a:1", "topic": "t"}
    found = read_options({**given, "token": "hush"}, options.PULSAR_SOURCE, "mq-pulsar")
    assert "hush" not in repr(found)
    assert found.token is not None
    assert pickle.loads(pickle.dumps(found)).token.reveal() == "hush"
    assert found.token == Secret("", "hush")
    assert len({found.token, Secret("", "hush"), Secret("Env", "hush")}) == 2
    (tmp_path / "token").write_text("from file\n")
    assert Secret("File", str(tmp_path / "token")).reveal() == "from file"
    monkeypatch.setenv("TOKEN_OF_TEST", "from env")
    assert Secret("Env", "TOKEN_OF_TEST").reveal() == "from env"
    monkeypatch.delenv("TOKEN_OF_TEST")
    with pytest.raises(ConfigError, match="no such variable"):
        Secret("Env", "TOKEN_OF_TEST").reveal()
    with pytest.raises(ConfigError, match="one is enough"):
        read_options({**given, "token": "a", "tokenEnv": "B"}, options.PULSAR_SOURCE, "mq-pulsar")


def test_what_a_sink_is_asked_for() -> None:
    found = write_options({**GIVEN, "tag": "paid"}, options.ROCKETMQ_SINK, "mq-rocketmq")
    assert write_options({**GIVEN, "checkpointLocation": "x", "queryName": "y"}, options.ROCKETMQ_SINK, "f") is not None
    assert (found.topic, found.tag, found.in_flight, found.tracking) == ("orders", "paid", 16 << 20, False)
