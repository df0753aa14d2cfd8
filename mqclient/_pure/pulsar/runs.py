"""Owns many entries at once: what one read brought for one consumer, as long as nothing has to be decided about it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from mqclient._pure.pulsar.entry import Entry
from mqclient._pure.pulsar.messages import Message, decode_messages


def take_run(events: Sequence[Any], at: int, /) -> list[Entry]:
    """The entries of the MESSAGE events from `at` on that are for one consumer and come in a row."""
    run: list[Entry] = []
    for event in islice(events, at, None):
        if len(event) != 2 or type(event[1]) is not Entry or (run and event[1].consumer_id != run[0].consumer_id):
            break
        run.append(event[1])
    return run


def decode_run(
    entries: Sequence[Entry], at: int, topic: str, epoch: int, ledger: int, until: int, /
) -> tuple[list[Message], int, int]:
    """Messages, permits and following place of the plain entries from `at` on; see the stub."""
    messages: list[Message] = []
    charged = 0
    for entry in islice(entries, at, None):
        hidden = entry.ledger == ledger and entry.entry <= until
        if hidden or entry.compression or entry.encrypted or not _is_whole(entry):
            break
        batch = list(decode_messages(entry))
        if len(batch) != entry.charged:
            break
        messages += batch
        charged += len(batch)
        entry.topic, entry.epoch = topic, epoch
        at += 1
    return messages, charged, at


def _is_whole(entry: Entry) -> bool:
    """Nothing of it is missing, acknowledged, or charged otherwise than it says."""
    return entry.corrupt is None and entry.chunk_id is None and entry.ack_set is None and entry._permits is None
