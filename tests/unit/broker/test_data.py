"""A data folder: tables and logs that are there again."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mqclient._impl import select
from mqclient.broker.data import Data
from mqclient.broker.store import Log
from mqclient.broker.watched import Watched
from mqclient.errors import ConfigError


class Keeper:
    """One owner with a table and logs."""

    def __init__(self, folder: Path, owner: str = "tests", **options: Any) -> None:
        self.data = Data(folder, select("pure").digest, **options)
        self.owner = owner
        self.table: Watched[Any, Any] = Watched()
        self.logs: dict[Any, Log] = {}
        self.data.shelf(owner, self.logs.__setitem__)
        self.data.keep(owner, "table", self.table)

    def open(self) -> Keeper:
        self.data.open()
        return self

    def log(self, key: Any) -> Log:
        log = self.logs[key] = Log()
        self.data.track(self.owner, key, log)
        return log

    def again(self) -> Keeper:
        """As after SIGKILL: what was not written is gone."""
        folder, lock = self.data.folder, self.data._lock
        assert lock is not None
        lock.release()
        return Keeper(folder, self.owner).open()


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    return Keeper(tmp_path / "new" / "folder").open()


def records(log: Log) -> list[bytes]:
    return [bytes(log.record(number)) for number in range(log.first, log.next)]


def test_what_was_committed_is_there_again(keeper: Keeper) -> None:
    keeper.table["a"] = 1
    keeper.table["gone"] = 2
    keeper.table["b", 3] = {"deep": [1, None]}
    log = keeper.log(("orders", 0))
    for number in range(3):
        log.append(b"record %d" % number, 1000 + number, -number)
    keeper.data.commit()
    assert not keeper.data.dirty
    del keeper.table["gone"]
    log.append(b"one more", 2000, 7)
    keeper.data.commit()
    log.append(b"never told", 3000)
    keeper.table["c"] = 9
    again = keeper.again()
    assert again.table == {"a": 1, ("b", 3): {"deep": [1, None]}}
    (found,) = again.logs.values()
    assert list(again.logs) == [("orders", 0)]
    assert records(found) == [b"record 0", b"record 1", b"record 2", b"one more"]
    assert [(found.time(number), found.mark(number)) for number in range(4)] == [
        (1000, 0),
        (1001, -1),
        (1002, -2),
        (2000, 7),
    ]


def test_it_goes_on_where_it_was(keeper: Keeper) -> None:
    keeper.log("a").append(b"one", 1)
    keeper.data.commit()
    for text in (b"two", b"three"):
        keeper = keeper.again()
        keeper.logs["a"].append(text, 2)
        keeper.log(text.decode()).append(text, 2)
        keeper.data.commit()
    keeper.data.close()
    again = Keeper(keeper.data.folder).open()
    assert {key: records(log) for key, log in again.logs.items()} == {
        "a": [b"one", b"two", b"three"],
        "two": [b"two"],
        "three": [b"three"],
    }


def test_a_turn_is_kept_whole_or_not_at_all(keeper: Keeper) -> None:
    keeper.table["a"] = 1
    keeper.log("x").append(b"before", 1)
    keeper.data.commit()
    (path,) = keeper.data.folder.glob("*.mqdata")
    size = path.stat().st_size
    keeper.table["a"] = 2
    keeper.logs["x"].append(b"after", 1)
    keeper.log("y").append(b"after", 1)
    keeper.data.commit()
    for cut in range(size, path.stat().st_size):
        copy = keeper.data.folder / f"copy-{cut}"
        copy.mkdir()
        (copy / path.name).write_bytes(path.read_bytes()[:cut])
        again = Keeper(copy).open()
        assert again.table == {"a": 1}
        assert {key: records(log) for key, log in again.logs.items()} == {"x": [b"before"]}
        again.data.close()


def test_files_go_when_no_log_needs_them(keeper: Keeper) -> None:
    keeper.data.file_size = 1000
    keeper.table["kept"] = "for ever"
    log = keeper.log("a")
    for number in range(40):
        log.append(b"%0100d" % number, number)
        log.trim(number - 10)
        keeper.data.trimmed(log)
        keeper.data.commit()
    numbers = [int(path.stem) for path in keeper.data.folder.glob("*.mqdata")]
    assert len(numbers) < 6
    assert min(numbers) > 1
    again = keeper.again()
    assert again.table == {"kept": "for ever"}
    assert (again.logs["a"].first, again.logs["a"].next) == (29, 40)
    assert records(again.logs["a"]) == [b"%0100d" % number for number in range(29, 40)]


def test_a_log_that_was_emptied_keeps_its_numbers(keeper: Keeper) -> None:
    keeper.data.file_size = 1
    log = keeper.log("a")
    log.append(b"x", 1)
    keeper.data.commit()
    log.trim(1)
    keeper.data.trimmed(log)
    keeper.data.commit()
    keeper.table["a"] = 1
    keeper.data.commit()
    again = keeper.again()
    assert (again.logs["a"].first, again.logs["a"].next) == (1, 1)


def test_a_dropped_log_is_gone(keeper: Keeper) -> None:
    for key in ("a", "b"):
        keeper.log(key).append(b"x", 1)
    keeper.data.commit()
    keeper.logs["a"].append(b"y", 1)
    keeper.data.drop(keeper.logs["a"])
    keeper.data.drop(Log())  # never heard of
    keeper.data.commit()
    assert list(keeper.again().logs) == ["b"]


def test_the_number_of_a_dropped_log_is_not_given_again(keeper: Keeper) -> None:
    """Its records may still be in a file."""
    for number in range(3):
        log = keeper.log("old")
        log.append(b"old %d" % number, 1)
        log.append(b"more", 1)
        keeper.data.commit()
        keeper.data.drop(log)
        keeper.data.commit()
        del keeper.logs["old"]
        keeper = keeper.again()
    keeper.log("new").append(b"new", 1)
    keeper.data.commit()
    assert {key: records(log) for key, log in keeper.again().logs.items()} == {"new": [b"new"]}


def test_records_may_be_forgotten_before_they_were_written(keeper: Keeper) -> None:
    """Retention may come between a record and its turn's end."""
    log = keeper.log("a")
    log.append(b"0", 1)
    keeper.data.commit()
    for first in (2, 5):
        while log.next < 5:
            log.append(b"%d" % log.next, 1)
        log.trim(first)
        keeper.data.trimmed(log)
        keeper.data.commit()
        again = keeper.again()
        assert (again.logs["a"].first, again.logs["a"].next) == (first, 5)
        assert records(again.logs["a"]) == [b"%d" % number for number in range(first, 5)]
        keeper, log = again, again.logs["a"]


