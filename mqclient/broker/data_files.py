"""Owns the files of a data folder: frames with a checksum, appended to numbered files; a torn tail is cut off.

A file is `MAGIC` and frames: `mqfr`, the size of the payload and its CRC-32C (little-endian), the payload. What a
payload says is the business of `data.py`; here it is all or nothing.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from struct import Struct
from types import ModuleType
from typing import Final

from mqclient.errors import ConfigError

LOG = logging.getLogger("mqclient.broker")

MAGIC: Final = b"mqclient data 1 " + sys.byteorder[:1].encode() + bytes(15)
FRAME: Final = Struct("<4sII")
MARK: Final = b"mqfr"
MOST_BUFFERS: Final = 512
SUFFIX: Final = ".mqdata"
AT_ONCE: Final = 1 << 20
"""Bytes that are read before their frames are handed on: memory is used again, and new memory costs much."""

Buffer = bytes | bytearray | memoryview
Checksum = Callable[[Buffer, int], int]


class File:
    """One file, open for appending."""

    __slots__ = ("_checksum", "descriptor", "number", "path", "size")

    def __init__(self, path: Path, number: int, size: int, checksum: Checksum) -> None:
        self.path = path
        self.number = number
        self.size = size
        """Up to where its frames are whole."""
        self._checksum = checksum
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)

    def append(self, parts: Sequence[Buffer]) -> None:
        """Write one frame; whatever fails, what was there before stays as it is, and this may be tried again."""
        size = checksum = 0
        for part in parts:
            size += len(part)
            checksum = self._checksum(part, checksum)
        try:
            os.lseek(self.descriptor, self.size, os.SEEK_SET)
            _write(self.descriptor, [FRAME.pack(MARK, size, checksum), *parts])
        except OSError:
            os.ftruncate(self.descriptor, self.size)
            raise
        self.size += FRAME.size + size

    def sync(self) -> None:
        getattr(os, "fdatasync", os.fsync)(self.descriptor)

    def close(self) -> None:
        os.close(self.descriptor)


class Files:
    """The files of one folder, of which the last grows."""

    def __init__(self, folder: Path, digest: ModuleType) -> None:
        self._folder = folder
        self._digest = digest
        self.last: File | None = None

    def numbers(self) -> list[int]:
        return sorted(int(path.stem) for path in self._folder.glob(f"*{SUFFIX}") if path.stem.isdigit())

    def read(self) -> Iterator[tuple[int, list[bytes]]]:
        """All payloads there are, many at once, with the number of their file. The last file is then ready for more."""
        numbers = self.numbers()
        for number in numbers:
            path = self._path(number)
            size = path.stat().st_size
            end = yield from _frames(path, number, size, self._digest)
            if end < size and number != numbers[-1]:
                text = (
                    f"the data file {str(path)!r} is damaged at byte {end} of {size}, and others follow it: put back "
                )
                raise ConfigError(text + "a whole copy, or remove the files behind it to go on with what is before")
            if end < size:
                LOG.warning("%s: the last %d bytes were not written whole: cut off at byte %d", path, size - end, end)
                os.truncate(path, end)
            if number == numbers[-1]:
                self.last = self._open(number, end)

    def resume(self, number: int, size: int) -> None:
        """Go on where we stopped."""
        if self.numbers()[-1:] != [number] or self._path(number).stat().st_size != size:
            text = f"the data folder {str(self._folder)!r} was changed meanwhile: make a new EmbeddedBroker of it"
            raise ConfigError(text)
        self.last = self._open(number, size)

    def grow(self) -> File:
        """Go on in a new file."""
        numbers = self.numbers()
        number = numbers[-1] + 1 if numbers else 1
        if self.last is not None:
            self.last.close()
        self.last = self._open(number, 0)
        return self.last

    def remove(self, number: int) -> None:
        self._path(number).unlink()

    def sync_folder(self) -> None:
        """So that the name of a new file outlives the machine, too."""
        if hasattr(os, "O_DIRECTORY"):
            descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def close(self) -> None:
        if self.last is not None:
            self.last.close()
            self.last = None

    def _open(self, number: int, size: int) -> File:
        file = File(self._path(number), number, size, self._digest.crc32c)
        if size == 0:
            _write(file.descriptor, [MAGIC])
            file.size = len(MAGIC)
        return file

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:08d}{SUFFIX}"


def _frames(path: Path, number: int, size: int, digest: ModuleType) -> Generator[tuple[int, list[bytes]], None, int]:
    """The payloads of its whole frames, many at once, with the file's number; then where the last of them ends."""
    end = len(MAGIC)
    if size < end:
        return 0
    with path.open("rb", buffering=0) as file:
        if file.read(end) != MAGIC:
            text = f"{str(path)!r} is no data file of this version of mqclient, or from another kind of machine"
            raise ConfigError(text)
        content = b""
        while more := file.read(max(AT_ONCE, len(content))):
            content += more
            payloads, whole = digest.split_frames(content, MARK)
            if payloads:
                end += whole
                content = content[whole:]
                yield number, payloads
    return end


def _write(descriptor: int, parts: Sequence[Buffer]) -> None:
    """All of it, by as few calls as it takes."""
    if not hasattr(os, "writev"):
        left = [memoryview(b"".join(parts))]
    else:
        left = [memoryview(part).cast("B") for part in parts if len(part)]
    while left:
        written = os.writev(descriptor, left[:MOST_BUFFERS]) if hasattr(os, "writev") else os.write(descriptor, left[0])
        while left and written >= len(left[0]):
            written -= len(left.pop(0))
        if written:
            left[0] = left[0][written:]
