"""Owns which partition a key chooses: Java's string hash, as all Pulsar clients have it, of a whole column at once."""

from __future__ import annotations

from typing import Any, Final

MASK: Final = 0x7FFFFFFF


def routes(keys: Any, partitions: int) -> Any:
    """Of each key its partition, null of a null key.

    >>> import pyarrow
    >>> routes(pyarrow.array(["a", "key-0000017", None, "ключ"]), 4).to_pylist()
    [1, 0, None, 2]
    """
    import numpy
    import pyarrow as pa
    import pyarrow.compute as pc

    found = numpy.zeros(len(keys), numpy.uint32)
    lengths = pc.fill_null(pc.binary_length(keys), 0).to_numpy(zero_copy_only=False)
    for length in numpy.unique(lengths[lengths > 0]).tolist():
        rows = numpy.flatnonzero(lengths == length)
        found[rows] = _hashes(keys.take(pa.array(rows)), length)
    chosen = (found & numpy.uint32(MASK)) % numpy.uint32(partitions)
    return pa.array(chosen.astype(numpy.int32), mask=keys.is_null().to_numpy(zero_copy_only=False))


def _hashes(keys: Any, length: int) -> Any:
    """Of keys that all have so many bytes: letter by letter, each step for all keys."""
    import numpy

    start = int(numpy.frombuffer(keys.buffers()[1], numpy.int32)[keys.offset])
    letters = numpy.frombuffer(keys.buffers()[2], numpy.uint8, len(keys) * length, start).reshape(len(keys), length)
    state = numpy.zeros(len(keys), numpy.uint32)
    for column in range(length):
        state = state * numpy.uint32(31) + letters[:, column]
    for row in numpy.flatnonzero((letters >= 128).any(axis=1)).tolist():  # bytes are not letters there
        state[row] = _hash(letters[row].tobytes())
    return state


def _hash(key: bytes) -> int:
    state = 0
    units = key.decode("utf-8", "replace").encode("utf-16-le")
    for at in range(0, len(units), 2):
        state = 31 * state + units[at] + (units[at + 1] << 8) & 0xFFFFFFFF
    return state
