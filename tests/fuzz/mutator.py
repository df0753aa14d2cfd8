"""Makes new inputs from recorded ones, knowing what they are made of: lengths in front of blocks, and checksums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

LARGEST = 8192
"""Longer seeds are cut: what a decoder does in its second kilobyte it has mostly done in the first."""
NUMBERS = (0, 1, 2, 7, 8, 127, 128, 255, 256, 32767, 32768, 65535, 2**24, 2**31 - 1, 2**31, 2**32 - 1)

Repair = Callable[[bytearray], None]


class Block(NamedTuple):
    """A number at `start`, `width` bytes long (0: a varint of one byte), that may be the length of what follows it."""

    start: int
    width: int
    size: int

    @property
    def begin(self) -> int:
        return self.start + (self.width or 1)

    @property
    def end(self) -> int:
        return self.begin + self.size


def blocks(data: bytes) -> list[Block]:
    """Every place that could be a length: its block ends within the data. Some are none; they make noise, no harm."""
    found = []
    for start in range(len(data)):
        for width in (4, 2, 0):
            size = int.from_bytes(data[start : start + (width or 1)], "big")
            block = Block(start, width, size)
            if 2 <= size < (128 if width == 0 else LARGEST) and block.end <= len(data):
                found.append(block)
                break
    return found


class Mutator:
    """An endless row of inputs, the same for the same seed."""

    def __init__(self, seeds: Sequence[bytes], seed: int, repair: Repair | None = None) -> None:
        self._seeds = [seed[:LARGEST] for seed in seeds if seed]
        self._blocks = [blocks(seed) for seed in self._seeds]
        self._random = Random(seed)
        self._repair = repair
        self._ways = (self._flip, self._number, self._length, self._resize, self._cut, self._splice, self._repeat)

    def next(self) -> bytes:
        random = self._random
        index = random.randrange(len(self._seeds))
        data, known = bytearray(self._seeds[index]), self._blocks[index]
        for _ in range(1 + int(random.expovariate(0.7))):
            random.choice(self._ways)(data, known)
        if self._repair is not None and random.random() < 0.7:
            self._repair(data)
        return bytes(data)

    def _place(self, data: bytearray) -> int:
        return self._random.randrange(len(data) or 1)

    def _flip(self, data: bytearray, _: list[Block]) -> None:
        if data:
            data[self._place(data)] ^= 1 << self._random.randrange(8)

    def _number(self, data: bytearray, _: list[Block]) -> None:
        """Write a number that programs stumble over, big-endian or as a varint."""
        number, place = self._random.choice(NUMBERS), self._place(data)
        if self._random.random() < 0.3:
            text = varint(number)
        else:
            width = self._random.choice((1, 2, 4, 8))
            text = (number % (1 << 8 * width)).to_bytes(width, "big")
        data[place : place + len(text)] = text

    def _length(self, data: bytearray, known: list[Block]) -> None:
        """Lie about a length: by a little, by everything that follows, or wildly."""
        if not known:
            return
        block = self._random.choice(known)
        lies = (block.size - 1, block.size + 1, 0, len(data) - block.begin, self._random.choice(NUMBERS))
        put(data, block, self._random.choice(lies))

    def _resize(self, data: bytearray, known: list[Block]) -> None:
        """Put bytes into a block, or take some, and tell the truth about it in every block around it."""
        if not known:
            return
        inner = self._random.choice(known)
        place = inner.begin + self._random.randrange(inner.size + 1)
        change = self._random.choice((-8, -2, -1, 1, 2, 8, 64))
        if change > 0:
            data[place:place] = self._random.randbytes(change)
        else:
            change = -min(-change, max(0, inner.end - place))
            del data[place : place - change]
        for block in known:
            if block.begin <= place <= block.end and (block.start <= inner.start):
                put(data, block, block.size + change)

    def _cut(self, data: bytearray, _: list[Block]) -> None:
        place = self._place(data)
        if self._random.random() < 0.5:
            del data[place:]
        else:
            del data[place : place + self._random.randrange(1, 17)]

    def _splice(self, data: bytearray, _: list[Block]) -> None:
        """The front of one input, the back of another."""
        other = self._random.choice(self._seeds)
        data[self._place(data) :] = other[self._random.randrange(len(other)) :]

    def _repeat(self, data: bytearray, known: list[Block]) -> None:
        if not known or len(data) > LARGEST:
            return
        block = self._random.choice(known)
        data[block.end : block.end] = data[block.start : block.end]


def put(data: bytearray, block: Block, number: int) -> None:
    width = block.width or 1
    if block.begin <= len(data):
        data[block.start : block.begin] = (number % (1 << 8 * width)).to_bytes(width, "big")


def varint(number: int) -> bytes:
    text = bytearray()
    while number > 127:
        text.append(number & 127 | 128)
        number >>= 7
    text.append(number)
    return bytes(text)
