"""Options: spellings, kinds of values, secrets, and mistakes that name the cure."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from mqclient.errors import ConfigError
from mqclient.spark.options import Option, Secret, Values, milliseconds

TABLE = (
    Option("nameServer", ("namesrv",)),
    Option("topic", ("subscribe",)),
    Option("batchRows", default="10"),
    Option("strict", default="true"),
    Option("offsets"),
    Option("moment"),
    *(Option("token" + kind) for kind in ("", "File", "Env")),
)


def values(**given: str) -> Values:
    return Values(given, TABLE, "mq-test")


def test_case_and_aliases_do_not_matter() -> None:
    found = values(namesrv="a:1", SUBSCRIBE="one, two", BATCHROWS="7", checkpointLocation="x", queryName="y")
    assert (found.address(TABLE), found.names("topic"), found.number("batchRows")) == ("a:1", ("one", "two"), 7)
    assert ("topic" in found, "tag" in found) == (True, False)


def test_defaults_and_what_is_not_given() -> None:
    found = values()
    assert (found.number("batchRows"), found.flag("strict"), found.position("offsets"), found.time("moment")) == (
        10,
        True,
        None,
        None,
    )
    assert (found.names("topic"), found.get("topic"), found.secret()) == ((), None, None)


def test_positions_and_times() -> None:
    assert values(offsets="Earliest").position("offsets") == "earliest"
    assert values(offsets='{"t": 1}').position("offsets") == {"t": 1}
    assert values(moment="1500").time("moment") == 1500
    assert milliseconds("2026-01-31T09:30:00+01:00", "x") == milliseconds("2026-01-31T08:30:00", "x")


@pytest.mark.parametrize(
    ("given", "ask", "message"),
    [
        ({"nameServr": "x"}, "", "format mq-test has no option 'nameServr'. Did you mean 'nameServer'?"),
        ({"zzz": "x"}, "", "no option 'zzz'. It has: nameServer, topic, "),
        ({"nameServer": ""}, "address", 'format mq-test needs .option("nameServer"'),
        ({"batchRows": "many"}, "number batchRows", "batchRows='many' is not a whole number above 0"),
        ({"batchRows": "0"}, "number batchRows", "is not a whole number above 0"),
        ({"strict": "maybe"}, "flag strict", "neither true nor false"),
        ({"offsets": "[1]"}, "position offsets", 'neither "earliest", "latest" nor a JSON object'),
        ({"offsets": "soon"}, "position offsets", 'neither "earliest", "latest" nor a JSON object'),
        ({"moment": "yesterday"}, "time moment", "option moment: 'yesterday' is no time: milliseconds since 1970"),
        ({"token": "a", "tokenEnv": "B"}, "secret", "of token, tokenFile and tokenEnv one is enough"),
    ],
)
def test_mistakes(given: dict[str, str], ask: str, message: str) -> None:
    kind, _, name = ask.partition(" ")
    with pytest.raises(ConfigError) as caught:
        getattr(Values(given, TABLE, "mq-test"), kind)(*([name] if name else [TABLE] if kind == "address" else []))
    assert message in str(caught.value)


def test_secrets_are_not_shown_and_found_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = values(token="hush").secret()
    assert found is not None
    assert "hush" not in repr(found)
    assert pickle.loads(pickle.dumps(found)).reveal("token") == "hush"
    assert found == Secret("", "hush")
    assert len({found, Secret("", "hush"), Secret("Env", "hush")}) == 2
    (tmp_path / "token").write_text("from file\n")
    assert Secret("File", str(tmp_path / "token")).reveal("token") == "from file"
    with pytest.raises(ConfigError, match=r"option tokenFile: it is read where .* here on .*nothing"):
        Secret("File", str(tmp_path / "nothing")).reveal("token")
    monkeypatch.setenv("TOKEN_OF_TEST", "from env")
    assert Secret("Env", "TOKEN_OF_TEST").reveal("token") == "from env"
    monkeypatch.delenv("TOKEN_OF_TEST")
    with pytest.raises(ConfigError, match=r"option passwordEnv: .* no variable 'TOKEN_OF_TEST'.*spark.executorEnv"):
        Secret("Env", "TOKEN_OF_TEST").reveal("password")
