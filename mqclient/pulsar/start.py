"""Owns where a consumer begins: what of the first entries lies before it, and where to go on when opened anew."""

from __future__ import annotations

from typing import Any

from mqclient.pulsar.consumer_options import ConsumerOptions


class Start:
    """The broker begins with the entry of the start; which of its messages are meant is for us to say."""

    __slots__ = ("_codec", "at", "inclusive", "resume")

    def __init__(self, codec: Any, options: ConsumerOptions) -> None:
        self._codec = codec
        self.at: Any = None if isinstance(options.start, str) else options.start
        """What lies before this id is not shown; None: nothing is hidden."""
        self.inclusive = options.start_inclusive
        self.resume: Any = self._first(self.at) or (codec.EARLIEST if options.start == "earliest" else codec.LATEST)
        """Where a non-durable subscription goes on when opened anew."""

    def hides(self, entry: Any) -> bool:
        """Whether some of this entry may lie before the start."""
        at = self.at
        return at is not None and entry.ledger == at.ledger and bool(entry.entry <= at.entry)

    def after(self, entry: Any, messages: list[Any]) -> list[Any]:
        """Of an entry that `hides` speaks of: the messages that are meant."""
        at = self.at
        if entry.entry < at.entry:
            return []
        if at.batch_index < 0 or not entry.batched:
            return messages if self.inclusive else []
        first = at.batch_index if self.inclusive else at.batch_index + 1
        return [message for message in messages if message.batch_index >= first]

    def takes_whole(self, entry: Any) -> bool:
        """Whether a batch that is given out whole is meant, if only in part."""
        if not self.hides(entry):
            return True
        return entry.entry == self.at.entry and (self.inclusive or self.at.batch_index >= 0)

    def go_on_after(self, message_id: Any) -> None:
        self.at = self.resume = message_id
        self.inclusive = False

    def save(self) -> tuple[Any, bool, Any]:
        return self.at, self.inclusive, self.resume

    def restore(self, saved: tuple[Any, bool, Any]) -> None:
        self.at, self.inclusive, self.resume = saved

    def move(self, to: Any, inclusive: bool) -> None:
        """A seek: to a time in ms, or to an id, of which the special ones and times hide nothing."""
        by_time = isinstance(to, int)
        special = by_time or to.entry < 0 or to.ledger == self._codec.LATEST.ledger
        self.at = None if special else to
        self.resume, self.inclusive = self._codec.EARLIEST if by_time else self._first(to), inclusive

    @staticmethod
    def _first(message_id: Any) -> Any:
        """Where the broker has to begin: a message in parts with its first one."""
        return message_id if message_id is None else message_id.first_chunk or message_id
