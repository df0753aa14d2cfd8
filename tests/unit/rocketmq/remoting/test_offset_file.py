"""The offset file: Java's format, replaced whole, a slot for each process, the last good one kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mqclient.errors import ProtocolError
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting import offset_file
from mqclient.rocketmq.remoting.offset_file import OffsetFile

QUEUE = MessageQueue("broadcast-test-topic", "broker-a", 7)


def test_what_is_saved_is_loaded_again(tmp_path: Path) -> None:
    file = OffsetFile(str(tmp_path), "host", "audit")
    assert file.load() == ({}, {})
    file.save({QUEUE: 5})
    file.save({QUEUE: 6})
    file.close()
    file.close()
    again = OffsetFile(str(tmp_path), "host", "audit")
    assert again.load() == ({QUEUE: 6}, {})
    assert again.path == tmp_path / "host" / "audit" / "0" / "offsets.json"
    assert again.path.read_text() == (
        '{"offsetTable":{{"brokerName":"broker-a","queueId":7,"topic":"broadcast-test-topic"}:6}}'
    )


def test_the_new_file_is_on_disk_before_it_takes_the_olds_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = OffsetFile(str(tmp_path), "host", "audit")
    file.load()
    file.save({QUEUE: 5})
    steps: list[str] = []
    sync, replace = os.fsync, os.replace

    def synced(number: int) -> None:
        steps.append(f"sync {Path(os.readlink(f'/proc/self/fd/{number}')).name} of {os.fstat(number).st_size > 0}")
        sync(number)

    def replaced(source: Path, target: Path) -> None:
        steps.append(f"{source.name} to {target.name}")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    file.save({QUEUE: 6})
    assert steps == [
        "sync offsets.new of True",
        "offsets.json to offsets.json.bak",
        "offsets.new to offsets.json",
    ]


def test_the_one_before_is_read_when_the_file_is_broken_or_gone(tmp_path: Path) -> None:
    file = OffsetFile(str(tmp_path), "host", "audit")
    file.load()
    file.save({QUEUE: 5})
    file.save({QUEUE: 6})
    file.close()
    assert file.path is not None
    file.path.write_text('{"offsetTab')
    assert OffsetFile(str(tmp_path), "host", "audit").load() == ({QUEUE: 5}, {})
    file.path.unlink()
    assert OffsetFile(str(tmp_path), "other", "audit").load() == ({}, {})


def test_both_broken_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "host" / "audit" / "0"
    folder.mkdir(parents=True)
    for name in ("offsets.json", "offsets.json.bak"):
        (folder / name).write_text("{{{")
    with pytest.raises(ProtocolError, match="cannot be read"):
        OffsetFile(str(tmp_path), "host", "audit").load()


def test_each_gets_a_slot_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [OffsetFile(str(tmp_path), "host", "audit") for _ in range(3)]
    for file in files:
        file.load()
    assert [file.path.parent.name for file in files if file.path] == ["0", "1", "2"]
    files[1].close()
    again = OffsetFile(str(tmp_path), "host", "audit")
    again.load()
    assert again.path is not None
    assert again.path.parent.name == "1"
    monkeypatch.setattr(offset_file, "SLOTS", 3)
    with pytest.raises(OSError, match="are locked"):
        OffsetFile(str(tmp_path), "host", "audit").load()


def test_the_home_is_the_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = OffsetFile(None, "host", "audit")
    file.load()
    assert file.path == tmp_path / ".rocketmq_offsets" / "host" / "audit" / "0" / "offsets.json"


def test_witnesses_stand_beside_the_offsets(tmp_path: Path) -> None:
    file = OffsetFile(str(tmp_path), "host", "audit")
    file.load()
    file.save({QUEUE: 6}, {QUEUE: (5, 1700000000000)})
    file.close()
    again = OffsetFile(str(tmp_path), "host", "audit")
    assert again.load() == ({QUEUE: 6}, {QUEUE: (5, 1700000000000)})
    again.close()
    assert file.path is not None
    file.path.write_text('{"offsetTable":{},"mqclientStoreTimes":{{"brokerName":"b","queueId":7,"topic":"t"}:"x"}}')
    file.path.with_name("offsets.json.bak").unlink(missing_ok=True)
    with pytest.raises(ProtocolError, match="mqclientStoreTimes"):
        OffsetFile(str(tmp_path), "host", "audit", "0").load()


def test_a_given_slot_is_taken_or_refused(tmp_path: Path) -> None:
    file = OffsetFile(str(tmp_path), "host", "audit", "blue")
    file.load()
    assert file.path == tmp_path / "host" / "audit" / "blue" / "offsets.json"
    with pytest.raises(OSError, match="are locked"):
        OffsetFile(str(tmp_path), "host", "audit", "blue").load()


def test_what_java_left_is_taken_over_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = '{\n\t"offsetTable":{{\n\t\t\t"brokerName":"broker-a",\n\t\t\t"queueId":7,\n\t\t\t'
    table += '"topic":"broadcast-test-topic"\n\t\t}:%d\n\t}\n}'
    for number, (client_id, text) in enumerate(
        [("10.0.0.1@DEFAULT", table % 41), ("10.0.0.2@DEFAULT", table % 42), ("10.0.0.3@DEFAULT", "{{{")]
    ):
        path = tmp_path / client_id / "audit" / "offsets.json"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        os.utime(path, (1000 + number, 1000 + number))
    file = OffsetFile(str(tmp_path), "host", "audit")
    assert file.load() == ({QUEUE: 42}, {})
    assert any("is passed over" in record.getMessage() for record in caplog.records)
    file.save({QUEUE: 43})
    file.close()
    assert OffsetFile(str(tmp_path), "host", "audit").load() == ({QUEUE: 43}, {})
