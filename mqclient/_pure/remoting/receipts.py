"""Where a broker put the messages of one request: a tuple for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from .frames import Frame

T = TypeVar("T", bound=tuple[Any, ...])
MOST_OFFSET: Final = 2**62
ANSWER: Final = ("queueId", "queueOffset", "msgId", "transactionId", "recallHandle")


def receipts(kind: type[T], answer: Frame, queue: Any, ids: Sequence[str], status: str) -> list[T]:
    """One tuple of `kind` for each id: queue, offset, id, the broker's id of it, status, transaction, recall handle."""
    if not issubclass(kind, tuple):
        raise TypeError(f"a kind of tuple is wanted, not {kind.__name__}")
    place, first, said, transaction, handle = answer.pick(ANSWER)
    queue_id, offset = _number_or(place, queue.queue_id), _number_or(first, -1)
    if queue_id != queue.queue_id:
        queue = queue._replace(queue_id=queue_id)
    if len(ids) == 1:
        return [tuple.__new__(kind, (queue, offset, ids[0], said or "", status, transaction, handle))]
    said_ids = (said or "").split(",")
    if len(said_ids) != len(ids):
        said_ids = [""] * len(ids)
    return [
        tuple.__new__(kind, (queue, offset if offset < 0 else offset + number, own, theirs, status, None, None))
        for number, (own, theirs) in enumerate(zip(ids, said_ids, strict=True))
    ]


def _number_or(text: str | None, otherwise: int) -> int:
    """A number that a broker wrote; `otherwise` where it wrote none, or one that no queue comes near."""
    try:
        number = int(text) if text else otherwise
    except ValueError:
        return otherwise
    return number if -MOST_OFFSET < number < MOST_OFFSET else otherwise
