"""Files of frames: appended to, read again, cut where they are not whole."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from mqclient._impl import select
from mqclient.broker.data_files import AT_ONCE, MAGIC, Buffer, Files
from mqclient.errors import ConfigError


def fresh(folder: Path) -> Files:
    return Files(folder, select("pure").digest)


def read(folder: Path) -> list[tuple[int, bytes]]:
    files = fresh(folder)
    found = [(number, payload) for number, payloads in files.read() for payload in payloads]
    files.close()
    return found


def write(folder: Path, *frames: Sequence[Buffer]) -> Path:
    files = fresh(folder)
    file = files.grow()
    for frame in frames:
        file.append(frame)
    files.close()
    return file.path


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write(tmp_path, [b"one"], [b"t", b"", memoryview(b"wo")], [b"x"] * 2000)
    write(tmp_path, [b"three"])
    assert read(tmp_path) == [(1, b"one"), (1, b"two"), (1, b"x" * 2000), (2, b"three")]


def test_frames_are_handed_on_before_there_are_too_many(tmp_path: Path) -> None:
    write(tmp_path, [b"y"], [b"x" * AT_ONCE], *[[b"z" * 1000]] * 3000, [b"w"])
    files = fresh(tmp_path)
    found = [[len(payload) for payload in payloads] for _, payloads in files.read()]
    assert list(chain(*found)) == [1, AT_ONCE, *[1000] * 3000, 1]
    assert max(map(sum, found)) <= 3 * AT_ONCE
    assert len(found) > 3
    files.close()


def test_it_goes_on_in_the_last_file(tmp_path: Path) -> None:
    write(tmp_path, [b"one"])
    files = fresh(tmp_path)
    assert [payloads for _, payloads in files.read()] == [[b"one"]]
    assert files.last is not None
    files.last.append([b"two"])
    files.close()
    assert read(tmp_path) == [(1, b"one"), (1, b"two")]


def test_a_tail_torn_at_any_byte_is_cut_with_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path, [b"one"], [b"second"])
    whole = path.read_bytes()
    first = len(MAGIC) + 12 + 3
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        caplog.clear()
        with caplog.at_level(logging.WARNING, "mqclient.broker"):
            found = read(tmp_path)
        assert found == ([(1, b"one")] if size >= first else [])
        is_whole = size in (0, len(MAGIC), first)
        assert len(caplog.records) == (0 if is_whole else 1), size
        assert path.stat().st_size == (first if size >= first else len(MAGIC))
        assert read(tmp_path) == found


@pytest.mark.parametrize("place", [-1, -10, -18])
def test_a_last_frame_with_another_byte_is_cut(tmp_path: Path, place: int) -> None:
    path = write(tmp_path, [b"one"], [b"second"])
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    assert read(tmp_path) == [(1, b"one")]


def test_damage_before_the_last_file_is_told_and_nothing_is_touched(tmp_path: Path) -> None:
    path = write(tmp_path, [b"one"], [b"second"])
    write(tmp_path, [b"three"])
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(ConfigError, match=r"damaged at byte 47 of 64, and others follow"):
        read(tmp_path)
    assert path.stat().st_size == 64


def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "00000001.mqdata").write_bytes(b"#" * 100)
    with pytest.raises(ConfigError, match="is no data file of this version"):
        read(tmp_path)


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = fresh(tmp_path)
    file = files.grow()
    file.append([b"one"])

    def full(descriptor: int, parts: list[Any]) -> int:
        os.write(descriptor, b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "writev", full)
        with pytest.raises(OSError, match="No space"):
            file.append([b"two"])
    file.append([b"three"])
    files.close()
    assert read(tmp_path) == [(1, b"one"), (1, b"three")]


def test_short_writes_are_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "writev", lambda descriptor, parts: os.write(descriptor, bytes(parts[0])[:3]))
    write(tmp_path, [b"0123456789", b"abc"])
    monkeypatch.undo()
    assert read(tmp_path) == [(1, b"0123456789abc")]


def test_files_go_and_are_resumed(tmp_path: Path) -> None:
    write(tmp_path, [b"one"])
    path = write(tmp_path, [b"two"])
    files = fresh(tmp_path)
    files.remove(1)
    files.sync_folder()
    files.resume(2, path.stat().st_size)
    assert files.last is not None
    files.last.append([b"more"])
    files.last.sync()
    files.close()
    assert read(tmp_path) == [(2, b"two"), (2, b"more")]
    with pytest.raises(ConfigError, match="was changed meanwhile"):
        files.resume(2, 1)