def test_records_before_tracking_are_kept_too(keeper: Keeper) -> None:
    log = Log()
    log.append(b"early", 1)
    keeper.data.track(keeper.owner, "early", log)
    keeper.data.commit()
    assert records(keeper.again().logs["early"]) == [b"early"]


def test_a_failed_write_is_tried_again(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    log = keeper.log("a")
    log.append(b"x", 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "writev", full)
        with pytest.raises(OSError, match="No space"):
            keeper.data.commit()
    assert keeper.data.dirty
    log.append(b"y", 1)
    keeper.data.commit()
    assert records(keeper.again().logs["a"]) == [b"x", b"y"]


def test_what_nobody_waits_for_is_written_at_the_turns_end(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def turn() -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    loop = asyncio.new_event_loop()
    keeper.table["before"] = 0
    keeper.data.attach(loop)
    loop.run_until_complete(turn())
    assert not keeper.data.dirty
    log = keeper.log("a")
    loop.run_until_complete(turn())
    log.append(b"x", 1)
    loop.run_until_complete(turn())
    assert not keeper.data.dirty
    keeper.table["a"] = 1
    with monkeypatch.context() as patch:
        patch.setattr(os, "lseek", _fail)
        with caplog.at_level(logging.ERROR, "mqclient.broker"):
            loop.run_until_complete(turn())
    assert "not written: " in caplog.text
    loop.close()
    keeper.data.close()
    assert keeper.table == Keeper(keeper.data.folder).open().table == {"before": 0, "a": 1}


def _fail(*_: object) -> None:
    raise OSError(5, "Input/output error")


def test_with_fsync_every_commit_and_new_file_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for name in ("writev", "fdatasync", "fsync"):
        real = getattr(os, name)

        def noted(*given: Any, name: str = name, real: Any = real) -> Any:
            calls.append(name)
            return real(*given)

        monkeypatch.setattr(os, name, noted)
    keeper = Keeper(tmp_path, fsync=True).open()
    calls.clear()
    keeper.table["a"] = 1
    keeper.data.commit()
    assert calls == ["writev", "fdatasync"]
    keeper.data.commit()  # nothing to do
    keeper.data.file_size = 1
    keeper.table["a"] = 2
    keeper.data.commit()
    assert calls[2:] == ["writev", "writev", "fdatasync", "fsync", "writev", "fdatasync"]


def test_it_may_be_opened_again_if_nobody_had_it_meanwhile(keeper: Keeper) -> None:
    keeper.log("a").append(b"one", 1)
    keeper.data.close()
    keeper.data.close()
    keeper.data.open()
    keeper.logs["a"].append(b"two", 1)
    keeper.data.close()
    other = Keeper(keeper.data.folder).open()
    assert records(other.logs["a"]) == [b"one", b"two"]
    other.table["b"] = 1
    other.data.close()
    with pytest.raises(ConfigError, match="changed meanwhile"):
        keeper.data.open()


def test_what_nobody_here_keeps_is_not_thrown_away(keeper: Keeper) -> None:
    keeper.table["a"] = 1
    keeper.data.close()
    with pytest.raises(ConfigError, match=r"also holds tests: start it with"):
        Keeper(keeper.data.folder, "others").open()
    assert Keeper(keeper.data.folder).open().table == {"a": 1}


def test_missing_records_are_told(keeper: Keeper) -> None:
    keeper.data.file_size = 1
    log = keeper.log("a")
    for number in range(3):
        log.append(b"%d" % number, 1)
        keeper.data.commit()
    keeper.data.close()
    paths = sorted(keeper.data.folder.glob("*.mqdata"))
    paths[1].unlink()
    with pytest.raises(ConfigError, match="misses the records"):
        Keeper(keeper.data.folder).open()


def test_single_records_blocks_and_tables_may_come_in_any_order(keeper: Keeper) -> None:
    random, expected = Random(7), dict[str, list[bytes]]()
    for turn in range(300):
        for key in random.sample("abc", random.choice((1, 1, 1, 2))):
            log = keeper.logs.get(key) or keeper.log(key)
            for number in range(random.choice((1, 1, 1, 4))):
                log.append(b"%d of %d" % (number, turn), 1000 + turn, turn)
                expected.setdefault(key, []).append(b"%d of %d" % (number, turn))
        if random.random() < 0.1:
            keeper.table[turn] = turn
        keeper.data.commit()
    again = keeper.again()
    assert {key: records(log) for key, log in again.logs.items()} == expected
    for key, log in again.logs.items():
        before = keeper.logs[key]
        assert [(log.time(at), log.mark(at)) for at in range(log.next)] == [
            (before.time(at), before.mark(at)) for at in range(before.next)
        ]
    assert again.table == keeper.table
